"""A Slurm cluster with tandem-sched, for tests."""
import json
import os

from slurm_world import PLUGINS, Slurm, why_not
from world import SOFTGPU, TANDEM, Skip

SCHED = f"{PLUGINS}/tandem-sched"
GPU = 500  # of the resource "tandem"


class Cluster(Slurm):
    """Slurm with tandem-sched; nodes with so many GPUs each."""

    def __init__(self, *options, nodes=2, gpus=1, timeout=300, plugin="required"):
        super().__init__("--gpus", str(gpus), nodes=[f"node{n + 1}" for n in range(nodes)],
                         count=gpus * GPU, submit="tandem_brain", timeout=timeout,
                         plugin=plugin)
        self.options = ["--restart", "1s", *options]

    def up(self):
        super().up()
        self.sched = self.schedule()

    def schedule(self):
        return self.serve(SCHED, *self.options)

    def batch(self, *options, script="sleep 1000"):
        done = self.call("sbatch", "--parsable", "--output=/dev/null", *options,
                         f"--wrap={script}")
        assert not done.returncode, done
        return done.stdout.strip()

    def shown(self, job):
        """What scontrol shows of a job, as a dictionary."""
        text = self.call("scontrol", "-o", "show", "job", job).stdout
        words = dict(word.split("=", 1) for word in text.split() if "=" in word)
        at = text.find("AdminComment=")
        words["AdminComment"] = text[at + 13:].split(" StdErr=")[0].strip() if at >= 0 else ""
        return words

    def comment(self, job):
        return self.shown(job)["AdminComment"]

    def runs(self, job):
        return self.shown(job).get("JobState") == "RUNNING"

    def node(self, job):
        return self.shown(job).get("NodeList")

    def gpus(self):
        done = self.call(SOFTGPU, "run", "--", TANDEM, "gpu", "--json")
        return [gpu["uuid"] for gpu in json.loads(done.stdout or "[]")]

    def log(self):
        with open(f"{self.directory}/log/tandem-sched.out") as f:
            return f.read()


def cluster(*options, **shape):
    missing = why_not() or (None if os.path.exists(SCHED) else "tandem-sched was not built")
    if missing:
        raise Skip(missing)
    return Cluster(*options, **shape)
