"""Policy muxflow exchanges best-effort jobs between two GPUs, by predicted speeds.

TAP on stdout; arguments: the build, cases. The database is written here, as if a campaign had
measured the programs; the predictor is trained on it.
"""
import contextlib
import json
import os
import sqlite3
import subprocess
import time

from mps_world import MpsWorld, end
from world import BUILD, SOFTGPU, TANDEM, Skip, run_cases, until

BESIDE, PROFILE = f"{BUILD}/examples/beside", f"{BUILD}/src/profiler/tandem-profile"
# The SM activity of each program alone, and the speed of each best-effort one beside each service.
PROGRAMS = {"busy": 0.8, "quiet": 0.1, "heavy": 0.9, "light": 0.2}
SPEEDS = {("busy", "heavy"): 0.1, ("quiet", "heavy"): 0.9,
          ("busy", "light"): 0.9, ("quiet", "light"): 0.95}


def write_speeds(world, name):
    """Fills a database, and has it learnt for the daemon."""
    store, profiles = f"{world.directory}/profiles.db", f"{world.directory}/profiles"
    os.mkdir(profiles)
    campaign = ("profile", "campaign", "--store", store, "--profiles", profiles)
    assert "nothing was measured yet" in world.tandem(*campaign).stderr  # it makes the tables
    with contextlib.closing(sqlite3.connect(store)) as data:
        for program, active in PROGRAMS.items():
            data.execute("INSERT INTO program VALUES(?, ?, '', 1, 0, 10, ?, ?, ?, 1, 100, 10, 0.1,"
                         " 1, 0, 0, 1, 1)", (name, program, active, active, active))
        for (online, offline), speed in SPEEDS.items():
            for share in range(10, 91, 10):
                data.execute("INSERT INTO pair(gpu, online, offline, policy, sm_share, seconds,"
                             " speed, online_speed, time_s) VALUES(?, ?, ?, 'muxflow', ?, 10, ?, 1,"
                             " 0)", (name, online, offline, share / 100, speed))
        data.commit()
    done = world.tandem(*campaign)
    assert done.returncode == 0, done
    return profiles


class ExchangeWorld(MpsWorld):
    def __init__(self):
        super().__init__("--gpus", "2")

    def begin(self):
        if not os.path.exists(PROFILE):
            raise Skip("tandem-profile is built where SQLite and BLAS are")
        self.turn_on()
        until(lambda: self.mps(1)[0] == "ready", "the second is ready")
        rows = json.loads(self.tandem("gpu", "--json").stdout)
        profiles = write_speeds(self, rows[0]["name"])
        for option in ("policy=muxflow", "muxflow.exchange=1h", "muxflow.exchange.cost=1ms",
                       f"profiles={profiles}"):
            done = self.tandem("set", option)
            assert done.returncode == 0, (option, done)

    @contextlib.contextmanager
    def program(self, name, *options):
        process = subprocess.Popen(
            [SOFTGPU, "run", "--", TANDEM, "run", "--name", name, *options, "--", BESIDE, "--for",
             "1h", "--sms", "8", "--gap", "20ms"],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        try:
            until(lambda: self.gpu_of(name) is not None, f"{name} uses a GPU")
            yield process
        finally:
            end(process)

    def gpu_of(self, name):
        return self.row(name).get("gpu")

    def row(self, name):
        return next((job for job in self.jobs() if job["name"] == name), {})


def jobs_change_places_where_they_are_faster_together():
    with ExchangeWorld() as world, contextlib.ExitStack() as programs:
        def start(*arguments):
            return programs.enter_context(world.program(*arguments))

        world.begin()
        again = ("--gpu", "any", "--restart", "always")
        start("heavy", *again)
        start("light", *again)
        gpu = world.gpu_of("heavy")
        assert world.gpu_of("light") == 1 - gpu
        start("busy", "--class", "online", "--gpu", str(gpu))
        start("quiet", "--class", "online", "--gpu", str(1 - gpu))
        pids = {name: world.row(name)["pid"] for name in PROGRAMS}
        assert world.tandem("set", "muxflow.exchange=2s").returncode == 0
        until(lambda: world.gpu_of("heavy") == 1 - gpu and world.gpu_of("light") == gpu,
              "they have changed places")
        assert all((world.row(name).get("pid") == pids[name]) == (name in ("busy", "quiet"))
                   for name in PROGRAMS)
        details = [e["detail"] for e in world.events("action") if e["name"] == "heavy"]
        assert any(f"from GPU {gpu}, where it runs at" in d and f"to GPU {1 - gpu}" in d
                   for d in details), details
        assert any("exchanged from GPU" in e["detail"] for e in world.events("placed"))
        said = world.tandem("explain", "heavy").stdout
        assert f"started again on GPU {1 - gpu}" in said, said
        # They run by MPS, with the share that the service leaves.
        until(lambda: all(world.row(name).get("state") == "running" for name in PROGRAMS),
              "all run")
        assert world.row("heavy")["sm_share_ppm"] > 0, world.row("heavy")
        # The best pairs are there now: the next exchanges change nothing.
        world.tandem("set", "muxflow.exchange=50ms")
        starts = len(world.events("placed"))
        time.sleep(1)
        assert len(world.events("placed")) == starts


def a_job_that_nobody_can_start_again_stays_and_is_told_why():
    with ExchangeWorld() as world, contextlib.ExitStack() as programs:
        world.begin()
        programs.enter_context(world.program("heavy", "--gpu", "any"))
        gpu = world.gpu_of("heavy")
        for name, number in (("busy", gpu), ("quiet", 1 - gpu)):
            programs.enter_context(
                world.program(name, "--class", "online", "--gpu", str(number)))
        said = world.tandem("explain", "heavy").stdout
        assert "nobody can start it again" in said, said
        assert world.tandem("set", "muxflow.exchange=100ms").returncode == 0
        time.sleep(1)
        assert world.gpu_of("heavy") == gpu
        assert not [e for e in world.events("action") if "restart" in e["detail"]]


if __name__ == "__main__":
    run_cases([jobs_change_places_where_they_are_faster_together,
               a_job_that_nobody_can_start_again_stays_and_is_told_why], at_once=1)
