"""A job's hard limit on the variables of modules and libraries: a program on the software GPU. TAP
on stdout; argument: the build."""
import json
import subprocess

from world import *

PROGRAM = f"{BUILD}/tests/integration/module_test"
MIB = 1 << 20
CONTEXT = MIB  # what one takes on the software GPU of the tests
LIMIT = 40 * MIB


def start(world, kind, mib, backend, contexts=1):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--mem", str(LIMIT), "--",
               PROGRAM, kind, str(int(mib * MIB))]
    process = subprocess.Popen(command, env=world.environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: (world.jobs() and world.jobs()[0]["overhead_bytes"] == contexts * CONTEXT
                   or process.poll() is not None),
          "its contexts are counted")
    return process


def again(process):
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def what_does_not_fit_is_refused_and_what_is_unloaded_can_be_had_again():
    for backend in ("plain", "swap"):
        for kind in ("data", "file", "library", "managed", "shared", "packed", "packedshared",
                     "packedlibrary", "decoy"):
            with World("--memory", "256m") as world:
                process = start(world, kind, 12, backend)
                for _ in range(2):
                    said = again(process)
                    assert said == {"loaded": 3, "result": 2}, (backend, kind, said)
                assert ([e["detail"] for e in world.events("refused")]
                        == ["beyond the job's limit"] * 2)
                process.communicate(timeout=DEADLINE_S)
                assert process.returncode == 0
                nothing_is_left(world)


def many_small_ones_count_like_one_that_is_large():
    """The first MiB of each sort is exempt, because it may be code that is loaded at the limit:
    NVML shows it sooner or later, and it is taken off the rest."""
    for kind in ("littledata", "littlefile", "littlemanaged", "littlepacked", "littlepackedshared",
                 "littlelibrary", "littleshared", "littlepackedlibrary"):
        # One of these is in that MiB, with room for 0.4 MiB more, which the rest of the limit has
        # no room for.
        mib = 1 / 2 + 1 / 256
        with World("--memory", "256m") as world:
            process = start(world, kind, mib, "plain")
            for _ in range(2):
                said = again(process)
                assert (said["result"] == 2
                        and 37.5 <= (said["loaded"] - 1) * mib <= 39), (kind, said)
            process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0
            nothing_is_left(world)


def a_library_that_was_loaded_before_there_was_a_context_counts_where_it_is_used():
    for kind in ("later", "packedlater", "listed", "asked", "launched", "captured", "node", "node1",
                 "anynode", "anynode2", "setnode", "setnode1", "setany", "setexec", "setexec1",
                 "setexecany", "occupancy"):
        with World("--memory", "256m") as world:
            process = start(world, kind, 16, "plain")
            said = again(process)
            assert said == {"loaded": 2, "result": 2}, (kind, said)
            process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0
            nothing_is_left(world)


def a_library_counts_in_each_context_that_it_is_used_in():
    for kind in ("contexts", "streams", "nodes"):
        with World("--memory", "256m") as world:
            process = start(world, kind, 16, "plain", contexts=3)
            for _ in range(2):
                said = again(process)
                assert said == {"loaded": 2, "result": 2}, (kind, said)
            process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0
            nothing_is_left(world)


def no_thread_has_what_another_one_asks_for_and_is_refused():
    with World("--memory", "256m") as world:
        process = start(world, "threads", 24, "plain")
        assert again(process) == {"loaded": 0, "result": 0}
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0
        nothing_is_left(world)


def what_a_driver_does_not_unload_counts_still():
    with World("--memory", "256m") as world:
        process = start(world, "kept", 24, "plain")
        assert again(process) == {"loaded": 1, "result": 2}
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0
        nothing_is_left(world)


def a_library_counts_again_after_its_context_has_ended():
    with World("--memory", "256m") as world:
        process = start(world, "reset", 24, "plain")
        assert again(process) == {"loaded": 1, "result": 2}
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
        nothing_is_left(world)


run_cases([
    many_small_ones_count_like_one_that_is_large,
    what_does_not_fit_is_refused_and_what_is_unloaded_can_be_had_again,
    a_library_that_was_loaded_before_there_was_a_context_counts_where_it_is_used,
    a_library_counts_in_each_context_that_it_is_used_in,
    no_thread_has_what_another_one_asks_for_and_is_refused,
    what_a_driver_does_not_unload_counts_still,
    a_library_counts_again_after_its_context_has_ended,
])
