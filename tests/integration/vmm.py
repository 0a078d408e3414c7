"""A job's hard limit on memory that its maker has exported and released, and that an importer has
mapped: programs on the software GPU. TAP on stdout; argument: the build."""
import json
import subprocess

from world import *

PROGRAM = f"{BUILD}/tests/integration/vmm_test"
MIB = 1 << 20
CONTEXT = MIB  # what one takes on the software GPU of the tests
BLOCK = 8 * MIB
LIMIT = 40 * MIB


def start(world, mode, block=BLOCK, backend="plain"):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--mem", str(LIMIT), "--",
               PROGRAM, mode, str(block)]
    return subprocess.Popen(command, env=world.environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def again(process, line=""):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def ends(world, process):
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    nothing_is_left(world)


def beside(world):
    """What its processes have beside what they allocate, as the daemon knows it."""
    return sum(job["overhead_bytes"] for job in world.jobs())


def rounds_until_refused(world, process, contexts):
    """Each once the daemon knows of the one before. How much was had."""
    had = 0
    while had <= LIMIT:
        until(lambda: beside(world) >= contexts * CONTEXT + had or process.poll() is not None,
              f"{had} bytes are counted")
        said = again(process)
        if said["result"]:
            assert said == {"result": 2, "bytes": had}, said
            return had
        had += BLOCK
    return had


def what_a_program_imports_from_itself_is_in_its_limit():
    with World("--memory", "64m") as world:  # an eighth is believed without a reason
        for backend in ("plain", "swap"):
            process = start(world, "alone", backend=backend)
            had = rounds_until_refused(world, process, 1)
            assert had == 32 * MIB, (backend, had)
            assert world.status()["plain_bytes"] == CONTEXT + had, world.status()
            said = world.call(TANDEM, "explain", world.jobs()[0]["job"]).stdout
            assert "imported memory" in said and "33.0 MiB" in said, said
            assert [e["detail"] for e in world.events("refused")][-1:] == ["beyond the job's limit"]
            ends(world, process)


def what_one_process_makes_and_another_keeps_is_in_the_limit_of_their_job():
    with World("--memory", "64m") as world:  # an eighth is believed without a reason
        process = start(world, "pair")
        had = rounds_until_refused(world, process, 2)
        assert had == 32 * MIB, had
        assert world.status()["plain_bytes"] == 2 * CONTEXT + had, world.status()
        ends(world, process)


def unified_memory_that_is_not_touched_hides_nothing():
    with World("--memory", "64m") as world:
        process = start(world, "hidden")
        had = rounds_until_refused(world, process, 1)
        # 20 MiB of unified memory, a context, and what is left of 40 MiB in blocks.
        assert had == 16 * MIB, had
        ends(world, process)


def without_a_pause(mode, contexts, block):
    """How much it had when it was refused, on a GPU with room for thousands of its limits."""
    with World("--memory", "128g") as world:
        process = start(world, mode, block)
        until(lambda: beside(world) == contexts * CONTEXT or process.poll() is not None,
              "its contexts are counted")
        said = again(process)
        assert said["result"] == 2, said
        assert ([e["detail"] for e in world.events("refused")]
                == ["beyond the job's limit"]), (said, world.events("refused"))
        ends(world, process)
        return said["bytes"]


def without_a_pause_a_program_has_no_more():
    for block in (16 * MIB, 2 * MIB):
        had = without_a_pause("spin", 1, block)
        # To the byte, but that nobody waits for NVML for more than a second.
        assert LIMIT - CONTEXT - block < had <= 2 * LIMIT, (block, had)
        print(f"# it had {had // MIB} MiB of {LIMIT // MIB}", flush=True)


def nor_what_it_holds_and_never_maps():
    for block in (16 * MIB, 2 * MIB):
        had = without_a_pause("held", 1, block)
        assert LIMIT - CONTEXT - block < had <= 2 * LIMIT, (block, had)
        print(f"# it had {had // MIB} MiB of {LIMIT // MIB}", flush=True)


def nor_do_two_of_them_but_for_what_one_has_not_said_yet():
    """How much that is is a matter of how soon the other is let run."""
    for block in (16 * MIB, 2 * MIB):
        had = without_a_pause("chase", 2, block)
        assert had > LIMIT - 2 * CONTEXT - block, (block, had)
        print(f"# they had {had // MIB} MiB of {LIMIT // MIB}", flush=True)


def what_its_maker_keeps_is_waited_for_and_not_refused():
    """An import that would fill the limit is the maker's: what is asked for beside it is had."""
    with World("--memory", "256m") as world:
        process = start(world, "keep", 24 * MIB)
        until(lambda: beside(world) == 2 * CONTEXT or process.poll() is not None,
              "its contexts are counted")
        assert again(process) == {"result": 0, "bytes": 24 * MIB + 8 * MIB}
        assert beside(world) == 2 * CONTEXT, world.jobs()
        ends(world, process)


def what_its_owner_frees_and_another_has_open_is_in_the_limit_of_their_job():
    """By cuIpcGetMemHandle. Where tandem makes the handles its owner has it until it is closed."""
    for backend in ("plain", "swap"):
        with World("--memory", "256m") as world:
            process = start(world, "handle", backend=backend)
            had = 0
            while had <= LIMIT:
                until(lambda: beside(world) == 2 * CONTEXT + (had if backend == "plain" else 0),
                      f"{had} bytes are counted")
                said = again(process)
                if said["result"]:
                    break
                had += BLOCK
            assert had == 32 * MIB, (backend, had)
            assert world.status()["plain_bytes"] == 2 * CONTEXT + had, world.status()
            ends(world, process)


def and_when_that_one_has_closed_it_is_in_nobodys():
    for options in ([], ["--ipc-frees"]):
        with World("--memory", "256m", *options) as world:
            process = start(world, "handle")
            until(lambda: beside(world) == 2 * CONTEXT, "its contexts are counted")
            for _ in range(2):
                for i in range(3):
                    assert again(process) == {"result": 0, "bytes": (i + 1) * BLOCK}
                until(lambda: beside(world) == 2 * CONTEXT + (0 if options else 3 * BLOCK),
                      "what it has open is counted")
                assert again(process, "close") == {"result": 0, "bytes": 0}
                until(lambda: beside(world) == 2 * CONTEXT, "what it has closed is not")
            ends(world, process)


def and_so_it_is_without_a_pause():
    for block in (16 * MIB, 2 * MIB):
        had = without_a_pause("handles", 2, block)
        assert LIMIT - 2 * CONTEXT - block < had <= 2 * LIMIT, (block, had)
        print(f"# they had {had // MIB} MiB of {LIMIT // MIB}", flush=True)


def where_a_driver_frees_it_all_the_same_nothing_is_counted():
    with World("--memory", "256m", "--ipc-frees") as world:
        process = start(world, "handle")
        until(lambda: beside(world) == 2 * CONTEXT, "its contexts are counted")
        for i in range(8):
            said = again(process)
            assert said == {"result": 0, "bytes": (i + 1) * BLOCK}, said
        until(lambda: beside(world) == 2 * CONTEXT, "nothing is counted")
        ends(world, process)


def what_its_owner_keeps_and_another_has_open_counts_once():
    with World("--memory", "256m") as world:
        process = start(world, "keephandle", 24 * MIB)
        until(lambda: beside(world) == 2 * CONTEXT or process.poll() is not None,
              "its contexts are counted")
        assert again(process) == {"result": 0, "bytes": 24 * MIB + 8 * MIB}
        assert beside(world) == 2 * CONTEXT, world.jobs()
        ends(world, process)


run_cases([
    what_a_program_imports_from_itself_is_in_its_limit,
    what_one_process_makes_and_another_keeps_is_in_the_limit_of_their_job,
    unified_memory_that_is_not_touched_hides_nothing,
    without_a_pause_a_program_has_no_more,
    nor_what_it_holds_and_never_maps,
    nor_do_two_of_them_but_for_what_one_has_not_said_yet,
    what_its_maker_keeps_is_waited_for_and_not_refused,
    what_its_owner_frees_and_another_has_open_is_in_the_limit_of_their_job,
    and_when_that_one_has_closed_it_is_in_nobodys,
    and_so_it_is_without_a_pause,
    where_a_driver_frees_it_all_the_same_nothing_is_counted,
    what_its_owner_keeps_and_another_has_open_counts_once,
])
