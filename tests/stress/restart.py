"""A hundred programs under a daemon that is replaced: none fails, all register again, and their
limits hold. TAP on stdout; argument: the build."""
import json
import os
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from world import *

PROGRAM = f"{BUILD}/tests/integration/limit_test"
COUNT = 100
BLOCK = 2 << 20
LIMIT = BLOCK + (1 << 20)  # with its context
FULL = {"result": 2, "bytes": BLOCK, "total": LIMIT}


def begin(world):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--mem", str(LIMIT), "--", PROGRAM, "fill",
               str(BLOCK)]
    return subprocess.Popen(command, env=world.environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tries_again(program):
    program.stdin.write("\n")
    program.stdin.flush()
    assert select.select([program.stdout], [], [], DEADLINE_S)[0], f"{program.pid} says nothing"
    said = json.loads(program.stdout.readline())
    return {key: said[key] for key in FULL}


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def all_come_back(how):
    with World("--memory", "512m") as world:
        programs = [begin(world) for _ in range(COUNT)]
        assert [tries_again(program) for program in programs] == [FULL] * COUNT
        until(lambda: len(world.jobs()) == COUNT, "all are registered")
        old = world.daemon_pid()
        os.kill(old, how)
        until(lambda: is_gone(old), "the daemon is gone")
        assert ([tries_again(program) for program in programs]
                == [FULL] * COUNT), "without a daemon each keeps its limit by itself"
        world.call(TANDEM, "run", "--", "true")
        until(lambda: len({event["pid"] for event in world.events("returned")}) == COUNT,
              "all are registered again")
        until(lambda: [job["demanded_bytes"] for job in world.jobs()] == [BLOCK] * COUNT,
              "and have said what they have")
        assert ([tries_again(program) for program in programs]
                == [FULL] * COUNT), "and the new daemon holds them to it"
        for program in programs:
            program.communicate(timeout=DEADLINE_S)
            assert program.returncode == 0
        nothing_is_left(world)


def a_daemon_that_is_killed():
    all_come_back(signal.SIGKILL)


def a_daemon_that_is_replaced_in_good_order():
    all_come_back(signal.SIGTERM)


run_cases([a_daemon_that_is_killed, a_daemon_that_is_replaced_in_good_order])
