"""tandem checkpoint and tandem restore: the driver takes programs off their GPUs and brings them
back, whoever dies meanwhile. TAP on stdout; argument: the build."""
import contextlib

from migrate_program import Program
from world import *

MIB = 1 << 20
FAILS = "CUDA_ERROR_NOT_SUPPORTED"


def order(world, program, verb):
    return world.call(TANDEM, verb, str(program.pid()))


def done(world, program, verb):
    result = order(world, program, verb)
    assert result.returncode == 0 and f"{verb}" in result.stdout, result


def refused(world, program, verb, words):
    result = order(world, program, verb)
    assert result.returncode and words in result.stderr, result


def state(world, program):
    return [job["state"] for job in world.jobs() if job["pid"] == program.pid()]


def stands_still(program):
    seen = program.turns()
    time.sleep(0.2)
    assert program.turns() == seen, "it goes on"


@contextlib.contextmanager
def fault(world, call):
    assert world.call(SOFTGPU, "fault", "call", f"cuCheckpointProcess{call}={FAILS}"
                      ).returncode == 0
    yield
    world.call(SOFTGPU, "fault", "clear")


def a_program_leaves_its_gpu_and_comes_back():
    for backend in ("swap", "plain"):
        with World() as world:
            program = Program(world, 1, backend=backend)
            done(world, program, "checkpoint")
            assert state(world, program) == ["checkpointed"]
            assert world.status()["plain_bytes"] == 0, world.status()
            assert world.jobs()[0]["resident_bytes"] == 0, world.jobs()
            stands_still(program)
            refused(world, program, "checkpoint", "it is checkpointed already")
            done(world, program, "restore")
            program.goes_on()
            refused(world, program, "restore", "it is not checkpointed")
            program.end()
            nothing_is_left(world)


def others_have_its_memory_until_it_comes_back():
    with World("--memory", "64m") as world:
        program = Program(world, 1)
        done(world, program, "checkpoint")
        big = world.start(TRAIN, "--size", "60m", "--gpu", "5ms", "--cpu", "5ms", "--steps",
                          "100000", wrap="plain")
        until(lambda: world.status()["plain_bytes"] > 55 * MIB or big.poll() is not None,
              "another one has all of the memory")
        refused(world, program, "restore", "has room for")
        assert state(world, program) == ["checkpointed"]
        big.kill()
        big.communicate()
        done(world, program, "restore")
        program.goes_on()
        program.end()
        nothing_is_left(world)


def what_the_driver_refuses_changes_nothing():
    with World() as world:
        program = Program(world, 1)
        for call, words in (("Lock", "does not lock it"), ("Checkpoint", "refuses to checkpoint")):
            with fault(world, call):
                refused(world, program, "checkpoint", words)
            program.goes_on()
        done(world, program, "checkpoint")
        with fault(world, "Restore"):
            refused(world, program, "restore", "it stays on the host")
        assert state(world, program) == ["checkpointed"]
        done(world, program, "restore")
        program.goes_on()
        program.end()
        managed = Program(world, 2, 1, "managed")
        refused(world, managed, "checkpoint", "it has unified memory")
        managed.goes_on()
        managed.end()
        nothing_is_left(world)


def a_daemon_that_was_restarted_knows_of_it():
    with World() as world:
        program = Program(world, 1)
        done(world, program, "checkpoint")
        os.kill(world.daemon_pid(), signal.SIGKILL)
        until(lambda: world.call(TANDEM, "ps").returncode, "the daemon is gone")
        world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")  # starts another daemon
        until(lambda: state(world, program) == ["checkpointed"], "it is known again")
        assert world.jobs()[0]["resident_bytes"] == 0, world.jobs()
        stands_still(program)
        done(world, program, "restore")
        program.goes_on()
        program.end()
        nothing_is_left(world)


def a_checkpoint_counts_as_memory_of_the_host():
    with World() as world:
        program = Program(world, 1)
        world.call(TANDEM, "set", "host.limit=1m")
        refused(world, program, "checkpoint", "host.limit leaves room for")
        program.goes_on()
        world.call(TANDEM, "set", "host.limit=none")
        done(world, program, "checkpoint")
        done(world, program, "restore")
        program.goes_on()
        program.end()
        nothing_is_left(world)


def a_checkpointed_program_can_be_killed():
    with World() as world:
        program = Program(world, 1)
        done(world, program, "checkpoint")
        os.kill(program.pid(), signal.SIGKILL)
        program.process.communicate()
        nothing_is_left(world)


def whoever_starts_the_daemon_may_ignore_his_children():
    with World() as world:
        path = f"{world.directory}/tandemd"
        with open(path, "w") as f:
            f.write(f'#!/bin/sh\nexec env --ignore-signal=CHLD {TANDEMD} "$@"\n')
        os.chmod(path, 0o755)
        world.environment["TANDEMD"] = path
        program = Program(world, 1)
        done(world, program, "checkpoint")
        done(world, program, "restore")
        program.goes_on()


run_cases([a_program_leaves_its_gpu_and_comes_back, others_have_its_memory_until_it_comes_back,
           what_the_driver_refuses_changes_nothing, a_daemon_that_was_restarted_knows_of_it,
           a_checkpoint_counts_as_memory_of_the_host, a_checkpointed_program_can_be_killed,
           whoever_starts_the_daemon_may_ignore_his_children])
