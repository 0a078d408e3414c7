"""Memory of the backend swap in the reach of another GPU, and of hardware beside it. TAP on stdout;
argument: the build."""
from shell import *

NOT_ENABLED, READWRITE, NONE = 705, 3, 0


def rival_takes_turns(world, *pids):
    """A program that wants GPU 0 until it is killed; returned once these have given way to it."""
    rival = world.start(TRAIN, "--size", "40m", "--gpu", "5ms", "--cpu", "1ms", "--steps", "100000",
                        wrap="swap")
    until(lambda: all(any(e["pid"] == pid for e in world.events("shrunk"))
                      for pid in pids) or rival.poll() is not None, "others have given way")
    assert rival.poll() is None, rival.communicate()
    return rival


def explained(world, shell):
    return world.call(TANDEM, "explain", str(shell.process.pid)).stdout


def end(rival):
    rival.kill()
    rival.communicate()


def another_gpu_reaches_what_was_opened_to_it_before_and_after_and_again_when_it_is_back():
    with World("--gpus", "2") as world:
        a = under_swap(world)
        before = a.do("alloc", 30 * MIB)
        a.do("set", before, 0, 1)
        a.do("device", 1)
        assert a.do("access", before) == NONE
        a.do("peer", 0)
        assert a.do("access", before) == READWRITE
        a.do("add", before)
        a.do("device", 0)
        after, small = a.do("alloc", 4 * MIB), a.do("alloc", 1000)
        a.do("set", after, 0, 10), a.do("set", small, 0, 20)
        a.do("device", 1)
        a.do("add", after), a.do("add", small)
        rival = rival_takes_turns(world, a.process.pid)
        for memory in (before, after, small):
            a.do("add", memory)
        assert [a.do("get", m, 0) for m in (before, after, small)] == [3, 12, 22]
        end(rival)
        a.do("unpeer", 0)
        assert a.do("access", before) == NONE
        assert a.ask("unpeer", 0)[0] == NOT_ENABLED
        assert a.ask("add", before)[0] != 0, "it is shut"
        a.kill()
        nothing_is_left(world)


def memory_that_hardware_was_told_of_stays_until_it_is_freed():
    with World() as world:
        a = under_swap(world)
        told, moved = a.do("alloc", 20 * MIB), a.do("alloc", 10 * MIB)
        a.do("set", told, 0, 5), a.do("set", moved, 0, 6)
        a.do("sync_memops", told)
        rival = rival_takes_turns(world, a.process.pid)
        row = [j for j in world.jobs() if j["pid"] == a.process.pid][0]
        assert row["resident_bytes"] >= 20 * MIB, row
        until(lambda: "cannot leave" in explained(world, a), "it is said why")
        assert a.do("get", told, 0) == 5 and a.do("get", moved, 0) == 6
        a.do("free", told)
        until(lambda: "cannot leave" not in explained(world, a), "nothing is held any more")
        end(rival)
        a.end()
        nothing_is_left(world)


run_cases([
    another_gpu_reaches_what_was_opened_to_it_before_and_after_and_again_when_it_is_back,
    memory_that_hardware_was_told_of_stays_until_it_is_freed,
])
