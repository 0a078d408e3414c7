"""Memory of the backend swap on the host: it outlives contexts, and has a limit. TAP on stdout;
argument: the build."""
from shell import *

OUT_OF_MEMORY = 2


def rival(world, size):
    return world.start(TRAIN, "--size", size, "--gpu", "5ms", "--cpu", "1ms", "--steps", "100000",
                       wrap="swap")


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
        until(lambda: (row(world, a.process.pid)["host_bytes"] >= 30 * MIB
                       or other.poll() is not None),
              "it has given way")
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
        until(
                lambda: any(e["pid"] == a.process.pid
                            for e in world.events("drained")) or other.poll() is not None,
                "it is asked to give way")
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


def what_had_no_place_for_a_while_leaves_when_there_is_one():
    with World() as world:
        a = under_swap(world)
        memory = a.do("alloc", 40 * MIB)
        a.do("set", memory, 0, 7)
        assert world.call(SOFTGPU, "fault", "host-memory", "10m").returncode == 0
        other = world.start(TRAIN, *LARGE, wrap="swap")
        explained = lambda: world.call(TANDEM, "explain", str(a.process.pid)).stdout
        until(lambda: ("cannot leave" in explained() or "no place for" in explained()
                       or other.poll() is not None),
              "it could not give way")
        assert other.poll() is None, other.communicate()
        assert row(world, a.process.pid)["resident_bytes"] >= 30 * MIB, row(world, a.process.pid)
        assert world.call(SOFTGPU, "fault", "clear").returncode == 0
        finish(other)
        assert a.do("get", memory, 0) == 7
        a.end()
        nothing_is_left(world)


def who_has_a_place_neither_there_nor_on_the_host_waits_and_nobody_for_it():
    """Admitted after its patience, with a part for which host.limit leaves nothing, it waits for
    that. The program with the rest of the GPU goes on after its own patience, however often."""
    for ends in ("limit", "other"):
        with World() as world:
            a, b = under_swap(world), under_swap(world)
            memory = a.do("alloc", 40 * MIB)
            a.do("set", memory, 0, 7)
            for setting in ("memory.patience=500ms", "host.limit=4m"):
                assert world.call(TANDEM, "set", setting).returncode == 0
            b.do("alloc", 16 * MIB)
            large = b.do("alloc", 24 * MIB)
            b.send("add", large)
            explained = lambda: world.call(TANDEM, "explain", str(b.process.pid)).stdout
            for n in range(8, 10):
                until(lambda: "A part of its memory has no place" in explained(),
                      "it has what there is of the GPU and of the host")
                a.do("add", memory)
                assert a.do("get", memory, 0) == n
                assert not select.select([b.process.stdout], [], [], 0)[0], "it has a part nowhere"
            if ends == "limit":
                assert world.call(TANDEM, "set", "host.limit=none").returncode == 0
            else:
                a.do("free", memory)
            assert b.answer()[0] == 0
            a.end(), b.end()
            nothing_is_left(world)


def or_it_is_refused():
    with World() as world:
        a = Shell(world, "env", "TANDEM_HOST_LIMIT=10m", "TANDEM_HOST_FULL=refuse", TANDEM, "run",
                  "--backend", "swap", "--")
        first = a.do("alloc", 8 * MIB)
        assert a.ask("alloc", 4 * MIB)[0] == OUT_OF_MEMORY
        a.do("free", first)
        a.do("alloc", 10 * MIB)
        a.end()
        nothing_is_left(world)


def all_gpus_of_a_program_count_together():
    with World("--gpus", "2") as world:
        a = Shell(world, "env", "TANDEM_HOST_LIMIT=10m", "TANDEM_HOST_FULL=refuse", TANDEM, "run",
                  "--backend", "swap", "--")
        first = a.do("alloc", 6 * MIB)
        a.do("device", 1)
        assert a.ask("alloc", 6 * MIB)[0] == OUT_OF_MEMORY
        a.do("alloc", 4 * MIB)
        a.do("free", first)
        a.do("alloc", 6 * MIB)
        a.end()
        nothing_is_left(world)


def what_lies_on_the_host_beyond_a_soft_limit_counts_too():
    with World() as world:
        a = Shell(world, "env", "TANDEM_HOST_LIMIT=10m", TANDEM, "run", "--mem-soft", "8m", "--")
        a.do("alloc", 8 * MIB)
        second = a.do("alloc", 8 * MIB)
        assert a.ask("alloc", 4 * MIB)[0] == OUT_OF_MEMORY
        for _ in range(5):
            a.do("set", second, 0, 7)
            a.do("free", second)
            second = a.do("alloc", 8 * MIB)
        a.end()
        nothing_is_left(world)


def without_a_daemon_it_counts_in_the_programs_own_limit():
    with World() as world:
        a = Shell(world, "env", f"LD_PRELOAD={LIBRARY}", "TANDEM_BACKEND=swap",
                  "TANDEM_MEM_SOFT=8m", "TANDEM_HOST_LIMIT=10m")
        a.do("alloc", 8 * MIB)
        a.do("alloc", 8 * MIB)
        assert a.ask("alloc", 4 * MIB)[0] == OUT_OF_MEMORY
        a.do("alloc", 2 * MIB)
        a.end()


def and_so_it_does_for_all_programs_of_the_node():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", "host.limit=20m").returncode == 0
        a, b = [Shell(world, TANDEM, "run", "--mem-soft", "4m", "--") for _ in range(2)]
        a.do("alloc", 4 * MIB), b.do("alloc", 4 * MIB)
        first = a.do("alloc", 12 * MIB)
        a.do("set", first, 0, 7)
        assert b.ask("alloc", 12 * MIB)[0] == OUT_OF_MEMORY
        second = b.do("alloc", 8 * MIB)
        assert kept(world) <= 20 * MIB, world.jobs()
        b.do("free", second)
        assert b.ask("alloc", 12 * MIB)[0] == OUT_OF_MEMORY
        assert a.do("get", first, 0) == 7
        a.do("free", first)
        b.do("set", b.do("alloc", 12 * MIB), 0, 8)
        a.end(), b.end()
        nothing_is_left(world)


def a_place_is_asked_for_before_anything_is_to_lie_there():
    with World() as world:
        a = under_swap(world)
        memory = a.do("alloc", 40 * MIB)
        a.do("set", memory, 0, 7)
        assert world.call(TANDEM, "set", "host.limit=44m").returncode == 0
        assert (world.call(TANDEM, "set", row(world, a.process.pid)["job"],
                           "mem-soft=8m").returncode
                == 0)
        until(lambda: row(world, a.process.pid)["resident_bytes"] <= 8 * MIB, "all of it goes")
        a.do("add", memory)
        # By one drain. Its context's memory, when NVML has shown it, takes a part of the limit.
        assert world.events("shrunk")[0]["value_bytes"] >= 32 * MIB, world.events("shrunk")
        assert len(world.events("drained")) <= 2, world.events("drained")
        a.end()
        nothing_is_left(world)


def a_soft_limit_for_which_the_host_has_no_place_keeps_nobody_waiting():
    with World() as world:
        a = under_swap(world)
        memory = a.do("alloc", 40 * MIB)
        a.do("set", memory, 0, 7)
        assert world.call(TANDEM, "set", "host.limit=10m").returncode == 0
        assert (world.call(TANDEM, "set", row(world, a.process.pid)["job"],
                           "mem-soft=8m").returncode
                == 0)
        until(lambda: row(world, a.process.pid)["host_bytes"] >= 8 * MIB,
              "it makes use of what there is")
        a.do("add", memory)
        assert kept(world) <= 10 * MIB, world.jobs()
        assert world.call(TANDEM, "set", "host.limit=none").returncode == 0
        until(lambda: row(world, a.process.pid)["resident_bytes"] <= 8 * MIB,
              "all of it goes when there is a place")
        assert a.do("get", memory, 0) == 8
        a.end()
        nothing_is_left(world)


def kept(world):
    """What both have on the host, as the processes have it mapped."""
    return sum(j["host_bytes"] for j in world.jobs())


def all_together_have_no_more_on_the_host_than_the_node_lets_them():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        done = world.call(TANDEM, "set", "host.limit=-1")
        assert done.returncode and '"-1"' in done.stderr, done
        assert world.call(TANDEM, "set", "host.limit=44m").returncode == 0
        a, b = under_swap(world), under_swap(world)
        first = a.do("alloc", 40 * MIB)
        a.do("set", first, 0, 7), a.do("set", first, 10 * MIB - 1, 8)
        second = b.do("alloc", 40 * MIB)
        b.do("set", second, 0, 9)
        for _ in range(3):  # each gives way to the other: what one keeps pinned the other gets
            a.do("add", first), b.do("add", second)
            assert kept(world) <= 44 * MIB, world.jobs()
        assert a.do("get", first, 0) == 10 and b.do("get", second, 0) == 12
        assert {e["pid"] for e in world.events("drained")} == {a.process.pid, b.process.pid}
        a.end(), b.end()
        nothing_is_left(world)


def what_two_want_on_the_host_one_gets_and_the_others_stay_on_the_gpu_until_it_is_freed():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", "host.limit=10m").returncode == 0
        a = under_swap(world)
        memory = a.do("alloc", 40 * MIB)
        a.do("set", memory, 0, 7)
        other = world.start(TRAIN, *LARGE, wrap="swap")
        until(
                lambda: any(e["pid"] == a.process.pid
                            for e in world.events("drained")) or other.poll() is not None,
                "it is asked to give way")
        assert a.do("get", memory, 0) == 7
        assert row(world, a.process.pid)["resident_bytes"] >= 30 * MIB, row(world, a.process.pid)
        assert ("the host has no place for"
                in world.call(TANDEM, "explain", str(a.process.pid)).stdout)
        assert other.poll() is None, "it had to wait"
        assert world.call(TANDEM, "set", "host.limit=none").returncode == 0
        finish(other)
        assert a.do("get", memory, 0) == 7
        a.end()
        nothing_is_left(world)


def nobody_allocates_what_could_not_leave_beside_what_others_have():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", "host.limit=20m").returncode == 0
        wrap = ["env", "TANDEM_HOST_FULL=refuse", TANDEM, "run", "--backend", "swap", "--"]
        a, b = Shell(world, *wrap), Shell(world, *wrap)
        first = a.do("alloc", 14 * MIB)
        assert b.ask("alloc", 8 * MIB)[0] == OUT_OF_MEMORY
        b.do("alloc", 4 * MIB)
        a.do("free", first)
        until(lambda: b.ask("alloc", 12 * MIB)[0] == 0, "what one has freed the other can have")
        assert a.ask("alloc", 8 * MIB)[0] == OUT_OF_MEMORY
        os.kill(b.process.pid, signal.SIGKILL)
        until(lambda: a.ask("alloc", 8 * MIB)[0] == 0, "and what one had that died")
        a.end()
        nothing_is_left(world)


run_cases([
    bytes_on_the_host_outlive_the_context_that_put_them_there,
    what_has_no_place_on_the_host_stays_and_others_wait_for_it,
    what_had_no_place_for_a_while_leaves_when_there_is_one,
    who_has_a_place_neither_there_nor_on_the_host_waits_and_nobody_for_it,
    or_it_is_refused,
    all_gpus_of_a_program_count_together,
    what_lies_on_the_host_beyond_a_soft_limit_counts_too,
    without_a_daemon_it_counts_in_the_programs_own_limit,
    and_so_it_does_for_all_programs_of_the_node,
    a_place_is_asked_for_before_anything_is_to_lie_there,
    a_soft_limit_for_which_the_host_has_no_place_keeps_nobody_waiting,
    all_together_have_no_more_on_the_host_than_the_node_lets_them,
    what_two_want_on_the_host_one_gets_and_the_others_stay_on_the_gpu_until_it_is_freed,
    nobody_allocates_what_could_not_leave_beside_what_others_have,
])
