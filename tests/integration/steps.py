"""Steps of whole programs on the software GPU: reported by the program in C and Python, and found
in its launches."""
import sys

from world import *

LAUNCHES_OF_A_STEP = 3  # examples/train

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")

# A program in Python that trains, in its way.
PROGRAM = """
import ctypes, sys, time
import tandem
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096)
for _ in tandem.steps(range(20)):
    assert not cuda.cuMemsetD8_v2(memory, 1, 4096)
with tandem.Step():
    pass
try:
    with tandem.Step():
        raise ValueError
except ValueError:
    pass
tandem.step()
print(tandem.is_here(), flush=True)
sys.stdin.readline()
"""

# A program with 4 MiB of its own VMM for good, and in each step 1 MiB of a pool and, in between, 2
# MiB more of the kind that it is given.
MEMORY_PROGRAM = """
import ctypes, sys
import tandem
cuda, kind = ctypes.CDLL("libcuda.so.1"), sys.argv[1]
def call(name, *arguments):
    assert not getattr(cuda, name)(*arguments), name
def pointer(bytes):
    return ctypes.byref(ctypes.c_uint64(bytes))
context, prop, MIB = ctypes.c_void_p(), (ctypes.c_int * 8)(1, 0, 1, 0), 1 << 20
handle = ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(4 * MIB), prop, ctypes.c_uint64(0))
def take(kind, bytes):
    memory, pitch = ctypes.c_uint64(), ctypes.c_size_t()
    if kind == "pool":
        call("cuMemAllocAsync", ctypes.byref(memory), ctypes.c_size_t(bytes), None)
    elif kind == "pitch":
        call("cuMemAllocPitch_v2", ctypes.byref(memory), ctypes.byref(pitch),
             ctypes.c_size_t(4096), ctypes.c_size_t(bytes // 4096), 4)
    else:
        call("cuMemAllocManaged", ctypes.byref(memory), ctypes.c_size_t(bytes), 1)
    return memory
def give(kind, memory):
    call("cuMemFreeAsync", memory, None) if kind == "pool" else call("cuMemFree_v2", memory)
for _ in range(5):
    one = take("pool", MIB)
    two = take(kind, 2 * MIB)
    give(kind, two)
    give("pool", one)
    tandem.step()
print("stepped", flush=True)
sys.stdin.readline()
"""


def train(world, *arguments, steps=10**6, gpu="10ms", cpu="10ms", **environment):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--class", "guaranteed", "--", TRAIN, "--size",
               "1m", "--steps", str(steps), "--gpu", gpu, "--cpu", cpu, *arguments]
    return subprocess.Popen(command, env=dict(world.environment, **environment),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop(process):
    process.kill()
    process.communicate(timeout=DEADLINE_S)


def job(world):
    jobs = world.jobs()
    return jobs[0] if jobs else {}


def explained(world):
    return world.call(TANDEM, "explain", "train").stdout


base = {}


def grows(world, what, by):
    """Has it grown by so much since it was first asked?"""
    now = job(world)[what]
    if now >= base.setdefault((world, what, by), now) + by:
        del base[world, what, by]
        return True
    return False


def a_c_program_tells_its_steps():
    with World() as world:
        process = train(world, "--tell", "on")
        until(lambda: job(world).get("steps", 0) > 20, "steps are known")
        assert (job(world)["step_sure_ppm"] == 1000000
                and job(world)["step_ns"] >= 20_000_000), job(world)
        assert "The program has reported" in explained(world), explained(world)
        until(lambda: job(world)["step_peak_bytes"] >= 1 << 20, "its memory is known")
        assert (job(world)["step_minimal_bytes"] == job(world)["step_peak_bytes"]
                and job(world)["step_memory_source"] == "driver"), job(world)
        assert job(world)["step_source"] == "told" and job(world)["step_error_ppm"] == 0, job(world)
        stop(process)


def without_a_word_they_are_found():
    with World() as world:
        process = train(world, "--times", "on", steps=200)
        until(lambda: job(world).get("steps", 0) >= 60 or process.poll() is not None,
              "steps are found")
        # The program stands still for this look, because its launches are reported once a second.
        assert world.call(TANDEM, "pause", str(process.pid)).returncode == 0
        until(lambda: (job(world)["state"] == "paused"
                       and job(world)["launches"] >= LAUNCHES_OF_A_STEP * job(world)["steps"]),
              "it stands still")
        seen, told = job(world), explained(world)
        assert world.call(TANDEM, "resume", str(process.pid)).returncode == 0
        times = finish(process)["step_ms"]
        assert 60 <= seen["steps"] <= 200, seen
        # Steps are neither merged nor split: after the first ones, as many were reported as there
        # were.
        assert seen["launches"] < LAUNCHES_OF_A_STEP * (seen["steps"] + 20), seen
        assert min(times) <= seen["step_ns"] / 1e6 <= max(times), (seen, times)
        assert (seen["step_source"] == "found"
                and seen["step_error_ppm"] == 1_000_000 - seen["step_sure_ppm"] < 200_000
                and "were found in its launches" in told), (seen, told)


def who_is_not_protected_is_not_looked_at():
    with World() as world:
        process = train(world)
        until(lambda: job(world).get("steps", 0) > 5, "steps are known")
        assert world.call(TANDEM, "set", job(world)["job"], "class=besteffort").returncode == 0
        until(lambda: job(world)["class"] == "besteffort", "it is besteffort")
        until(lambda: grows(world, "launches", 12), "the rest is told")
        steps = job(world)["steps"]
        until(lambda: grows(world, "launches", 60), "it launches on")
        assert job(world)["steps"] == steps, (steps, job(world))
        stop(process)


def steps_outlive_the_daemon():
    with World() as world:
        process = train(world, "--tell", "on")
        until(lambda: job(world).get("steps", 0) > 20, "steps are known")
        before = job(world)["steps"]
        os.kill(world.daemon_pid(), signal.SIGKILL)
        until(lambda: world.call(TANDEM, "ps").returncode, "the daemon is gone")
        world.start("true", wrap="plain").communicate(timeout=DEADLINE_S)  # starts a daemon
        until(lambda: job(world).get("steps", 0) > before, "they count on")
        stop(process)


def a_python_program_tells_its_steps():
    with World() as world:
        command = [SOFTGPU, "run", "--", TANDEM, "run", "--name", "trains", "--", sys.executable,
                   "-c", PROGRAM]
        process = subprocess.Popen(command, env=dict(world.environment, PYTHONPATH=PYTHON),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "True\n", process.communicate()
        until(lambda: job(world).get("steps") == 22, "all steps are counted")
        _, err = process.communicate("\n", timeout=DEADLINE_S)
        assert process.returncode == 0, err


def every_kind_of_memory_counts_in_a_step():
    for kind in ("pool", "pitch", "managed"):
        with World() as world:
            command = [SOFTGPU, "run", "--", TANDEM, "run", "--name", "trains", "--",
                       sys.executable, "-c", MEMORY_PROGRAM, kind]
            process = subprocess.Popen(command, env=dict(world.environment, PYTHONPATH=PYTHON),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "stepped\n", process.communicate()
            until(lambda: job(world).get("step_peak_bytes") == 7 << 20,
                  f"{kind}: the most in a step is known")
            assert job(world)["step_minimal_bytes"] == 4 << 20, (kind, job(world))
            _, err = process.communicate("\n", timeout=DEADLINE_S)
            assert process.returncode == 0, err


def without_tandem_it_runs_as_well():
    with World() as world:
        command = [SOFTGPU, "run", "--", sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=dict(world.environment, PYTHONPATH=PYTHON), input="\n",
                              capture_output=True, text=True, timeout=DEADLINE_S)
        assert (done.returncode, done.stdout) == (0, "False\n"), done
        finish(world.start(*[TRAIN, "--size", "1m", "--steps", "3", "--gpu", "5ms", "--cpu", "0ms",
                             "--tell", "on"]))


def slack_is_a_share():
    with World() as world:
        for value in ("0", "-1%", "101%", "x"):
            done = world.call(TANDEM, "run", "--slack", value, "--", "true")
            assert done.returncode == 125 and f'"{value}"' in done.stderr, (value, done)
        process = train(world, TANDEM_SLACK="2%")
        until(lambda: job(world).get("steps", 0) > 2, "it runs")
        assert world.call(TANDEM, "set", job(world)["job"], "slack=1%").returncode == 0
        assert world.call(TANDEM, "set", job(world)["job"], "slack=0").returncode
        stop(process)


def beside(world, policy, *arguments, slack="50%"):
    """A besteffort program that always has work, and then a guaranteed one that mostly waits for
    its host."""
    assert world.call(TANDEM, "run", "--", "true").returncode == 0
    assert world.call(TANDEM, "set", f"policy={policy}").returncode == 0
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--name", "fills", "--", TRAIN, "--size", "1m",
               "--steps", "1000000", "--gpu", "100ms", "--cpu", "0ms", "--kernel", "500us"]
    fills = subprocess.Popen(command, env=world.environment, stdout=subprocess.DEVNULL)
    until(lambda: world.status()["kernels"] > 100, "it works")
    return fills, train(world, *arguments, gpu="10ms", cpu="90ms", TANDEM_SLACK=slack)


def named(world, name):
    return next((j for j in world.jobs() if j["name"] == name), {})


def antman_cuts_besteffort_work_gives_back_in_steps_and_frees_it_in_the_end():
    for arguments in ([], ["--tell", "on"]):
        with World() as world:
            fills, guaranteed = beside(world, "antman", *arguments)
            # The floor is 2 %; it may have risen by now.
            until(lambda: 0 < named(world, "fills").get("duty_ppm", 0) <= 120_000, "it is cut")
            until(lambda: named(world, "train").get("steps", 0) > 10, "steps are known")
            until(lambda: named(world, "fills").get("duty_ppm", 0) >= 200_000, "it gets more")
            assert "Its duty is" in world.call(TANDEM, "explain", "fills").stdout
            stop(guaranteed)
            until(lambda: not named(world, "fills")["duty_ppm"], "nothing holds it any more")
            fills.kill()
            fills.wait()


def holds(world, state, is_held):
    """Is the guaranteed program in that state, and the other held to a duty, or not?"""
    jobs = {j["name"]: j for j in world.jobs()}
    return (jobs.get("train", {}).get("state") == state
            and bool(jobs["fills"]["duty_ppm"]) == is_held)


def tandem_fills_the_pauses_of_a_guaranteed_job():
    for arguments in ([], ["--tell", "on"]):
        with World() as world:
            fills, guaranteed = beside(world, "tandem", *arguments, slack="1%")
            until(lambda: named(world, "train").get("steps", 0) > 15, "its first steps are over")
            for _ in range(3):
                until(lambda: holds(world, "idle", False),
                      "in its pause the other has all of the GPU")
                until(lambda: holds(world, "running", True), "and is held when it comes back")
            stop(guaranteed)
            fills.kill()
            fills.wait()


run_cases([
    a_c_program_tells_its_steps,
    without_a_word_they_are_found,
    who_is_not_protected_is_not_looked_at,
    steps_outlive_the_daemon,
    a_python_program_tells_its_steps,
    every_kind_of_memory_counts_in_a_step,
    without_tandem_it_runs_as_well,
    slack_is_a_share,
    antman_cuts_besteffort_work_gives_back_in_steps_and_frees_it_in_the_end,
    tandem_fills_the_pauses_of_a_guaranteed_job,
])
