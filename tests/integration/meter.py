"""The meter, with whole programs on the software GPU: what it says against what the model did."""
import json
import subprocess

from world import *

PROGRAM = f"{BUILD}/tests/integration/meter_test"
SMS = 2  # of the software GPU of the tests


def start(world, length_ns, blocks, count, name):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--name", name, "--",
               PROGRAM, str(length_ns), str(blocks), str(count)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=world.environment, stdin=pipe, stdout=pipe, stderr=pipe,
                            text=True)


def wait(process):
    assert json.loads(process.stdout.readline())["done"]


def end(process):
    out, err = process.communicate("\n", timeout=DEADLINE_S)
    assert process.returncode == 0, err


def job(world, name):
    return next(job for job in world.jobs() if job["name"] == name)


def measured(world, name):
    """What was charged, once all of it is worked off."""
    def is_over(row):
        return row.get("gpu_used_ppm") == 0 and row["gpu_used_ns"]
    until(lambda: is_over(job(world, name)), "it is worked off")
    return job(world, name)


def is_about(value, truth, part):
    return abs(value - truth) <= part * truth


def set_meter(world, value):
    start_daemon(world)
    done = world.call(TANDEM, "set", f"meter={value}")
    assert done.returncode == 0, done.stderr


def start_daemon(world):
    process = start(world, 1000, 1, 1, "first")
    wait(process)
    end(process)
    nothing_is_left(world)


def run(world, *programs):
    """What the model did meanwhile: how long it worked, and how long it stood idle."""
    before = world.status()
    processes = [start(world, *program) for program in programs]
    for process in processes:
        wait(process)
    after = world.status()
    busy_ns = after["busy_ns"] - before["busy_ns"]
    return processes, busy_ns, after["elapsed_ns"] - before["elapsed_ns"] - busy_ns


def the_meter_says_what_the_model_did():
    """On a busy machine kernels and intervals hold how late the software GPU was, and idle."""
    with World() as world:
        set_meter(world, "on")
        for length_ns, blocks, count in ((100_000, 1, 600), (2_000_000, 2, 60), (300_000, 3, 200)):
            (process,), busy_ns, idle_ns = run(world, (length_ns, blocks, count, "one"))
            seen = measured(world, "one")
            used_ns, active_ns = seen["gpu_used_ns"], seen["sm_active_ns"]
            say(f"# {count} x {length_ns} ns on {blocks} blocks: "
                f"truth {busy_ns}, used {used_ns}, active {active_ns}")
            assert used_ns >= 0.97 * count * length_ns, (used_ns, busy_ns)
            assert used_ns <= 1.03 * busy_ns + idle_ns, (used_ns, busy_ns, idle_ns)
            share = min(blocks, SMS) / SMS  # the third block is on an SM that has another
            assert is_about(active_ns, share * used_ns, 0.02), seen
            assert seen["gpu_time_ns"] == seen["gpu_used_ns"], seen
            end(process)
            nothing_is_left(world)


def two_programs_at_once_are_told_apart():
    """Beside another program an interval may hold its turns."""
    with World() as world:
        set_meter(world, "on")
        processes, busy_ns, _ = run(world, (200_000, 1, 500, "small"), (1_000_000, 2, 200, "large"))
        small, large = measured(world, "small"), measured(world, "large")
        say(f"# truth {busy_ns}, small {small['gpu_used_ns']}, large {large['gpu_used_ns']}")
        assert small["gpu_used_ns"] >= 0.97 * 500 * 200_000, small
        assert large["gpu_used_ns"] >= 0.97 * 200 * 1_000_000, large
        assert is_about(small["sm_active_ns"], small["gpu_used_ns"] / 2, 0.02), small
        assert is_about(large["sm_active_ns"], large["gpu_used_ns"], 0.02), large
        for process in processes:
            end(process)


def it_is_off_unless_somebody_asks_for_it():
    with World() as world:
        start_daemon(world)
        process = start(world, 1_000_000, 2, 10, "one")
        wait(process)
        seen = job(world, "one")
        assert "gpu_used_ns" not in seen and seen["gpu_time_ns"] == 0, seen
        end(process)


run_cases([the_meter_says_what_the_model_did, two_programs_at_once_are_told_apart,
           it_is_off_unless_somebody_asks_for_it])
