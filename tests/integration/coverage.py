"""Every way to device memory and every launch form under tandem, with each backend. TAP on stdout;
argument: the build."""
import sys

from world import *

PROGRAM = f"{BUILD}/tests/integration/coverage_test"
WRAPPER = f"{BUILD}/tests/integration/libwrapper.so"


def tap_passes(done):
    assert (done.returncode
            == 0), "\n".join(line for line in (done.stdout + done.stderr).splitlines()
                             if not line.startswith("ok "))


def memory_is_counted(backend):
    with World("--gpus", "2") as world:
        tap_passes(world.call(SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--",
                              PROGRAM))
        nothing_is_left(world)


def memory_of_every_kind_is_counted_beside_plain():
    memory_is_counted("plain")


def memory_of_every_kind_is_counted_beside_swap():
    memory_is_counted("swap")


def memory_of_every_kind_is_within_a_jobs_limit():
    with World("--gpus", "2") as world:
        # A context takes 1 MiB of it.
        program = [SOFTGPU, "run", "--", TANDEM, "run", "--mem", "41Mi", "--backend", "plain", "--",
                   PROGRAM]
        tap_passes(world.call(
                       *program,
                       "more_than_there_is_is_refused_in_each_way_and_leaves_nothing_counted",
                       "a_pool_too_scattered_to_serve_does_not_grow_beyond_what_there_is",
                       "what_pools_keep_gives_way_before_a_program_is_told_that_there_is_none"))


def holder(world, pooled, moved):
    return world.start(PROGRAM, "what_it_was_told_to_hold_keeps_its_bytes", wrap="swap",
                       TANDEM_TEST_GO=f"{world.directory}/go", TANDEM_TEST_POOLED=str(pooled),
                       TANDEM_TEST_MOVED=str(moved))


def tap_ends_well(process):
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out + err


def what_cannot_move_is_not_closed_for_what_then_cannot_come():
    with World() as world:
        first = holder(world, 40, 2)
        until(lambda: world.status()["plain_bytes"] >= 40 << 20, "the pool holds its memory")
        pid = world.jobs()[0]["pid"]
        second = world.start(TRAIN, *LARGE, wrap="swap")
        until(lambda: (any(e["pid"] != pid for e in world.events("waiting"))
                       or second.poll() is not None),
              "the second waits")
        open(f"{world.directory}/go", "w").close()
        tap_ends_well(first)
        finish(second)
        nothing_is_left(world)


def a_little_that_cannot_move_keeps_nobody_from_taking_turns():
    with World() as world:
        programs = [holder(world, 2, 40) for _ in range(2)]
        until(lambda: len({e["pid"] for e in world.events("drained")}) == 2, "both have given way")
        open(f"{world.directory}/go", "w").close()
        for program in programs:
            tap_ends_well(program)
        nothing_is_left(world)


def runs_beside(preload):
    """What the other interposer counted: (launches, allocations)."""
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        count = f"{world.directory}/count"
        finish(world.start(TRAIN, *SMALL, LD_PRELOAD=preload, TANDEM_BACKEND="swap",
                           TANDEM_TEST_COUNT=count))
        assert world.events("attached") and world.events("opened"), world.events()
        nothing_is_left(world)
        if not os.path.exists(count):
            return 0, 0
        with open(count) as f:
            return tuple(map(int, f.read().split()))


def an_interposer_in_front_of_tandem_sees_what_the_program_calls():
    launches, allocations = runs_beside(f"{WRAPPER}:{LIBRARY}")
    assert launches >= 6 and allocations >= 1, (launches, allocations)


def an_interposer_behind_tandem_does_not_disturb_it():
    """It is not called either: tandem calls the driver directly, so that no other library sees
    tandem's own calls."""
    assert runs_beside(f"{LIBRARY}:{WRAPPER}") == (0, 0)


run_cases([
    an_interposer_in_front_of_tandem_sees_what_the_program_calls,
    an_interposer_behind_tandem_does_not_disturb_it,
    memory_of_every_kind_is_counted_beside_plain,
    memory_of_every_kind_is_counted_beside_swap,
    memory_of_every_kind_is_within_a_jobs_limit,
    what_cannot_move_is_not_closed_for_what_then_cannot_come,
    a_little_that_cannot_move_keeps_nobody_from_taking_turns,
])
