"""A job's hard limit on allocations of its graphs: programs on the software GPU. TAP on stdout;
argument: the build."""
import json
import subprocess

from world import *

PROGRAM = f"{BUILD}/tests/integration/graph_test"
MIB = 1 << 20
CONTEXT = MIB  # what one takes on the software GPU of the tests
LIMIT = 40 * MIB


def run(*arguments, backend="plain", memory="256m"):
    with World("--memory", memory) as world:
        command = [SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--mem", str(LIMIT),
                   "--", PROGRAM, *map(str, arguments)]
        process = subprocess.Popen(command, env=world.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: (world.jobs() and world.jobs()[0]["overhead_bytes"] == CONTEXT
                       or process.poll() is not None),
              "its context is counted")
        out, err = process.communicate("\n", timeout=DEADLINE_S)
        assert process.returncode == 0, err
        said = json.loads(out)
        assert said["failed"] == 0, said
        assert said["high_bytes"] <= LIMIT - CONTEXT, said
        nothing_is_left(world)
        return said


def what_was_freed_of_other_graphs_is_no_store_for_a_new_one():
    for backend in ("plain", "swap"):
        said = run("anew", 2 * MIB, 60, backend=backend)
        # 19 of 39 MiB, and once more as many as were freed of them.
        assert (said["granted"] == 19 + 10 and said["refused"] == 2
                and said["peak_bytes"] == 38 * MIB), said


def what_a_graph_has_serves_it_again():
    said = run("again", 30 * MIB, 20 * MIB)
    assert said["granted"] == 81 and said["refused"] == 0, said


def what_is_larger_than_the_limit_is_refused_and_nothing_is_launched():
    said = run("again", 42 * MIB, 20 * MIB)
    assert said["granted"] == 1 and said["refused"] == 80, said


def a_graph_that_is_changed_has_the_memory_of_another_one():
    said = run("changed", 12 * MIB)
    assert said["granted"] >= 3, said


def one_that_is_destroyed_and_made_anew_while_it_runs_has_what_it_had():
    said = run("replaced", 24 * MIB)
    assert said["granted"] == 40 and said["refused"] == 0, said


def threads_that_launch_free_and_trim_never_have_more():
    said = run("race", 8, 300)
    assert said["refused"] > 0 and LIMIT / 2 < said["high_bytes"], said


run_cases([
    what_was_freed_of_other_graphs_is_no_store_for_a_new_one,
    what_a_graph_has_serves_it_again,
    what_is_larger_than_the_limit_is_refused_and_nothing_is_launched,
    a_graph_that_is_changed_has_the_memory_of_another_one,
    one_that_is_destroyed_and_made_anew_while_it_runs_has_what_it_had,
    threads_that_launch_free_and_trim_never_have_more,
])
