"""Whole programs through every layer on the software GPU: libtandem, tandemd, tandem, softgpu. TAP on stdout; argument: the build."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
SOFTGPU, TANDEM, TANDEMD = f"{BUILD}/softgpu/cli/softgpu", f"{BUILD}/src/cli/tandem", f"{BUILD}/src/daemon/tandemd"
LIBRARY, TRAIN = f"{BUILD}/src/preload/libtandem.so", f"{BUILD}/examples/train"
SMALL = ["--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "6"]
LARGE = ["--size", "46m", "--gpu", "20ms", "--cpu", "5ms", "--steps", "3"]
DEADLINE_S = 60  # after this a program counts as hung


class World:
    """A private software GPU and a private daemon's socket."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="tandem-slice-")
        self.environment = dict(os.environ, SOFTGPU_DIR=f"{self.directory}/gpu", TANDEM_SOCKET=f"{self.directory}/t/socket",
                                TANDEM_LIB=LIBRARY, TANDEMD=TANDEMD, SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        self.call(SOFTGPU, "start")
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.describe()
        self.call(TANDEM, "stop", "--force")
        self.call(SOFTGPU, "stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, *command, **extra):
        return subprocess.run(command, env=dict(self.environment, **extra), capture_output=True, text=True, timeout=DEADLINE_S)

    def start(self, *command, wrap=None, **extra):
        wrapped = [SOFTGPU, "run", "--"] + ([TANDEM, "run", "--backend", wrap, "--"] if wrap else [])
        return subprocess.Popen([*wrapped, *command], env=dict(self.environment, **extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def describe(self):
        """What a failed case leaves to be looked at."""
        for command in ([TANDEM, "ps", "--json"], [TANDEM, "events"], [SOFTGPU, "status", "--json"], ["tail", "-20", self.environment["TANDEM_SOCKET"] + ".log"]):
            done = self.call(*command)
            print("# " + (" ".join(command) + "\n" + (done.stdout + done.stderr)[-6000:]).replace("\n", "\n# "), flush=True)
        if "TANDEM_TEST_ON_FAILURE" in os.environ:
            subprocess.run(os.environ["TANDEM_TEST_ON_FAILURE"], shell=True, env=self.environment, timeout=DEADLINE_S)

    def status(self):
        return json.loads(self.call(SOFTGPU, "status", "--json").stdout)["gpus"][0]

    def jobs(self):
        return json.loads(self.call(TANDEM, "ps", "--json").stdout)

    def events(self, kind=None):
        return [e for e in json.loads(self.call(TANDEM, "events", "--json").stdout) if kind in (None, e["kind"])]

    def daemon_pid(self):
        with open(self.environment["TANDEM_SOCKET"] + ".lock") as f:
            return int(f.read())


def finish(process):
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, f"exit {process.returncode}: {err}"
    result = json.loads(out)
    assert result["checksum_ok"], result
    return result


def until(condition, what):
    """Waits for an event, with a bound that only a hang reaches."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)


def nothing_is_left(world):
    until(lambda: world.status()["plain_bytes"] == 0 and world.status()["processes"] == 0, "memory of the dead is freed")
    until(lambda: world.jobs() == [], "jobs of the dead are gone")


def the_driver_does_and_refuses_what_nvidias_does():
    with World() as world:
        done = world.call(SOFTGPU, "run", "--", f"{BUILD}/tests/integration/driver_test")
        assert done.returncode == 0, done.stdout + done.stderr


def a_program_ends_alike_without_tandem_without_daemon_and_with_it():
    with World() as world:
        bare = finish(world.start(TRAIN, *SMALL))
        alone = finish(world.start(TRAIN, *SMALL, LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap"))
        disabled = finish(world.start(TRAIN, *SMALL, LD_PRELOAD=LIBRARY, TANDEM_DISABLE="1"))
        for backend in ("plain", "swap", "managed"):
            shared = finish(world.start(TRAIN, *SMALL, wrap=backend))
            assert shared["checksum"] == bare["checksum"]
        assert alone["checksum"] == disabled["checksum"] == bare["checksum"]
        nothing_is_left(world)


def two_programs_larger_than_the_gpu_take_turns_and_use_no_managed_memory():
    with World() as world:
        a, b = (world.start(TRAIN, *LARGE, wrap="swap") for _ in range(2))
        assert finish(a)["checksum"] == finish(b)["checksum"]
        opened = [e["pid"] for e in world.events("opened")]
        assert len(set(opened)) == 2 and len(opened) > 2, opened
        status = world.status()
        assert status["faults"] == 0 and status["prefetch_in_bytes"] == 0 and status["copy_out_bytes"] > 0, status
        nothing_is_left(world)


def two_programs_that_fit_run_side_by_side():
    with World() as world:
        a, b = (world.start(TRAIN, *SMALL, wrap="swap") for _ in range(2))
        finish(a), finish(b)
        assert not world.events("draining"), world.events("draining")


def nvshare_lets_one_program_at_a_time():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        assert world.call(TANDEM, "set", "policy=nvshare", "quantum=50ms").returncode == 0
        a, b = (world.start(TRAIN, *SMALL, wrap="swap") for _ in range(2))
        finish(a), finish(b)
        holder = None
        for e in world.events():
            if e["kind"] == "opened":
                assert holder in (None, e["pid"]), "opened while another held"
                holder = e["pid"]
            elif e["kind"] in ("drained", "left") and e["pid"] == holder:
                holder = None


def programs_survive_a_daemon_that_is_killed_and_come_back_to_the_next():
    with World() as world:
        programs = [world.start(TRAIN, *LARGE[:-1], "8", wrap="swap") for _ in range(2)]
        until(lambda: len(world.jobs()) == 2, "both registered")
        os.kill(world.daemon_pid(), signal.SIGKILL)
        world.call(TANDEM, "run", "--", "true")
        until(lambda: len(world.jobs()) == 2 or any(p.poll() is not None for p in programs), "both registered again")
        for program in programs:
            finish(program)
        nothing_is_left(world)


def a_daemon_that_is_gone_for_good_hurts_nobody():
    with World() as world:
        programs = [world.start(TRAIN, *LARGE, wrap="swap") for _ in range(2)]
        until(lambda: len(world.jobs()) == 2, "both registered")
        os.kill(world.daemon_pid(), signal.SIGKILL)
        for program in programs:
            finish(program)


def killing_programs_in_any_state_leaves_nothing_behind():
    kills = int(os.environ.get("TANDEM_TEST_KILLS", "12"))
    chance = random.Random(7)
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        for _ in range(kills):
            a, b = (world.start(TRAIN, *LARGE, wrap="swap") for _ in range(2))
            time.sleep(chance.random() * 0.6)
            a.kill()
            a.communicate()
            if chance.random() < 0.5:
                b.kill()
                b.communicate()
            else:
                finish(b)
        nothing_is_left(world)


def a_gpu_that_dies_gives_errors_not_hangs():
    with World() as world:
        program = world.start(TRAIN, *LARGE, wrap="swap")
        until(lambda: len(world.jobs()) == 1, "registered")
        world.call(SOFTGPU, "stop")
        _, err = program.communicate(timeout=DEADLINE_S)
        assert program.returncode == 1 and "CUDA_ERROR" in err, (program.returncode, err)


def exit_codes_are_the_childs_or_those_of_a_wrapper():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "sh", "-c", "exit 7").returncode == 7
        assert world.call(TANDEM, "run", "--", "/no/such/program").returncode == 127
        assert world.call(TANDEM, "run", "--", "/etc/passwd").returncode == 126
        bad = world.call(TANDEM, "run", "--backend", "swop", "--", "true")
        assert bad.returncode == 125 and '"swop"' in bad.stderr, bad
        killed = world.call(TANDEM, "run", "--", "sh", "-c", "kill -9 $$")
        assert killed.returncode == -signal.SIGKILL


def fifty_simultaneous_starts_make_one_daemon():
    with World() as world:
        programs = [subprocess.Popen([TANDEM, "run", "--", "true"], env=world.environment, stderr=subprocess.PIPE, text=True) for _ in range(50)]
        for program in programs:
            _, err = program.communicate(timeout=DEADLINE_S)
            assert program.returncode == 0, err
        second = world.call(TANDEMD)
        assert second.returncode == 1 and f"pid={world.daemon_pid()}" in second.stderr, second


CASES = [
    the_driver_does_and_refuses_what_nvidias_does,
    a_program_ends_alike_without_tandem_without_daemon_and_with_it,
    two_programs_larger_than_the_gpu_take_turns_and_use_no_managed_memory,
    two_programs_that_fit_run_side_by_side,
    nvshare_lets_one_program_at_a_time,
    programs_survive_a_daemon_that_is_killed_and_come_back_to_the_next,
    a_daemon_that_is_gone_for_good_hurts_nobody,
    killing_programs_in_any_state_leaves_nothing_behind,
    a_gpu_that_dies_gives_errors_not_hangs,
    exit_codes_are_the_childs_or_those_of_a_wrapper,
    fifty_simultaneous_starts_make_one_daemon,
]

print(f"1..{len(CASES)}")
chosen = sys.argv[2:]
for number, case in enumerate(CASES, 1):
    if chosen and case.__name__ not in chosen:
        print(f"ok {number} - {case.__name__} # SKIP not chosen")
        continue
    try:
        case()
        print(f"ok {number} - {case.__name__}", flush=True)
    except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "), flush=True)
