"""A Slurm cluster with tandem-sched, for tests."""
import json
import os

from etcd_world import Etcd, find_etcd
from slurm_world import PLUGINS, Slurm, why_not
from world import BUILD, SOFTGPU, TANDEM, Skip

SCHED = f"{PLUGINS}/tandem-sched"
AGENT = f"{BUILD}/src/cluster/agent/tandem-agent"
GPU = 500  # of the resource "tandem"


class Cluster(Slurm):
    """Slurm with tandem-sched; nodes with so many GPUs each."""

    def __init__(self, *options, nodes=2, gpus=1, timeout=300, plugin="required",
                 etcd=False):
        super().__init__("--gpus", str(gpus), nodes=[f"node{n + 1}" for n in range(nodes)],
                         count=gpus * GPU, submit="tandem_brain", timeout=timeout,
                         plugin=plugin)
        self.options = ["--restart", "1s", *options]
        self.with_etcd, self.etcd = etcd, None

    def up(self):
        if self.with_etcd:
            self.etcd = Etcd(self.directory)
            self.options += ["--etcd", self.etcd.url, "--lease", "3s"]
        self.options += ["--status", f"{self.directory}/sched"]
        super().up()
        self.sched = self.schedule()

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        if self.etcd:
            self.etcd.kill()

    def schedule(self, *more, log=None):
        return self.serve(SCHED, *self.options, *more, log=log)

    def status(self, *options):
        done = self.call(SCHED, "status", "--status", f"{self.directory}/sched", *options)
        assert not done.returncode, done
        return done.stdout

    def agent(self, node, *more):
        return self.serve(AGENT, "--name", node, "--etcd", self.etcd.url, "--lease", "3s", *more,
                          log=f"agent.{node}")

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

    def tandem(self, *words):
        return self.call(TANDEM, *words)

    def gpus(self):
        done = self.call(SOFTGPU, "run", "--", TANDEM, "gpu", "--json")
        return [gpu["uuid"] for gpu in json.loads(done.stdout or "[]")]

    def log(self, name="tandem-sched"):
        with open(f"{self.directory}/log/{name}.out") as f:
            return f.read()


def cluster(*options, **shape):
    missing = why_not() or (None if os.path.exists(SCHED) else "tandem-sched was not built")
    if missing:
        raise Skip(missing)
    if shape.get("etcd"):
        find_etcd()
        if not os.path.exists(AGENT):
            raise Skip("tandem-agent was not built: libcurl or jansson is missing")
    return Cluster(*options, **shape)
