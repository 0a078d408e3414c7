"""The software driver's own tests, case by case: a case that passes alone passes under tandem, with
memory that stays and with memory that moves. TAP on stdout; argument: the build."""
import re

from world import *

# The test of checkpoints is left out: memory of a suspended process has left the GPU, but still
# counts as its own for tandem, and a program that fills the GPU meanwhile waits.
PROGRAMS = {"streams": [], "capture": [], "graph": [], "pool": [], "code": [], "stream_calls": [],
            "graph_more": [], "graph_shape": ["--gpus", "2"], "strict": ["--gpus", "2"],
            "strict_more": ["--model", "t4"], "ipc": [], "ipc_frees": ["--ipc-frees"],
            "fault": ["--gpus", "2"], "copies": ["--gpus", "2"], "managed": [],
            "contexts": ["--gpus", "2"], "across": ["--gpus", "2"], "visible": ["--gpus", "3"],
            "nvml": ["--gpus", "2"]}
# IPC: only cases that hold for either model of what an owner frees. Faults: only cases that do not
# show in cuMemAlloc. A small allocation of memory that moves is a piece of an existing block, and
# no call of the driver; a failed context shows at the next one.
CASES = {"ipc": ["memory_and_events_are_shared_with_another_process",
                 "a_handle_of_a_dead_process_opens_nothing", "a_handle_is_good_while_its_memory_is",
                 "what_its_owner_frees_stays_until_the_last_one_has_closed_it",
                 "what_its_owner_dies_with_stays_until_the_last_one_has_closed_it",
                 "what_is_not_from_cuMemAlloc_has_no_handle",
                 "memory_by_handle_is_shared_as_a_file"],
         "ipc_frees": ["what_its_owner_frees_is_gone_where_that_is_modelled",
                       "memory_and_events_are_shared_with_another_process"],
         "fault": ["pinned_memory_runs_out", "a_slow_link_slows_copies",
                   "a_hang_holds_work_until_it_is_cleared", "what_is_not_a_fault_is_refused"]}
PROGRAM_OF = {"ipc_frees": "ipc"}
# These cases ask how much memory there is in all, for which tandem reports the job's share. Others
# ask how much is free after another process frees its own memory, or memory that only the opener
# still has. Without a limit the answer is the total less the asking process's memory, so the
# other's was free before. Memory that only the opener has is subtracted in addition, and returned,
# by samples (vmm.py checks that it is returned).
SEE_LESS = {"devices_are_described", "memory_is_taken_from_the_gpu_that_is_meant",
            "memory_and_processes_are_what_the_driver_shows",
            "what_its_owner_frees_stays_until_the_last_one_has_closed_it",
            "what_its_owner_frees_is_gone_where_that_is_modelled",
            "what_its_owner_dies_with_stays_until_the_last_one_has_closed_it"}


def results(program, *wrap):
    with World(*PROGRAMS[program]) as world:
        command = [SOFTGPU, "run", "--", *wrap,
                   f"{BUILD}/tests/integration/softgpu/softgpu_{PROGRAM_OF.get(program, program)}",
                   *CASES.get(program, [])]
        done = world.call(*command, SOFTGPU=SOFTGPU)
        cases = {m[2]: not m[1] for m in re.finditer(r"^(not )?ok \d+ - (\w+)", done.stdout, re.M)}
        assert (len(cases)
                == (len(CASES[program]) if program in CASES
                    else int(re.search(r"^1\.\.(\d+)", done.stdout, re.M)[1]))), done
        return cases


def case(program):
    def run():
        alone = results(program)
        assert all(alone.values()), alone
        for wrap in ([TANDEM, "run", "--backend", "plain", "--"], [TANDEM, "run", "--"]):
            under = results(program, *wrap)
            failed = {name for name in alone if not under[name]}
            assert failed <= SEE_LESS, (wrap, failed)

    run.__name__ = f"{program}_works_as_it_does_alone"
    return run


run_cases([case(program) for program in PROGRAMS])
