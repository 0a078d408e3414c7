"""Memory of the backend swap on the host: it outlives contexts, and has a limit. TAP on stdout; argument: the build."""
from shell import *

OUT_OF_MEMORY = 2


def rival(world, size):
    return world.start(TRAIN, "--size", size, "--gpu", "5ms", "--cpu", "1ms", "--steps", "100000", wrap="swap")


def end(program):
    program.kill()
    program.communicate()


def row(world, pid):
    return next((j for j in world.jobs() if j["pid"] == pid), None)


def bytes_on_the_host_outlive_the_context_that_put_them_there():
    with World() as world:
        a = under_swap(world)
        a.do("context")
        memory = a.do("alloc", 40 * MIB)
        a.do("set", memory, 0, 7), a.do("set", memory, 10 * MIB - 1, 8)
        other = rival(world, "50m")
        until(lambda: row(world, a.process.pid)["host_bytes"] >= 30 * MIB or other.poll() is not None, "it has given way")
        assert other.poll() is None, other.communicate()
        a.do("end_first")
        assert a.do("get", memory, 0) == 7 and a.do("get", memory, 10 * MIB - 1) == 8
        end(other)
        a.end()
        nothing_is_left(world)


def what_has_no_place_on_the_host_stays_and_others_wait_for_it():
    with World() as world:
        a = Shell(world, "env", "TANDEM_HOST_LIMIT=10m", TANDEM, "run", "--backend", "swap", "--")
        memory = a.do("alloc", 40 * MIB)
        a.do("set", memory, 0, 7)
        other = world.start(TRAIN, *LARGE, wrap="swap")
        until(lambda: any(e["pid"] == a.process.pid for e in world.events("drained")) or other.poll() is not None, "it is asked to give way")
        assert a.do("get", memory, 0) == 7
        a.do("add", memory)
        assert a.do("get", memory, 0) == 8
        assert row(world, a.process.pid)["resident_bytes"] >= 30 * MIB, row(world, a.process.pid)
        assert "cannot leave" in world.call(TANDEM, "explain", str(a.process.pid)).stdout
        assert other.poll() is None, "it had to wait"
        a.do("free", memory)
        finish(other)
        a.end()
        nothing_is_left(world)


def or_it_is_refused():
    with World() as world:
        a = Shell(world, "env", "TANDEM_HOST_LIMIT=10m", "TANDEM_HOST_FULL=refuse", TANDEM, "run", "--backend", "swap", "--")
        first = a.do("alloc", 8 * MIB)
        assert a.ask("alloc", 4 * MIB)[0] == OUT_OF_MEMORY
        a.do("free", first)
        a.do("alloc", 10 * MIB)
        a.end()
        nothing_is_left(world)


run_cases([
    bytes_on_the_host_outlive_the_context_that_put_them_there,
    what_has_no_place_on_the_host_stays_and_others_wait_for_it,
    or_it_is_refused,
])
