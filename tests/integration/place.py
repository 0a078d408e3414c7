"""The GPUs that a job is given, and that all views of its programs agree, with whole programs on a
software GPU of several. TAP on stdout; argument: the build."""
import json
import os
import signal
import subprocess
import sys

from world import *

PROGRAM = f"{BUILD}/tests/integration/place_test"
MIB = 1 << 20
CONTEXT_BYTES = MIB  # the software GPU's, unless told otherwise
# With this backend its memory is exactly its request; memory that moves is counted in granules.
IN_BYTES = ["--backend", "plain"]


def begin(world, gpu, *arguments, options=(), program=PROGRAM, **environment):
    command = [SOFTGPU, "run", "--", TANDEM, "run", *(["--gpu", gpu] if gpu is not None else []),
               *options, "--", program, *map(str, arguments)]
    return subprocess.Popen(command, env=dict(world.environment, **environment),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def line(process):
    text = process.stdout.readline()
    assert text, process.communicate()[1]
    return json.loads(text)


def see(world, gpu, *arguments, **more):
    process = begin(world, gpu, *arguments, **more)
    seen = line(process)
    end(process)
    return seen


def end(*processes):
    for process in processes:
        process.communicate(timeout=DEADLINE_S)


def listed(world):
    """UUIDs in NVML's order."""
    return [row.split("UUID: ")[1].rstrip(")")
            for row in world.call(SOFTGPU, "smi", "-L").stdout.splitlines()]


def uuids(seen):
    """Returns the driver's UUIDs. NVML has to show the same in the same order, each on the same
    bus."""
    assert seen["init"] == 0, seen
    assert [d["uuid"] for d in seen["devices"]] == [d["uuid"] for d in seen["nvml"]], seen
    for device, handle in zip(seen["devices"], seen["nvml"]):
        assert (handle["bus"].lower().endswith(device["bus"].lower())
                and device["pci"][0] == int(device["bus"].split(":")[1], 16)), seen
    return [d["uuid"] for d in seen["devices"]]


class Held:
    """What a background program of a script reads as its input: it ends with the block."""

    def __init__(self, world):
        self.path = f"{world.directory}/held"

    def __enter__(self):
        os.mkfifo(self.path)
        self.file = os.open(self.path, os.O_RDWR)
        return self.path

    def __exit__(self, *_):
        os.close(self.file)


def refused(world, gpu, *expected, **environment):
    done = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--gpu", gpu, "--", "true",
                      **environment)
    assert (done.returncode == 125
            and all(text in done.stderr for text in expected)), (gpu, expected, done)


def four_programs_on_two_gpus_end_two_and_two():
    with World("--gpus", "2") as world:
        gpus, programs, where = listed(world), [], []
        for _ in range(4):
            programs.append(begin(world, "any", "--hold", MIB))
            where += uuids(line(programs[-1]))
        assert where == [gpus[0], gpus[1], gpus[0], gpus[1]], where
        assert sorted(job["gpu"] for job in world.jobs()) == [0, 0, 1, 1], world.jobs()
        placed = [e for e in world.events("placed")]
        assert ([e["gpu"] for e in placed] == [0, 1, 0, 1]
                and all("one of 2" in e["detail"] for e in placed)), placed
        end(programs[1], programs[3])
        until(lambda: len(world.jobs()) == 2, "two are gone")
        assert uuids(see(world, "any")) == [gpus[1]]
        end(*programs)


def programs_that_start_at_once_spread():
    with World("--gpus", "4") as world:
        world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")
        programs = [begin(world, "any", "--hold", MIB) for _ in range(8)]
        where = [uuids(line(p))[0] for p in programs]
        assert sorted(where.count(gpu) for gpu in listed(world)) == [2, 2, 2, 2], where
        end(*programs)


def a_program_that_needs_much_goes_where_there_is_room():
    with World("--gpus", "2") as world:
        gpus = listed(world)
        large = begin(world, "0", "--hold", 40 * MIB)
        assert uuids(line(large)) == [gpus[0]]
        small = [begin(world, "1", "--hold", MIB) for _ in range(2)]
        for program in small:
            line(program)
        # Has two jobs, and room.
        assert uuids(see(world, "any", options=["--mem", "30m"])) == [gpus[1]]
        assert uuids(see(world, "any", options=["--mem", "4m"])) == [gpus[0]]
        end(large, *small)


def a_program_sees_what_it_was_given_and_nothing_else():
    with World("--gpus", "3") as world:
        gpus = listed(world)
        for gpu, expected in (("1", [1]), (gpus[2], [2]), (gpus[1].upper(), [1]), ("2,0", [2, 0]),
                              (f"{gpus[1]},0", [1, 0]), ("any:3", [0, 1, 2])):
            seen = see(world, gpu)
            assert (uuids(seen) == [gpus[i] for i in expected]
                    and seen["visible"] == "unset"), (gpu, seen)
            assert uuids(see(world, gpu, "--first", "nvml")) == [gpus[i] for i in expected], gpu
        everything = see(world, None)
        assert uuids(everything) == gpus
        for i in range(3):
            seen = see(world, "1", "--uuid", gpus[i], "--bus", everything["devices"][i]["bus"])
            # Not found; invalid device.
            assert ((seen["by_uuid"], seen["by_bus"])
                    == ((0, [0, 0]) if i == 1 else (6, [6, 101]))), seen
        busy = begin(world, "1", "--hold", MIB)
        line(busy)
        assert uuids(see(world, "any:2")) == [gpus[0], gpus[2]]
        end(busy)


def nvml_may_be_what_a_program_asks_first():
    with World("--gpus", "2") as world:
        gpus = listed(world)
        busy = begin(world, "0", "--hold", MIB)
        line(busy)
        assert uuids(see(world, "any", "--first", "nvml")) == [gpus[1]]
        shown = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--gpu", "any", "--", SOFTGPU,
                           "smi", "-L").stdout
        assert gpus[1] in shown and gpus[0] not in shown, shown
        end(busy)


def python_finds_the_jobs_gpus_by_ctypes():
    """As pynvml does it."""
    code = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
count, handle, text = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
assert nvml.nvmlDeviceGetUUID(handle, text, 96) == 0
print(count.value, text.value.decode())
"""
    with World("--gpus", "3") as world:
        done = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--gpu", "2", "--", sys.executable,
                          "-c", code)
        assert done.stdout.split() == ["1", listed(world)[2]], done


def a_library_may_use_the_gpu_before_the_program_begins():
    with World("--gpus", "3") as world:
        program = f"{BUILD}/tests/integration/early_test"
        assert world.call(SOFTGPU, "run", "--", program).stdout == "3\n"
        for gpu, count in (("1", 1), ("any:2", 2)):
            done = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--gpu", gpu, "--", program)
            assert done.stdout == f"{count}\n", (gpu, done)


def cuda_visible_devices_is_what_is_chosen_from_and_its_order_counts():
    with World("--gpus", "3") as world:
        gpus = listed(world)
        for visible, gpu, expected in (("2,1", "any", [2]), ("2,1", "any:2", [2, 1]),
                                       ("1", "any", [1]), (f"{gpus[2]},0", "any", [2]),
                                       ("2,1", "1", [1]),
                                       (gpus[1][:12] if len({g[:12] for g in gpus}) == 3
                                        else gpus[1], "any", [1]), ("0,7,1", "any", [0])):
            seen = see(world, gpu, CUDA_VISIBLE_DEVICES=visible)
            assert (uuids(seen) == [gpus[i] for i in expected]
                    and seen["visible"] == "unset"), (visible, gpu, seen)
        # without --gpu it is the driver's, as ever
        assert ([d["uuid"] for d in see(world, None, CUDA_VISIBLE_DEVICES="2,1")["devices"]]
                == [gpus[2], gpus[1]])
        refused(world, "0", '"0"', 'CUDA_VISIBLE_DEVICES=2,1', gpus[1], CUDA_VISIBLE_DEVICES="2,1")
        refused(world, "any", 'CUDA_VISIBLE_DEVICES=""', CUDA_VISIBLE_DEVICES="")
        refused(world, "any:2", '"2"', CUDA_VISIBLE_DEVICES="1")


def within_a_job_cuda_visible_devices_counts_the_jobs_gpus():
    with World("--gpus", "3") as world:
        gpus = listed(world)

        def visible(value, gpu="2,0"):
            seen = see(world, gpu, "--visible", value)
            assert seen["visible"] == value, seen
            return seen["init"], [d["uuid"] for d in seen["devices"]]

        assert visible("1") == (0, [gpus[0]])
        assert visible("1,0") == (0, [gpus[0], gpus[2]])
        assert visible(gpus[0]) == (0, [gpus[0]])
        assert visible("2") == (100, [])
        assert visible(gpus[1]) == (100, [])
        assert visible("") == (100, [])
        assert visible("0", gpu="any") == (0, [gpus[0]])


def processes_of_a_job_see_the_same():
    with World("--gpus", "3") as world:
        busy = begin(world, "0", "--hold", MIB)
        line(busy)
        with Held(world) as held:
            script = (f"{PROGRAM} --hold {MIB} < {held} & read line; "
                      f"for i in 1 2 3; do {PROGRAM} --hold 0 < /dev/null; done; wait")
            process = begin(world, "any:2", "-c", script, program="sh")
            seen = [uuids(line(process))]
            # Make its GPUs no longer the least loaded.
            more = [begin(world, "any", "--hold", MIB) for _ in range(2)]
            assert {uuids(line(p))[0] for p in more} != {listed(world)[0]}
            process.stdin.write("\n")
            process.stdin.flush()
            seen += [uuids(line(process)) for _ in range(3)]
            assert seen == [listed(world)[1:]] * 4, seen
        end(process, busy, *more)


def a_daemon_that_comes_back_learns_where_jobs_are():
    with World("--gpus", "2") as world:
        gpus = listed(world)
        program = begin(world, "any", "--hold", MIB, options=IN_BYTES)
        assert uuids(line(program)) == [gpus[0]]
        os.kill(world.daemon_pid(), signal.SIGKILL)
        until(lambda: world.call(TANDEM, "ps").returncode, "the daemon is gone")
        world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")
        until(lambda: world.jobs() and world.jobs()[0]["demanded_bytes"] == MIB, "it is back")
        assert uuids(see(world, "any")) == [gpus[1]]
        end(program)


def nvml_shows_a_job_its_own_limit_use_and_processes():
    with World("--gpus", "2") as world:
        other = begin(world, "0", "--hold", 5 * MIB)
        stranger = line(other)
        with Held(world) as held:
            script = (f"{PROGRAM} --hold {3 * MIB} < {held} & read line; "
                      f"{PROGRAM} --hold {2 * MIB}; wait")
            process = begin(world, None, "-c", script, program="sh",
                            options=["--mem", "16m", *IN_BYTES])
            first = line(process)
            until(lambda: any(job["demanded_bytes"] == 3 * MIB for job in world.jobs()),
                  "its memory is known")
            process.stdin.write("\n")
            process.stdin.flush()
            second = line(process)
            alone = see(world, None)
        end(process)
        for seen, used, pids in ((first, 3, [first["pid"]]),
                                 (second, 5, [first["pid"], second["pid"]])):
            handle = seen["nvml"][0]
            # NVML may show the daemon the memory of contexts and code before or after this look.
            assert used * MIB <= handle["used"] <= used * MIB + len(pids) * CONTEXT_BYTES, seen
            assert (handle["total"], handle["free"]) == (16 * MIB, 16 * MIB - handle["used"]), seen
            # CuMemGetInfo says the same.
            assert (seen["total"], seen["free"]) == (handle["total"], handle["free"]), seen
            # The same holds for cuDeviceTotalMem before there is a context.
            assert [d["total"] for d in seen["devices"]] == [16 * MIB] * 2, seen
            assert (sorted(handle["pids"]) == sorted(pids) and seen["nvml"][1]["total"] == 16 * MIB
                    and seen["nvml"][1]["pids"] == []), seen
        # one without a limit sees everything as it is
        handle = alone["nvml"][0]
        assert (handle["total"] == world.status()["memory_bytes"]
                and handle["used"] >= 10 * MIB), alone
        assert (sorted(handle["pids"])
                == sorted([stranger["pid"], first["pid"], second["pid"]])), alone
        end(other)


def blocks(process):
    """A script's output up to each empty line; before each block but the first it waits for a line.
    """
    while True:
        rows = []
        while (row := process.stdout.readline().strip()):
            rows.append(row)
        yield rows
        process.stdin.write("\n")
        process.stdin.flush()


def a_monitor_sees_the_limit_that_is_in_force():
    query = (f"{SOFTGPU} smi --query-gpu=memory.total,memory.used --format=csv,noheader,nounits; "
             f"{SOFTGPU} smi --query-compute-apps=pid --format=csv,noheader; echo")
    with World("--gpus", "2") as world, Held(world) as held:
        other = begin(world, "0", "--hold", 5 * MIB)
        line(other)
        script = (f"{query}; {PROGRAM} --hold {3 * MIB} < {held} > /dev/null & read line; {query}; "
                  f"read line; {query}")
        process = begin(world, "1", "-c", script, program="sh", options=["--mem", "16m", *IN_BYTES])
        shown = blocks(process)
        assert next(shown) == ["16, 0"]  # before anything of the job is there
        until(lambda: any(job["demanded_bytes"] == 3 * MIB for job in world.jobs()),
              "its memory is known")
        job = next(job for job in world.jobs() if job["demanded_bytes"] == 3 * MIB)
        # Before and after NVML has said what its context takes beside it, and that the GPU gave it
        # 4.
        told = (3, 5)
        assert next(shown) in [[f"16, {used}", str(job["pid"])] for used in told]
        assert world.call(TANDEM, "set", job["job"], "mem=8m").returncode == 0
        assert next(shown) in [[f"8, {used}", str(job["pid"])] for used in told]
    end(process, other)


def without_nvml_or_a_daemon_a_program_is_not_held_up():
    with World("--gpus", "2") as world:
        gpus = listed(world)
        environment = dict(world.environment, LD_PRELOAD=LIBRARY, TANDEM_GPUS=",".join(gpus),
                           TANDEM_GPU_COUNT="1")
        done = subprocess.run([SOFTGPU, "run", "--", PROGRAM], env=environment, capture_output=True,
                              text=True, timeout=DEADLINE_S)
        assert uuids(json.loads(done.stdout)) == gpus, done
        environment = dict(world.environment, LD_PRELOAD=LIBRARY, TANDEM_MEM="25%")
        done = subprocess.run([SOFTGPU, "run", "--", PROGRAM], env=environment, capture_output=True,
                              text=True, timeout=DEADLINE_S)
        assert ([(h["total"], h["used"]) for h in json.loads(done.stdout)["nvml"]]
                == [(16 * MIB, 0)] * 2), done
        # a daemon that finds no NVML library: the driver says what there is
        world.call(TANDEM, "run", "--", "true")
        shown = world.call(TANDEM, "gpu", "--json")
        assert shown.stdout.strip() == "[]", shown
        seen = see(world, "any")
        assert uuids(seen) == [gpus[0]], seen


def what_makes_no_sense_is_quoted_and_what_there_is_is_said():
    with World("--gpus", "2") as world:
        gpus = listed(world)
        for bad in ("banana", "2", "-1", "", "0x1", "GPU-00000000-0000-0000-0000-000000000000",
                    "anything"):
            refused(world, bad, f'"{bad}"', "0 (softgpu tiny, " + gpus[0],
                    "1 (softgpu tiny, " + gpus[1])
        refused(world, "0,0", '"0" is named twice')
        refused(world, "0,", '"0,"', gpus[1])
        refused(world, "any:3", '"3"', gpus[1])
        refused(world, "any:0", '"0"')
        refused(world, "GPU-", '"GPU-"')
        # what comes by the environment is an event that quotes it, and counts as not given
        process = begin(world, None, "TANDEM_GRACE=garbage", PROGRAM, "--hold", MIB, program="env",
                        TANDEM_GPUS="gpu 1")
        assert len(line(process)["devices"]) == 2
        until(lambda: len(world.events("rejected")) == 2, "both are told")
        assert (["TANDEM_GRACE=garbage", "TANDEM_GPUS=gpu 1"]
                == [e["detail"].split(" is invalid")[0] for e in world.events("rejected")])
        end(process)


def parts_of_a_divided_gpu_are_gpus_of_their_own():
    """With MIG a GPU cannot be used, only its parts. NVML lists the GPU, and the driver gives
    programs a part under a UUID of its own."""
    with World("--mig", "--gpus", "2") as world:
        refused(world, "0", '"0" is divided by MIG', "CUDA_VISIBLE_DEVICES")
        finish(world.start(TANDEM, "run", "--gpu", "any", "--", TRAIN, *SMALL))
        # They fit it only in turns; the first one goes on until the second exists.
        programs = [world.start(TRAIN, *LARGE[:-1], "100000", wrap="swap") for _ in range(2)]
        # NVML does not list the part: it is there as long as somebody uses it.
        until(lambda: any(g["handovers"] >= 3
                          for g in json.loads(world.call(TANDEM, "gpu", "--json").stdout)[2:]),
              "they take turns")
        gpus = json.loads(world.call(TANDEM, "gpu", "--json").stdout)
        for program in programs:
            program.kill()
            program.communicate()
        attached = world.events("attached")
        assert (len(attached) == 3
                and {(e["gpu"], e["detail"]) for e in attached}
                == {(2, "softgpu tiny MIG 1g")}), attached
        assert ([g["divided"] for g in gpus] == [1, 1, 0]
                and gpus[2]["uuid"].startswith("MIG-")), gpus
        assert [g["clients"] for g in gpus[:2]] == [0, 0]
        assert "MIG" in world.call(TANDEM, "gpu").stdout
        finish(world.start(TANDEM, "run", "--gpu", "any", "--", TRAIN, *SMALL,
                           CUDA_VISIBLE_DEVICES=gpus[2]["uuid"]))
        done = world.start(TANDEM, "run", "--mem", "8m", "--", TRAIN, "--size", "12m", "--gpu",
                           "1ms", "--cpu", "1ms", "--steps", "1")
        assert done.wait(timeout=DEADLINE_S) and "OUT_OF_MEMORY" in done.communicate()[1]
        nothing_is_left(world)


def twenty_parts_are_used_one_after_the_other():
    with World("--mig", "--gpus", "20") as world:
        for part in range(20):
            finish(world.start(TRAIN, "--size", "1m", "--gpu", "1ms", "--cpu", "1ms", "--steps",
                               "2", wrap="plain", CUDA_VISIBLE_DEVICES=str(part)))
        assert len(world.events("attached")) == 20
        assert not world.events("ungoverned")


def sixty_four_gpus_are_used_at_once():
    with World("--gpus", "64") as world:
        assert len(listed(world)) == 64
        programs = [begin(world, None, "--hold", 0, CUDA_VISIBLE_DEVICES=str(gpu))
                    for gpu in range(64)]
        for program in programs:
            line(program)
        assert sorted(j["gpu"] for j in world.jobs()) == list(range(64))
        until(lambda: {j["state"] for j in world.jobs()} == {"idle"}, "none has work")
        end(*programs)
        assert not world.events("ungoverned")


def parts_beyond_those_that_one_user_may_have_run_without_tandem():
    with World("--mig", "--gpus", "58") as world:
        programs = [world.start(TRAIN, "--size", "1m", "--gpu", "1ms", "--cpu", "100ms", "--steps",
                                "100000", wrap="plain", CUDA_VISIBLE_DEVICES=str(part))
                    for part in range(58)]
        until(lambda: len(world.events("attached")) == 56 and len(world.events("ungoverned")) == 2,
              "each has been told")
        states = [j["state"] for j in world.jobs()]
        assert len(states) == 58 and states.count("ungoverned") == 2, states
        assert ("as without tandem"
                in world.call(TANDEM, "explain", str(world.events("ungoverned")[0]["pid"])).stdout)
        for program in programs:
            program.kill()
            program.communicate()


def a_program_whose_gpu_the_driver_does_not_name_is_told_of():
    with World() as world:
        for call in ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"):
            assert (world.call(SOFTGPU, "fault", "call",
                               f"{call}=CUDA_ERROR_NOT_SUPPORTED").returncode
                    == 0)
        program = world.start(TRAIN, "--size", "1m", "--gpu", "1ms", "--cpu", "20ms", "--steps",
                              "100000", wrap="swap")
        until(lambda: world.events("ungoverned"), "it is told")
        until(lambda: [j["state"] for j in world.jobs()] == ["ungoverned"], "and shown")
        assert ("the driver does not tell which GPU it uses"
                in world.events("ungoverned")[0]["detail"])
        until(lambda: world.status()["kernels"] > 10, "it goes on")
        assert len(world.events("ungoverned")) == 1
        program.kill()
        program.communicate()


run_cases([
    four_programs_on_two_gpus_end_two_and_two,
    programs_that_start_at_once_spread,
    a_program_that_needs_much_goes_where_there_is_room,
    a_program_sees_what_it_was_given_and_nothing_else,
    nvml_may_be_what_a_program_asks_first,
    python_finds_the_jobs_gpus_by_ctypes,
    a_library_may_use_the_gpu_before_the_program_begins,
    cuda_visible_devices_is_what_is_chosen_from_and_its_order_counts,
    within_a_job_cuda_visible_devices_counts_the_jobs_gpus,
    processes_of_a_job_see_the_same,
    a_daemon_that_comes_back_learns_where_jobs_are,
    nvml_shows_a_job_its_own_limit_use_and_processes,
    a_monitor_sees_the_limit_that_is_in_force,
    without_nvml_or_a_daemon_a_program_is_not_held_up,
    what_makes_no_sense_is_quoted_and_what_there_is_is_said,
    parts_of_a_divided_gpu_are_gpus_of_their_own,
    twenty_parts_are_used_one_after_the_other,
    sixty_four_gpus_are_used_at_once,
    parts_beyond_those_that_one_user_may_have_run_without_tandem,
    a_program_whose_gpu_the_driver_does_not_name_is_told_of,
])
