"""Memory made of chunks that can leave the GPU, as programs see it. TAP on stdout; argument: the
build."""
from world import *

PROGRAM = f"{BUILD}/tests/integration/swap_test"
MIB = 1 << 20


def tap_passes(done):
    assert (done.returncode
            == 0), "\n".join(line for line in (done.stdout + done.stderr).splitlines()
                             if not line.startswith("ok "))


def tap_ends_well(process):
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out + err


def memory_is_seen(backend):
    with World() as world:
        tap_passes(world.call(SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--",
                              PROGRAM))
        nothing_is_left(world)


def memory_of_chunks_is_seen_as_cuMemAllocs():
    memory_is_seen("swap")


def and_that_is_what_the_driver_shows():
    memory_is_seen("plain")


def with_pieces(world, count, size):
    return world.start(PROGRAM, "pieces_keep_their_bytes_while_they_come_and_go", wrap="swap",
                       TANDEM_TEST_GO=f"{world.directory}/go", TANDEM_TEST_COUNT=str(count),
                       TANDEM_TEST_BYTES=str(size))


def many_small_allocations_cost_the_gpu_little_more_than_their_bytes():
    with World() as world:
        before = world.status()["plain_bytes"]
        program = with_pieces(world, 10000, 1024)
        until(lambda: (world.jobs() and world.jobs()[0]["launches"] > 0
                       or program.poll() is not None),
              "it runs")
        until(lambda: (world.status()["plain_bytes"] - before >= 10000 * 1024
                       or program.poll() is not None),
              "it has its memory")
        cost = world.status()["plain_bytes"] - before
        assert cost <= 12 * MIB, cost
        assert world.jobs()[0]["demanded_bytes"] <= 10 * MIB, world.jobs()
        open(f"{world.directory}/go", "w").close()
        tap_ends_well(program)
        nothing_is_left(world)


def what_a_graph_names_is_looked_up_only_while_it_is_there():
    for naming in range(5):
        with World() as world:
            first = world.start(PROGRAM, "what_a_graph_names_is_there_when_a_driver_looks_it_up",
                                wrap="swap", TANDEM_TEST_NAMING=str(naming),
                                TANDEM_TEST_GO=f"{world.directory}/away")
            until(lambda: (world.jobs() and world.jobs()[0]["demanded_bytes"] >= 40 * MIB
                           or first.poll() is not None),
                  "it has its memory")
            pid = world.jobs()[0]["pid"]
            second = with_pieces(world, 400, 100_000)
            until(lambda: [j for j in world.jobs()
                           if j["pid"] == pid and j["resident_bytes"] < 30 * MIB] or any(
                      p.poll() is not None for p in (first, second)), "its memory is away")
            open(f"{world.directory}/away", "w").close()
            tap_ends_well(first)
            open(f"{world.directory}/go", "w").close()
            tap_ends_well(second)
            nothing_is_left(world)


def pieces_take_turns_with_their_bytes():
    with World() as world:
        programs = [with_pieces(world, 400, 100_000) for _ in range(2)]
        until(lambda: len({e["pid"] for e in world.events("drained")}) == 2 or any(
                  p.poll() is not None for p in programs), "both have given way")
        open(f"{world.directory}/go", "w").close()
        for program in programs:
            tap_ends_well(program)
        assert world.status()["copy_out_bytes"] > 0
        nothing_is_left(world)


run_cases([
    memory_of_chunks_is_seen_as_cuMemAllocs,
    and_that_is_what_the_driver_shows,
    many_small_allocations_cost_the_gpu_little_more_than_their_bytes,
    what_a_graph_names_is_looked_up_only_while_it_is_there,
    pieces_take_turns_with_their_bytes,
])
