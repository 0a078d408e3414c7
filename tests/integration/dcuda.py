"""Policies dcuda and tandem on the node: jobs move from overloaded GPUs to idle ones, and say why
or why not.

TAP on stdout; arguments: the build, cases. Times are those of the software GPU's model.
"""
import contextlib

from world import *

BESIDE = f"{BUILD}/examples/beside"
PROGRAM = f"{BUILD}/tests/integration/migrate_test"


class DcudaWorld(World):
    POLICY = "dcuda"

    def __enter__(self):
        super().__enter__()
        assert self.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode == 0
        until(lambda: self.call(TANDEM, "set", f"policy={self.POLICY}").returncode == 0,
              "the daemon knows of both GPUs")
        return self

    @contextlib.contextmanager
    def program(self, *command, options=()):
        process = subprocess.Popen(
            [SOFTGPU, "run", "--", TANDEM, "run", "--backend", "swap", *options, "--", *command],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def work(self, sms, gap="0", options=(), kernel="5ms"):
        return self.program(BESIDE, "--kernel", kernel, "--sms", str(sms), "--gap", gap, "--for",
                            "1h", options=options)

    def row(self, process):
        return next((job for job in self.jobs() if job["pid"] == process.pid), {})

    def explain(self, process):
        return self.call(TANDEM, "explain", str(process.pid)).stdout


class TandemWorld(DcudaWorld):
    POLICY = "tandem"


def of(rows):
    return sorted(row.get("gpu", -1) for row in rows)


def an_overloaded_gpu_gives_a_job_away_and_says_why():
    with DcudaWorld("--model", "t4", "--gpus", "2") as world:
        # Long kernels: what the host does between them counts for nothing on a busy machine, too.
        with world.work(40, kernel="30ms") as a, world.work(40, kernel="30ms") as b:
            until(lambda: of(world.jobs()) == [0, 1], "they have a GPU each")
            moved = a if world.row(a)["moves"] else b
            assert world.row(moved)["moves"] == 1, world.jobs()
            assert "MOVES" in world.call(TANDEM, "ps").stdout
            text = world.explain(moved)
            assert "moved from GPU 0" in text and "demanded more than the GPU has" in text, text
            assert "moved from" not in world.explain(b if moved is a else a)
            seen = world.row(moved)["launches"]
            until(lambda: world.row(moved)["launches"] > seen + 20, "it goes on")
            time.sleep(1)
            assert sum(row["moves"] for row in world.jobs()) == 1, world.jobs()


def light_jobs_come_together_so_that_a_gpu_is_idle():
    with DcudaWorld("--model", "t4", "--gpus", "2") as world:
        with world.work(8, "15ms", ["--gpu", "0"]), world.work(8, "15ms") as b:
            until(lambda: len(world.jobs()) == 2 and len(set(of(world.jobs()))) == 1,
                  "they are together")
            assert world.row(b)["pid"], world.jobs()


def a_job_that_cannot_move_stays_and_says_why():
    with DcudaWorld("--model", "t4", "--gpus", "2") as world:
        path = f"{world.directory}/progress"
        with world.program(PROGRAM, "1", "1", path, "graph") as process, world.work(40):
            until(lambda: "It cannot move to another GPU: it has graphs" in world.explain(process),
                  "it says why")
            assert world.row(process)["moves"] == 0, world.jobs()


def a_job_that_sees_all_gpus_begins_on_the_least_loaded_one():
    with DcudaWorld("--model", "t4", "--gpus", "3") as world:
        with world.work(40, options=["--gpu", "0"]), contextlib.ExitStack() as rest:
            until(lambda: of(world.jobs()) == [0], "the first one runs")
            for gpus in ([0, 1], [0, 1, 2]):
                rest.enter_context(world.work(40, options=["--gpu", "first"]))
                until(lambda: of(world.jobs()) == gpus, "it is placed")
            assert not any(row["moves"] for row in world.jobs()), world.jobs()


def under_tandem_a_job_moves_off_a_gpu_that_has_no_room_for_all():
    """Both see two GPUs, and use the first, as programs do."""
    with TandemWorld("--gpus", "2") as world:
        large = [BESIDE, "--kernel", "30ms", "--sms", "40", "--memory", "40Mi", "--for", "1h"]
        with world.program(*large) as a, world.program(*large) as b:
            until(lambda: of(world.jobs()) == [0, 1], "they have a GPU each")
            moved = a if world.row(a)["moves"] else b
            assert world.row(moved)["moves"] == 1, world.jobs()
            assert "demanded more than the GPU has" in world.explain(moved), world.explain(moved)
            seen = world.row(moved)["launches"]
            until(lambda: world.row(moved)["launches"] > seen + 20, "it goes on")


def under_tandem_jobs_that_fit_stay_together():
    with TandemWorld("--gpus", "2") as world:
        small = [BESIDE, "--kernel", "5ms", "--sms", "40", "--memory", "20Mi", "--for", "1h"]
        with world.program(*small), world.program(*small):
            until(lambda: of(world.jobs()) == [0, 0], "they are on the first GPU")
            time.sleep(2)
            assert not any(row["moves"] for row in world.jobs()), world.jobs()


run_cases([an_overloaded_gpu_gives_a_job_away_and_says_why,
           light_jobs_come_together_so_that_a_gpu_is_idle,
           a_job_that_cannot_move_stays_and_says_why,
           a_job_that_sees_all_gpus_begins_on_the_least_loaded_one,
           under_tandem_a_job_moves_off_a_gpu_that_has_no_room_for_all,
           under_tandem_jobs_that_fit_stay_together])
