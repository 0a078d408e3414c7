"""Random kills and faults: whatever happens to its programs, the software GPU's server answers, and
in the end nothing is left in it.

TAP on stdout; argument: the build. SOFTGPU_TEST_KILLS: how many (60), SOFTGPU_TEST_SEED: which
(printed).
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
SOFTGPU, TRAIN = f"{BUILD}/softgpu/cli/softgpu", f"{BUILD}/examples/train"
KILLS = int(os.environ.get("SOFTGPU_TEST_KILLS", "60"))
SEED = int(os.environ.get("SOFTGPU_TEST_SEED", str(random.SystemRandom().randrange(1 << 30))))
DEADLINE_S = 180  # after this something counts as hung
AT_ONCE = 6
CALLS = ["cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuLaunchKernel", "cuCtxCreate_v2", "cuModuleLoadData",
         "cuStreamSynchronize", "cuMemcpyDtoH_v2"]
ERRORS = ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_UNKNOWN"]


class Server:
    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="softgpu-kills-")
        self.environment = dict(os.environ, SOFTGPU_DIR=f"{self.temporary.name}/gpu",
                                SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        self.call("start", "--gpus", "2", "--memory", "256m")
        return self

    def __exit__(self, *_):
        self.call("stop")
        self.temporary.cleanup()

    def call(self, *arguments):
        done = subprocess.run([SOFTGPU, *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=DEADLINE_S)
        assert done.returncode == 0, (arguments, done)
        return done.stdout

    def start(self, *arguments):
        return subprocess.Popen([SOFTGPU, "run", "--", TRAIN, *arguments], env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def gpus(self):
        return json.loads(self.call("status", "--json"))["gpus"]

    def is_empty(self):
        return all(g["contexts"] == 0 and g["processes"] == 0 and g["plain_bytes"] == 0
                   and g["managed_resident_bytes"] == 0
                   for g in self.gpus())

    def wait_empty(self):
        """The kernel, not the dead process, closes its connection: the server learns of it a moment
        later."""
        end = time.monotonic() + DEADLINE_S
        while not self.is_empty():
            assert time.monotonic() < end, self.gpus()
            time.sleep(0.002)


def program(random_):
    return ["--size", random_.choice(["256k", "1m", "5m"]), "--gpu",
            random_.choice(["0.2ms", "1ms", "5ms"]), "--cpu", "0", "--steps",
            random_.choice(["1", "5", "100"])]


def fault(random_):
    kind = random_.randrange(7)
    if kind == 0:
        return ["xid", str(random_.randrange(1, 100))]
    if kind == 1:
        return ["link", random_.choice(["5m", "100m", "3g"])]
    if kind == 2:
        return ["host-memory", random_.choice(["4k", "1m"])]
    if kind == 3:
        return ["ecc"]
    if kind == 4:
        return ["hang"]
    return ["call", f"{random_.choice(CALLS)}:{random_.randrange(1, 4)}={random_.choice(ERRORS)}"]


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait(DEADLINE_S)


def after_kills_and_faults_nothing_is_left():
    print(f"# {KILLS} kills, seed {SEED}", flush=True)
    random_ = random.Random(SEED)
    with Server() as server:
        running, killed = [], 0
        while killed < KILLS:
            running.append(server.start(*program(random_)))
            if random_.randrange(4) == 0:
                server.call("fault", "--gpu", str(random_.randrange(2)), *fault(random_))
            if random_.randrange(4) == 0:
                server.call("fault", "clear")
            if len(running) >= AT_ONCE:
                time.sleep(random_.random() * 0.01)
                while running:
                    end(running.pop(random_.randrange(len(running))))
                    killed += 1
            if killed and killed % 60 == 0 and not running:
                server.call("fault", "clear")
                server.wait_empty()
        for process in running:
            end(process)
        server.call("fault", "clear")
        server.wait_empty()
        # The GPU still works.
        assert (server.start("--size", "1m", "--gpu", "1ms", "--cpu", "0", "--steps", "2").wait(
                    DEADLINE_S)
                == 0)


def sixty_four_programs_at_once_all_end():
    with Server() as server:
        programs = [server.start("--size", "1m", "--gpu", "1ms", "--cpu", "0", "--steps", "2")
                    for _ in range(64)]
        assert [p.wait(DEADLINE_S) for p in programs] == [0] * 64
        server.wait_empty()


CASES = [after_kills_and_faults_nothing_is_left, sixty_four_programs_at_once_all_end]
print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}", flush=True)
    except (AssertionError, subprocess.TimeoutExpired) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "),
              flush=True)
