"""Clients of MPS end in many ways, with work in flight; a neighbour notices nothing, and each ends
as it would have without tandem. TAP on stdout; arguments: the build, cases.
"""
import contextlib
import os
import signal
import subprocess
import threading

from mps_world import HALF, MpsWorld, ask
from world import BUILD, DEADLINE_S, SOFTGPU, TANDEM, run_cases, until

PROGRAM = f"{BUILD}/tests/integration/mps_exit_test"
TERM, INT, HUP, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL
# The way, the signal that it gets (None: none), and how it ends.
WAYS = [("pause", TERM, -TERM), ("pause", INT, -INT), ("sleep", TERM, -TERM), ("poll", HUP, -HUP),
        ("read", TERM, -TERM), ("synchronise", INT, -INT), ("ask", TERM, -TERM),
        ("handler-exits", TERM, 7), ("handler-exits-in-the-driver", TERM, 7),
        ("handler-exits-at-once", TERM, 7),
        ("handler-returns", TERM, 9), ("resets", TERM, -TERM), ("ignore", TERM, 2),
        ("sigwait", TERM, 5), ("fault", None, -signal.SIGSEGV), ("abort", None, -signal.SIGABRT),
        ("pipe", None, -signal.SIGPIPE), ("exit", None, 4), ("exit-at-once", None, 3),
        ("fork", TERM, -TERM), ("look", signal.SIGUSR1, -signal.SIGUSR1)]


class Ending:
    def __init__(self, world, way, tandem=True, options=(), **environment):
        self.reads = way == "ignore"
        prefix = [SOFTGPU, "run", "--"] + ([TANDEM, "run", *options, "--"] if tandem else [])
        self.process = subprocess.Popen(
            [*prefix, PROGRAM], env=dict(world.environment, WAY=way, **environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        # Whatever is read of it ends by then.
        self.deadline = threading.Timer(DEADLINE_S, self.process.kill)
        self.deadline.daemon = True
        self.deadline.start()
        line = self.process.stdout.readline()
        while line and line != "ready\n":
            assert not line.startswith("wrong"), (way, line)
            line = self.process.stdout.readline()

    def end(self, number):
        if number:
            self.process.send_signal(number)
        if self.reads:
            self.process.stdin.write("x")
            self.process.stdin.flush()
        out, err = self.process.stdout.read(), self.process.stderr.read()
        self.process.wait(DEADLINE_S)
        self.deadline.cancel()
        self.process.stdin.close()
        return self.process.returncode, out + err


def suspicions(world):
    return [e["detail"] for e in world.events("mps") if e["detail"].startswith("suspect")]


def each_ends_as_it_would_have_and_hangs_nobody():
    with MpsWorld() as world:
        world.turn_on()
        other = world.client()
        for way, number, expected in WAYS:
            code, said = Ending(world, way).end(number)
            assert code == expected and "wrong" not in said, (way, number, code, expected, said)
            assert ask(other, f"run {HALF} 2")[0] == 0, way
            assert not suspicions(world), (way, suspicions(world))


def the_ways_are_those_of_a_program_without_tandem():
    """Else the test above would hold programs to the wrong thing."""
    with MpsWorld() as world:
        for way, number, expected in WAYS:
            code, said = Ending(world, way, tandem=False).end(number)
            assert code == expected and "wrong" not in said, (way, number, code, expected, said)


def one_whose_threads_have_the_lock_of_malloc_ends():
    with MpsWorld() as world:
        world.turn_on()
        other = world.client()
        for _ in range(6):
            ending = Ending(world, "allocate", MALLOC_ARENA_MAX="1")
            assert ending.end(TERM) == (-TERM, "")
            assert ask(other, f"run {HALF} 2")[0] == 0
        assert not suspicions(world), suspicions(world)


def an_eviction_hangs_nobody():
    with MpsWorld() as world:
        world.turn_on()
        other = world.client()
        for _ in range(3):
            ending = Ending(world, "synchronise")
            done = world.tandem("evict", str(ending.process.pid))
            assert done.returncode == 0, done
            assert ending.end(None)[0] == -TERM
            assert ask(other, f"run {HALF} 2")[0] == 0
        assert not suspicions(world), suspicions(world)


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        for child in f.read().split():
            with contextlib.suppress(OSError), open(f"/proc/{child}/comm") as name:
                if name.read().strip() == "mps_exit_test":
                    return int(child)
    return 0


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def the_death_of_its_supervisor_ends_it_and_hangs_nobody():
    with MpsWorld() as world:
        world.turn_on()
        other = world.client()
        for way in ("synchronise", "ignore"):
            ending = Ending(world, way, options=("--restart", "on-failure"))
            child = child_of(ending.process.pid)
            assert child, way
            ending.process.kill()
            ending.process.wait(DEADLINE_S)
            until(lambda: not is_there(child), "the program ends, too")
            if way == "synchronise":
                assert ask(other, f"run {HALF} 2")[0] == 0
                assert not suspicions(world), suspicions(world)


def one_with_too_much_to_do_is_let_go_of_by_the_server():
    with MpsWorld() as world:
        world.turn_on()
        other = world.client()
        ending = Ending(world, "queue")
        assert ending.end(TERM) == (-TERM, "")
        assert ask(other, f"run {HALF} 2")[0] == 0
        assert not suspicions(world), suspicions(world)


def one_that_cannot_be_caught_makes_mps_suspect():
    with MpsWorld() as world:
        world.turn_on()
        ending = Ending(world, "synchronise")
        pid = ending.process.pid
        assert ending.end(KILL)[0] == -KILL
        until(lambda: suspicions(world), "it is suspect")
        assert suspicions(world) == [f"suspect: process {pid} has ended without leaving MPS"]


assert os.path.exists(PROGRAM)
if __name__ == "__main__":
    run_cases([each_ends_as_it_would_have_and_hangs_nobody,
               the_ways_are_those_of_a_program_without_tandem,
               one_whose_threads_have_the_lock_of_malloc_ends, an_eviction_hangs_nobody,
               the_death_of_its_supervisor_ends_it_and_hangs_nobody,
               one_with_too_much_to_do_is_let_go_of_by_the_server,
               one_that_cannot_be_caught_makes_mps_suspect], at_once=4)
