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
        return row.get("gpu_used_ppm") == row.get("sm_activity_ppm") == 0 and row["gpu_used_ns"]
    until(lambda: is_over(job(world, name)), "it is worked off")
    return job(world, name)


def is_active_on(sms, row):
    """All kernels of the program have as many blocks, so each charge of time is one of SM activity
    in proportion. A part of a nanosecond is kept until there is a whole one."""
    return abs(row["sm_active_ns"] - row["gpu_used_ns"] * sms / SMS) <= 1


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
    """The processes; the jobs once their work is done and charged; what the model did meanwhile:
    how long it worked, and how much time there was."""
    before = world.status()
    processes = [start(world, *program) for program in programs]
    for process in processes:
        wait(process)
    jobs = [measured(world, program[-1]) for program in programs]
    after = world.status()
    return (processes, jobs, after["busy_ns"] - before["busy_ns"],
            after["elapsed_ns"] - before["elapsed_ns"])


def the_meter_says_what_the_model_did():
    """On a busy machine intervals hold how late the software GPU was, and kernels between those
    that were timed are charged as these were: of that no more is used than there was time."""
    with World() as world:
        set_meter(world, "on")
        for length_ns, blocks, count in ((100_000, 1, 600), (2_000_000, 2, 60), (300_000, 3, 200)):
            (process,), (seen,), busy_ns, time_ns = run(world, (length_ns, blocks, count, "one"))
            used_ns, active_ns = seen["gpu_used_ns"], seen["sm_active_ns"]
            say(f"# {count} x {length_ns} ns on {blocks} blocks: "
                f"truth {busy_ns}, used {used_ns}, active {active_ns}")
            assert used_ns >= 0.97 * count * length_ns, (used_ns, busy_ns)
            assert used_ns <= time_ns, (used_ns, busy_ns, time_ns)
            # The third block is on an SM that has another.
            assert is_active_on(min(blocks, SMS), seen), seen
            assert seen["gpu_time_ns"] == seen["gpu_used_ns"], seen
            end(process)
            nothing_is_left(world)


def two_programs_at_once_are_told_apart():
    """Beside another program an interval may hold its turns."""
    with World() as world:
        set_meter(world, "on")
        processes, (small, large), busy_ns, _ = run(
            world, (200_000, 1, 500, "small"), (1_000_000, 2, 200, "large"))
        say(f"# truth {busy_ns}, small {small['gpu_used_ns']}, large {large['gpu_used_ns']}")
        assert small["gpu_used_ns"] >= 0.97 * 500 * 200_000, small
        assert large["gpu_used_ns"] >= 0.97 * 200 * 1_000_000, large
        assert is_active_on(1, small), small
        assert is_active_on(2, large), large
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
