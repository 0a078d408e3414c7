"""A private software GPU with a private daemon, for whole-program tests. The build comes from the
command line."""
import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BUILD = os.path.abspath(sys.argv[1])
SOFTGPU, TANDEM = f"{BUILD}/softgpu/cli/softgpu", f"{BUILD}/src/cli/tandem"
# That of a build with a sanitizer.
TANDEMD = os.path.abspath(os.environ.get("TANDEM_TEST_DAEMON", f"{BUILD}/src/daemon/tandemd"))
LIBRARY, TRAIN = f"{BUILD}/src/preload/libtandem.so", f"{BUILD}/examples/train"
SMALL = ["--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "6"]
LARGE = ["--size", "46m", "--gpu", "20ms", "--cpu", "5ms", "--steps", "3"]
DEADLINE_S = 180  # after this a program counts as hung
HANG_S = 300  # after this a file says where it is, again and again
# As at a login: programs would ignore the first under nohup, the others behind a shell's "&".
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


class Skip(Exception):
    """The reason why a case cannot be tried here."""


class World:
    """A private software GPU and a private daemon's socket."""

    def __init__(self, *softgpu_options):
        self.softgpu_options = softgpu_options

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="tandem-slice-")
        self.environment = dict(os.environ, SOFTGPU_DIR=f"{self.directory}/gpu",
                                TANDEM_SOCKET=f"{self.directory}/t/socket",
                                TANDEM_LOCKS=f"{self.directory}/locks", TANDEM_LIB=LIBRARY,
                                TANDEMD=TANDEMD, SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        # The test runner's: no library is found by chance.
        self.environment.pop("LD_LIBRARY_PATH", None)
        self.call(SOFTGPU, "start", *self.softgpu_options)
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.describe()
        self.call(TANDEM, "stop", "--force")
        self.call(SOFTGPU, "stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, *command, **extra):
        return subprocess.run(command, env=dict(self.environment, **extra), capture_output=True,
                              text=True, timeout=DEADLINE_S)

    def start(self, *command, wrap=None, **extra):
        wrapped = ([SOFTGPU, "run", "--"]
                   + ([TANDEM, "run", "--backend", wrap, "--"] if wrap else []))
        return subprocess.Popen([*wrapped, *command], env=dict(self.environment, **extra),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def describe(self):
        """What a failed case leaves to be looked at."""
        for command in ([TANDEM, "ps", "--json"], [TANDEM, "gpu", "--json"], [TANDEM, "events"],
                        [SOFTGPU, "status", "--json"],
                        ["tail", "-20", self.environment["TANDEM_SOCKET"] + ".log"]):
            done = self.call(*command)
            say("# "
                + (" ".join(command) + "\n" + (done.stdout + done.stderr)[-30000:]).replace(
                    "\n", "\n# "))
        for job in {job["job"] for job in self.jobs()}:
            say(f"# explain {job}\n# "
                + self.call(TANDEM, "explain", job).stdout.strip().replace("\n", "\n# "))
        if "TANDEM_TEST_ON_FAILURE" in os.environ:
            subprocess.run(os.environ["TANDEM_TEST_ON_FAILURE"], shell=True, env=self.environment,
                           timeout=DEADLINE_S)

    def status(self):
        return json.loads(self.call(SOFTGPU, "status", "--json").stdout)["gpus"][0]

    def jobs(self):
        done = self.call(TANDEM, "ps", "--json")
        assert done.stdout, done  # without a daemon it is [], with an error beside it
        return json.loads(done.stdout)

    def events(self, kind=None):
        return [e for e in json.loads(self.call(TANDEM, "events", "--json").stdout)
                if kind in (None, e["kind"])]

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


def tries(most, told):
    """For a loop that ends by break or return: it fails after so many rounds, with told()."""
    yield from range(most)
    raise AssertionError(f"not in {most} tries: {told()}")


def free_port():
    """One that no connection gets by itself: those are given others, from 32768 on."""
    for _ in tries(1000, lambda: "all ports are taken"):
        port = random.randrange(10000, 32768)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port


def trains_that_take_turns(world, count, steps, backend="swap"):
    """So many programs of LARGE, which are all there before any goes on: a start takes any time on
    a busy machine, and what a program does on the GPU takes no longer there than elsewhere."""
    programs = []
    for _ in tries(20, lambda: "all are there"):
        if len(programs) == count:
            break
        program = world.start(TRAIN, *LARGE[:-1], str(steps), wrap=backend)
        until(lambda: any(e["pid"] == program.pid for e in world.events("opened")), "it has begun")
        if world.call(TANDEM, "pause", str(program.pid)).returncode == 0:
            programs.append(program)
        else:
            finish(program)  # it was faster than this test
    for program in programs:
        assert world.call(TANDEM, "resume", str(program.pid)).returncode == 0
    return programs


def nothing_is_left(world):
    until(lambda: world.status()["plain_bytes"] == 0 and world.status()["processes"] == 0,
          "memory of the dead is freed")
    until(lambda: world.jobs() == [], "jobs of the dead are gone")


def result_of(number, case):
    try:
        case()
        return f"ok {number} - {case.__name__}"
    except Skip as why:
        return f"ok {number} - {case.__name__} # SKIP {why}"
    except Exception as problem:  # whatever a case meets is its failure, and the others go on
        where = "".join(traceback.format_tb(problem.__traceback__)[1:])
        what = (f"{problem}: {problem.doc!r}" if isinstance(problem, json.JSONDecodeError)
                else str(problem))
        return (f"not ok {number} - {case.__name__}\n# "
                + f"{what}\n{where}".rstrip().replace("\n", "\n# "))


def say(text):
    """A line, whole: cases of several worlds say something at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell_where():
    """A file that hangs is ended by the test runner, and should have said where it was. Not by
    faulthandler, which reads the stacks while they change: it has ended a long run by a fault."""
    while True:
        time.sleep(HANG_S)
        for frame in sys._current_frames().values():
            sys.stderr.write("# still at:\n" + "".join(traceback.format_stack(frame)))
        sys.stderr.flush()


def run_cases(cases, at_once=1):
    """Prints TAP. Arguments after the build choose cases by name. at_once: cases with worlds of
    their own that wait more than they work."""
    print(f"1..{len(cases)}", flush=True)
    chosen = sys.argv[2:]
    threading.Thread(target=tell_where, daemon=True).start()

    def run(number, case):
        if chosen and case.__name__ not in chosen:
            return f"ok {number} - {case.__name__} # SKIP not chosen"
        return result_of(number, case)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for result in pool.map(run, range(1, len(cases) + 1), cases):
            say(result)
