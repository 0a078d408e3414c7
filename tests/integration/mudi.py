"""Policies mudi and tandem with a service's profile: its batch, training beside it.

TAP on stdout; arguments: the build, cases. The profile is made here, not measured.
"""
import contextlib
import json
import os
import struct
import subprocess
import time

from mps_world import MpsWorld, end
from world import BUILD, SOFTGPU, TANDEM, TRAIN, Skip, free_port, run_cases, until

SERVE, LOAD = f"{BUILD}/examples/serve", f"{BUILD}/examples/load"
LAYERS = "53,0,49,0,0,0,1,53,1,2,0"
INPUTS = 12  # eleven kinds of layers and the batch


def constant(value):
    """A model (src/profile/blob.h) whose answer is always the same."""
    words = struct.pack("<8Q", 0x746400006d6f6401, 0, INPUTS, 0, 0, 0, INPUTS + 1, 0)
    return (words + struct.pack("<4d", 0, 1, 0, 0) + bytes(8 * 8)
            + struct.pack(f"<{3 * INPUTS + 1}d", *[0] * INPUTS, *[1] * INPUTS, *[0] * INPUTS,
                          value))


def profile(gpu, latency_s=0.02, error_s=0.0, steep=1):
    """As src/profile/service.h lays it out: steep to a share of 40 %, flat beyond."""
    models = [constant(value) for value in (-0.1 * steep, -0.001 * steep, 0.4, latency_s)]
    return (struct.pack("<Q64s3Q", 0x7464007072660001, gpu.encode(), 1, 64, 1)
            + struct.pack("<4d", 0, 0, 0, error_s)
            + struct.pack("<4Q", *map(len, models)) + b"".join(models))


class MudiWorld(MpsWorld):
    def begin(self):
        self.turn_on()
        self.profiles = f"{self.directory}/profiles"
        os.mkdir(self.profiles)
        name = json.loads(self.tandem("gpu", "--json").stdout)[0]["name"]
        for file, data in (("api", profile(name, error_s=0.003)), ("bad", b"nonsense")):
            with open(f"{self.profiles}/{file}.profile", "wb") as f:
                f.write(data)

    @contextlib.contextmanager
    def program(self, options, *command, **environment):
        process = subprocess.Popen([SOFTGPU, "run", "--", TANDEM, "run", *options, "--", *command],
                                   env=dict(self.environment, **environment),
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            yield process
        finally:
            end(process)

    @contextlib.contextmanager
    def service(self, *options, rate=40, run=(), **environment):
        if not os.path.exists(SERVE):
            raise Skip("the example is built where libmicrohttpd is")
        with self.program(["--class", "online", "--name", "service", *run], SERVE, "--name", "api",
                          "--objective", "500ms", "--batch", "64", *options,
                          **environment) as service, self.load(service, rate):
            yield

    @contextlib.contextmanager
    def load(self, service, rate):
        self.url = service.stdout.readline().strip()
        with subprocess.Popen([LOAD, "--url", self.url, "--rate", str(rate), "--for", "1h"],
                              env=self.environment, stdout=subprocess.DEVNULL) as load:
            try:
                yield
            finally:
                load.kill()

    @contextlib.contextmanager
    def plain_service(self, rate):
        if not os.path.exists(SERVE):
            raise Skip("the example is built where libmicrohttpd is")
        port = free_port()
        metrics = f"http://127.0.0.1:{port}/metrics,latency=serve_request_duration_seconds"
        with self.program(["--class", "online", "--name", "api", "--metrics", metrics,
                           "--objective", "500ms"], SERVE, "--plain",
                          "--port", str(port)) as service, self.load(service, rate):
            yield

    def training(self, *options, size="8m"):
        return self.program(["--name", "work", *options], TRAIN, "--size", size, "--gpu", "20ms",
                            "--cpu", "5ms", "--steps", "100000")

    def row(self, name):
        return next((job for job in self.jobs() if job["name"] == name), {})

    def lacks(self):
        rows = json.loads(self.tandem("policies", "--json").stdout)
        return {lack["ability"] for row in rows if row["policy"] == "mudi"
                for lack in row["lacks"]}


def a_profile_lets_it_decide_and_the_batch_follows_the_objective():
    with MudiWorld() as world:
        world.begin()
        assert world.lacks() == {"PROFILES"}, world.lacks()
        refused = world.tandem("set", "policy=mudi")
        assert refused.returncode == 125 and "profile of a service" in refused.stderr, refused
        assert world.tandem("set", f"profiles={world.profiles}").returncode == 0
        assert not world.lacks()
        assert ['"bad.profile" cannot be used: it is not a profile of a service'] == [
            e["detail"] for e in world.events("profile")]
        assert world.tandem("set", "policy=mudi").returncode == 0
        with world.service(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="60"):
            until(lambda: world.row("service").get("requests_per_1000_seconds", 0) > 20000,
                  "its rate is seen")
            assert world.row("service")["batch"] == 64
            with world.training():
                until(lambda: world.row("work").get("state") == "running", "training runs")
                assert world.row("work")["sm_share_ppm"] == 400000, world.row("work")
                # Filling a batch of 64 takes longer than the objective.
                until(lambda: 0 < world.row("service")["batch"] < 32, "its batch is tuned")


def the_share_of_a_service_is_tuned_while_it_runs():
    with MudiWorld() as world:
        world.begin()
        assert world.tandem("set", f"profiles={world.profiles}").returncode == 0
        assert world.tandem("set", "policy=mudi").returncode == 0
        with world.service():
            until(lambda: world.row("service").get("requests_per_1000_seconds", 0) > 20000,
                  "its rate is seen")
            pid = world.row("service")["pid"]
            with world.training():
                until(lambda: 0 < world.row("service").get("sm_share_ppm", 0) < 900000,
                      "its share is tuned")
                until(lambda: world.row("work").get("state") == "running", "training runs")
                assert world.row("service")["pid"] == pid, "no second instance"


def a_second_meeting_starts_nearer():
    """The profile tells of a batch in 20 ms. It takes about 30: batches of 2 do not keep up."""
    with MudiWorld() as world:
        if not os.path.exists(f"{BUILD}/src/profiler/tandem-profile"):
            raise Skip("the daemon learns where BLAS and SQLite are")
        world.begin()
        assert world.tandem("set", f"profiles={world.profiles}").returncode == 0
        assert world.tandem("set", "policy=mudi").returncode == 0
        known = lambda: {row["service"]: row for row in json.loads(world.tandem(
            "model", "--profiles", world.profiles, "--json").stdout)}["api"]

        def meet(*states):
            """The batches that were tried, the first of them first."""
            tried, now = [], lambda: world.row("service").get("batch", 0)
            with world.training("--layers", LAYERS):
                until(lambda: world.row("work").get("state") in states, "training is there")
                until_s = time.monotonic() + 10
                while time.monotonic() < until_s:
                    batch = now()
                    if batch not in tried:
                        tried.append(batch)
                    time.sleep(0.05)
            until(lambda: not world.row("work"), "training is gone")
            return tried

        with world.service("--batch", "4", "--linger", "400ms", "--kernel", "24ms", "--request",
                           "1500us", "--sms", "16"):
            until(lambda: world.row("service").get("requests_per_1000_seconds", 0) > 20000,
                  "its rate is seen")
            assert known()["met"] == 0
            first = meet("running")
            until(lambda: known()["met"] == 1, "the daemon has learnt")
            assert known()["met_points"] >= 1 and known()["met_last_s"] > 1e9, known()
            # On a busy machine it may have seemed so slow that no batch keeps up.
            second = meet("running", "paused", "waiting")
        text = world.tandem("model", "--profiles", world.profiles, "api").stdout
        assert LAYERS in text and "MET WHILE IT RAN" in text, text
        # By the profile 2, 3 and 4 are possible, and the first try is in the middle.
        assert 3 in first and second == [4], (first, second, text)
        assert len(world.events("profile")) == 1, world.events("profile")


def a_service_that_grows_takes_memory_from_training():
    """Both fit at first. Then batches grow with the rate, and so does the service's memory."""
    with MudiWorld() as world:
        world.begin()
        for option in (f"profiles={world.profiles}", "gpu.capacity=512Mi", "policy=mudi"):
            assert world.tandem("set", option).returncode == 0, option
        with world.service("--batch", "16", "--linger", "200ms", "--activations", "16m", rate=5):
            url = world.url
            with world.training("--layers", LAYERS, size="420m"):
                until(lambda: world.row("work").get("resident_bytes", 0) >= 420 << 20
                      and world.row("work")["state"] == "running", "training has its memory")
                before = world.row("service")["resident_bytes"]
                # On a busy machine training takes some seconds to give way.
                done = json.loads(world.call(LOAD, "--url", url, "--rate", "60", "--for", "6s",
                                             "--timeout", "60s").stdout)
                service, work = world.row("service"), world.row("work")
                assert service["resident_bytes"] >= before + (100 << 20), (before, service)
                assert service["host_bytes"] == 0, service
                assert work["resident_bytes"] + service["resident_bytes"] <= 512 << 20, work
                assert work["host_bytes"] > 0 and work["out_bytes"] > 0, work
                assert done["failed"] == 0 and done["ok"] > 300, done
                until(lambda: world.row("work")["launches"] > work["launches"] + 20,
                      "training goes on")
        assert not [e for e in world.events() if e["kind"] in ("refused", "killed", "error")]


def metrics_are_enough_for_mudi_to_tune_the_share():
    """The service tells tandem nothing; its rate is that of its /metrics, its batch its own."""
    with MudiWorld() as world:
        world.begin()
        for option in (f"profiles={world.profiles}", "policy=mudi"):
            assert world.tandem("set", option).returncode == 0, option
        with world.plain_service(rate=40), world.training("--layers", LAYERS):
            until(lambda: world.row("api").get("requests_per_1000_seconds", 0) > 20000,
                  "its rate is read")
            until(lambda: 0 < world.row("api").get("sm_share_ppm", 0) < 900000,
                  "its share is tuned")
            until(lambda: world.row("work").get("state") == "running", "training runs")


def beside_a_service_that_keeps_the_whole_gpu_training_is_paused():
    with MudiWorld() as world:
        world.begin()
        assert world.tandem("set", f"profiles={world.profiles}").returncode == 0
        assert world.tandem("set", "policy=mudi").returncode == 0
        with world.service(run=["--backend", "plain"]), world.training():
            until(lambda: world.row("work").get("state") in ("waiting", "paused"), "it is paused")
            until(lambda: world.row("service").get("state") == "running", "the service runs")


def tandem_uses_the_curves_and_explains_it():
    with MudiWorld() as world:
        world.begin()
        explain = lambda name: world.tandem("explain", name).stdout
        assert world.tandem("set", "policy=tandem").returncode == 0
        assert world.tandem("set", f"profiles={world.profiles}").returncode == 0
        offered = lambda: json.loads(world.tandem("gpu", "--json").stdout)[0].get(
            "besteffort_sm_share_ppm")
        with world.service(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="60"):
            # By its curves the service needs a tenth of the SMs at its rate.
            until(lambda: offered() == 900000, "the rest is offered")
            with world.training("--layers", LAYERS):
                for name in ("work", "service"):
                    until(lambda n=name: "latency curves" in explain(n), "it uses the curves")
                    assert "allow besteffort work 100% of the time" in explain(name), explain(name)
                    assert "err by 3.0 ms beside neighbours" in explain(name), explain(name)
                assert world.row("work")["sm_share_ppm"] == 900000, world.row("work")


if __name__ == "__main__":
    # One at a time: the model's times are kept only while nothing else needs the cores.
    run_cases([a_profile_lets_it_decide_and_the_batch_follows_the_objective,
               the_share_of_a_service_is_tuned_while_it_runs, a_second_meeting_starts_nearer,
               a_service_that_grows_takes_memory_from_training,
               metrics_are_enough_for_mudi_to_tune_the_share,
               beside_a_service_that_keeps_the_whole_gpu_training_is_paused,
               tandem_uses_the_curves_and_explains_it], at_once=1)
