"""tandem profile of a program, and what tandem predict says without a predictor.

TAP on stdout; arguments: the build, cases.
"""
import json
import os
import subprocess

from world import BUILD, SOFTGPU, TANDEM, Skip, World, run_cases, until

BESIDE = f"{BUILD}/examples/beside"
HALF = [BESIDE, "--kernel", "5ms", "--sms", "20", "--for", "1h"]


class ProfileWorld(World):
    def __init__(self):
        super().__init__("--model", "t4")

    def __enter__(self):
        if not os.path.exists(f"{BUILD}/src/profiler/tandem-profile"):
            raise Skip("tandem profile is built where BLAS and SQLite are")
        super().__enter__()
        assert self.tandem("run", "--", "true").returncode == 0
        return self

    def tandem(self, *arguments, **environment):
        return self.call(SOFTGPU, "run", "--", TANDEM, *arguments, **environment)

    def profile(self, *arguments):
        return self.tandem("profile", "--store", f"{self.directory}/p.db", *arguments)


def a_second_run_updates_the_row_of_the_first():
    with ProfileWorld() as world:
        world.tandem("set", "meter=on")
        for run in (1, 2):
            done = world.profile("--seconds", "1s", "--json", "--name", "half", "--", *HALF)
            assert done.returncode == 0, done
            row = json.loads(done.stdout)[0]
            assert row["runs"] == run and row["program"] == "half", row
            assert row["gpu"] == "softgpu t4" and row["launches_per_s"] > 0, row
            # Half of the SMs, and less where the machine is busy.
            assert 0.1 <= row["sm_activity"] <= 0.55 and row["peak_bytes"] > 0, row
            # It was ended by the daemon, and nothing is left.
            until(lambda: not world.jobs(), "the program is gone")
        os.chmod(f"{world.directory}/p.db", 0o400)
        before = os.stat(f"{world.directory}/p.db")
        assert json.loads(world.profile("--list", "--json").stdout) == [row]
        assert "half" in world.profile("--list").stdout
        done = world.tandem("predict", "--store", f"{world.directory}/p.db", "half", "half")
        assert done.returncode == 125 and "no predictor was trained" in done.stderr, done
        assert os.stat(f"{world.directory}/p.db").st_mtime_ns == before.st_mtime_ns


def what_cannot_be_measured_is_refused():
    with ProfileWorld() as world:
        world.tandem("set", "meter=off")
        done = world.profile("--seconds", "1s", "--", *HALF)
        assert done.returncode == 125 and "meter=on" in done.stderr, done
        world.tandem("set", "meter=on")
        other = subprocess.Popen([SOFTGPU, "run", "--", TANDEM, "run", "--name", "other", *HALF],
                                 env=world.environment)
        until(lambda: world.jobs() and world.jobs()[0]["launches"], "another program works")
        done = world.profile("--seconds", "1s", "--", *HALF)
        assert done.returncode == 125 and "other works on GPU 0" in done.stderr, done
        other.kill()
        other.wait()
        for arguments, quoted in ((["--seconds", "0s", "--", "x"], '"0s" is not valid'),
                                  (["--name", "a b", "--", "x"], '"a b"'),
                                  (["--class", "best", "--", "x"], '"best"'),
                                  (["x"], '"x"'), (["--", "false"], '"false" ended with status 1'),
                                  (["--list", "x"], '"x"')):
            done = world.profile(*arguments)
            assert done.returncode == 125 and quoted in done.stderr, (arguments, done)
        assert json.loads(world.profile("--list", "--json").stdout) == []


def bad_questions_are_quoted():
    with ProfileWorld() as world:
        store = ["--store", f"{world.directory}/p.db"]
        for arguments, quoted in ((["predict", *store, "a"], "expected the names"),
                                  (["predict", *store, "--share", "0%", "a", "b"], '"0%"'),
                                  (["predict", *store, "--share", "x", "a", "b"], '"x"'),
                                  (["predict", *store, "a", "b"], "No such file"),
                                  (["profile", "--list", *store], "p.db\": the database: No such"),
                                  (["profile", "campaign", "--shares", "9,3"], '"9,3"'),
                                  (["profile", "campaign", "--plan", "/none"], '"/none"'),
                                  (["profile", "campaign", *store], "nothing was measured")):
            done = world.tandem(*arguments)
            assert done.returncode == 125 and quoted in done.stderr, (arguments, done)


def who_only_reads_makes_nothing():
    with ProfileWorld() as world:
        for words, status, said in ((["profile", "--list", "--json"], 0, "[]"),
                                    (["predict", "a", "b"], 125, "no program was profiled")):
            done = world.tandem(*words, XDG_DATA_HOME=f"{world.directory}/none")
            assert done.returncode == status and said in done.stdout + done.stderr, done
            assert not os.path.exists(f"{world.directory}/none"), words


if __name__ == "__main__":
    run_cases([a_second_run_updates_the_row_of_the_first, what_cannot_be_measured_is_refused,
               bad_questions_are_quoted, who_only_reads_makes_nothing])
