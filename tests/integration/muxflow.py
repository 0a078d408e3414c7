"""Policy muxflow on the node: SM share and duty, the verdict, eviction, and recovery of MPS.

TAP on stdout; arguments: the build, cases. Times are those of the software GPU's model.
"""
import contextlib
import json
import os
import subprocess
import sys
import time

from mps_world import MpsWorld, end
from world import BUILD, SOFTGPU, TANDEM, Skip, run_cases, until

MULTIPROCESSOR_COUNT = 16  # of CUdevice_attribute
SERVE, LOAD, BESIDE = (f"{BUILD}/examples/{name}" for name in ("serve", "load", "beside"))


class MuxflowWorld(MpsWorld):
    def begin(self):
        self.turn_on()
        assert self.tandem("set", "policy=muxflow").returncode == 0

    @contextlib.contextmanager
    def program(self, options, *command):
        process = subprocess.Popen([SOFTGPU, "run", "--", TANDEM, "run", *options, "--", *command],
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        try:
            yield process
        finally:
            end(process)

    @contextlib.contextmanager
    def service(self, *options):
        """Its kernels take 70 % of the SMs."""
        if not os.path.exists(SERVE):
            raise Skip("the example is built where libmicrohttpd is")
        with self.program(["--class", "online", "--name", "service", *options], SERVE, "--kernel",
                          "20ms", "--sms", "28") as service:
            yield service, service.stdout.readline().strip()

    def load(self, url, seconds=1):
        done = self.call(LOAD, "--url", url, "--rate", "20", "--for", f"{seconds}s",
                         "--timeout", "60s")
        return json.loads(done.stdout)

    def gpu(self):
        return json.loads(self.tandem("gpu", "--json").stdout)[0]

    def row(self, name):
        return next((job for job in self.jobs() if job["name"] == name), {})


def sms_told(world, *options):
    done = world.tandem("run", *options, "--", sys.executable, "-c", f"""
import ctypes
cuda, sms = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert not cuda.cuInit(0)
assert not cuda.cuDeviceGetAttribute(ctypes.byref(sms), {MULTIPROCESSOR_COUNT}, 0)
print(sms.value)""")
    assert done.returncode == 0, done
    return int(done.stdout)


def besteffort_work_gets_what_the_service_leaves():
    with MuxflowWorld() as world:
        world.begin()
        with world.service() as (_, url):
            # Its need is measured under load, again where the machine has stalled meanwhile.
            until(lambda: world.load(url)["failed"] == 0
                  and 280000 <= world.gpu()["besteffort_sm_share_ppm"] <= 320000,
                  "what it needs is known")
            with world.program(["--name", "work"], BESIDE, "--for", "1h"):
                until(lambda: world.row("work").get("state") == "running", "the work runs")
                row, gpu = world.row("work"), world.gpu()
                assert 280000 <= row["sm_share_ppm"] <= 320000, row
                assert gpu["monitor"] in ("healthy", "unhealthy") and gpu["health"] == "good", gpu
                until(lambda: world.row("work").get("sm_activity_ppm"), "it is measured")
                assert world.row("work")["sm_activity_ppm"] <= row["sm_share_ppm"] + 20000
                assert "SHARE" in world.tandem("ps").stdout
                assert "MONITOR" in world.tandem("gpu").stdout
                assert "tandem_gpu_accepts_besteffort{" in world.tandem("metrics").stdout
                assert world.load(url)["failed"] == 0
            # The user's own choice stands.
            environment, _ = world.environment_of_a_job(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="55")
            assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "55"
            environment, _ = world.environment_of_a_job("--class", "online")
            assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" not in environment
            # Grids of cooperative kernels are made for the SMs that the program is told.
            assert 11 <= sms_told(world) <= 13
            assert sms_told(world, "--class", "online") == 40


def the_share_of_running_work_follows_what_the_services_leave():
    with MuxflowWorld() as world:
        world.begin()
        share = lambda: world.row("work").get("sm_share_ppm", 1000000) // 10000
        with world.program(["--name", "work", "--backend", "swap"], BESIDE, "--kernel", "2ms",
                           "--sms", "40", "--for", "1h") as work:
            until(lambda: world.row("work").get("state") == "running", "the work runs alone")
            assert share() == 100
            with world.service() as (_, url):
                until(lambda: world.load(url) and share() == 30, "one service leaves 30 %")
                with world.program(["--class", "online", "--name", "small"], BESIDE, "--kernel",
                                   "5ms", "--sms", "16", "--gap", "20ms", "--for", "1h"):
                    until(lambda: world.load(url) and share() == 10, "both leave little")
                assert "its share has changed" in world.tandem("explain", "work").stdout
                until(lambda: world.load(url) and share() == 30, "the small one has gone")
                row = world.row("work")
                assert 250000 < row["sm_share_wanted_ppm"] < 400000, row
                assert "WANTED" in world.tandem("ps").stdout
                done = world.load(url, 4)
                assert done["failed"] == 0, done

                def is_settled():
                    before = len(world.events("action"))
                    time.sleep(1)
                    return len(world.events("action")) == before

                until(is_settled, "it does not go to and fro")
            until(lambda: share() == 100, "the whole GPU is left")
            assert work.poll() is None


def work_whose_share_cannot_change_keeps_it_and_says_why():
    with MuxflowWorld() as world:
        world.begin()
        with world.program(["--name", "work", "--backend", "plain"], BESIDE, "--kernel", "2ms",
                           "--for", "1h"):
            until(lambda: world.row("work").get("state") == "running", "the work runs alone")
            with world.service() as (_, url):
                until(lambda: world.load(url) and "cannot change while it runs: its memory is not "
                      "kept in chunks" in world.tandem("explain", "work").stdout, "it says why")
                assert "sm_share_ppm" not in world.row("work")
                assert not [e for e in world.events("action") if "share" in e["detail"]]


def an_overloaded_gpu_evicts_and_takes_nobody():
    with MuxflowWorld() as world:
        world.begin()
        with world.service() as (service, url):
            assert world.load(url)["failed"] == 0
            with world.program(["--name", "work", "--requeue"], BESIDE, "--for", "1h") as work:
                until(lambda: world.row("work").get("state") == "running", "the work runs")
                assert world.tandem("set", "muxflow.overlimit.sms=5%").returncode == 0
                until(lambda: world.gpu()["monitor"] == "overlimit", "it is overloaded")
                until(lambda: any("evict" in e["detail"] and e["name"] == "work"
                                  for e in world.events("action")), "the work is evicted")
                assert not world.gpu()["accepts"] and world.gpu()["overlimit_ns"] > 0
                assert world.load(url)["failed"] == 0
                assert service.poll() is None and work.poll() is None  # it waits to come again


def a_fault_of_another_client_is_recovered_from():
    with MuxflowWorld() as world:
        world.begin()
        with world.service("--restart", "always") as (service, url):
            assert world.load(url)["failed"] == 0
            before = world.control()
            other = world.client("--name", "other")
            other.stdin.write("fault\nwait\n")
            other.stdin.flush()
            until(lambda: any("started anew" in e["detail"] for e in world.events("mps")),
                  "MPS starts anew")
            url = service.stdout.readline().strip()  # of the second start
            assert world.control() not in (0, before)
            until(lambda: world.row("service").get("state") in ("running", "idle"), "it is back")
            assert world.load(url)["failed"] == 0
            assert world.gpu()["mps"] == "ready"


if __name__ == "__main__":
    run_cases([besteffort_work_gets_what_the_service_leaves,
               the_share_of_running_work_follows_what_the_services_leave,
               work_whose_share_cannot_change_keeps_it_and_says_why,
               an_overloaded_gpu_evicts_and_takes_nobody,
               a_fault_of_another_client_is_recovered_from], at_once=1)
