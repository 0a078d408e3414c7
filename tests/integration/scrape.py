"""A service that tells tandem nothing: its requests are read from its /metrics (tandem run
--metrics), or seen from the GPU. TAP on stdout; argument: the build."""
import contextlib

from world import *

SERVE, LOAD = f"{BUILD}/examples/serve", f"{BUILD}/examples/load"
HISTOGRAM = "serve_request_duration_seconds"


@contextlib.contextmanager
def service(world, *options, read=f",latency={HISTOGRAM}", serve=()):
    """The process of tandem run, and the URL of a service that does not know tandem."""
    if not os.path.exists(SERVE):
        raise Skip("the example is built where libmicrohttpd is")
    port = free_port()
    metrics = (["--metrics", f"http://127.0.0.1:{port}/metrics{read}"] if read is not None else [])
    process = subprocess.Popen(
        [SOFTGPU, "run", "--", TANDEM, "run", "--class", "online", "--name", "api", *metrics,
         *options, "--", SERVE, "--plain", "--port", str(port), *serve], env=world.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (url, process.poll() and process.stderr.read())
        yield process, url
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def load(world, url, rate):
    process = subprocess.Popen([LOAD, "--url", url, "--rate", str(rate), "--for", "10m"],
                               env=world.environment, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def named(world, name):
    return next((job for job in world.jobs() if job["name"] == name), {})


def explained(world):
    return " ".join(world.call(TANDEM, "explain", "api").stdout.split())


def the_metrics_of_a_service_are_its_rate_and_its_p99():
    with World() as world, service(world, "--objective", "500ms") as (_, url):
        until(lambda: named(world, "api").get("service") == "api", "the metrics are read")
        with load(world, url, 50):
            shown = {}

            def is_seen():
                """Where the machine is busy the figures may be unknown for a moment."""
                shown.clear()
                shown.update(named(world, "api"))
                return shown.get("requests_per_1000_seconds", 0) > 20000 and shown.get("p99_ns")

            until(is_seen, "the rate and the P99 are seen")
            assert shown["objective_ns"] == 500000000, shown
            assert 0 < shown["p50_ns"] <= shown["p99_ns"], shown
            assert f"those of its metrics ({HISTOGRAM})" in explained(world), explained(world)
            rows = world.call(TANDEM, "ps").stdout
            assert "REQ/S" in rows and "P99" in rows and "SLO" in rows, rows
        until(lambda: named(world, "api").get("requests_per_1000_seconds") == 0, "nobody asks")


def a_service_that_stops_answering_is_unknown_and_never_stale():
    with World() as world, service(world) as (_, url):
        with load(world, url, 50):
            until(lambda: named(world, "api").get("p99_ns"), "the P99 is seen")
            pid = named(world, "api")["pid"]
            os.kill(pid, signal.SIGSTOP)
            until(lambda: not named(world, "api").get("service"), "its figures are forgotten")
            assert "are not known now" in explained(world), explained(world)
            assert not named(world, "api").get("p99_ns"), named(world, "api")
            os.kill(pid, signal.SIGCONT)
            until(lambda: named(world, "api").get("p99_ns"), "they are known again")


def without_a_known_metric_it_is_said():
    with World() as world, service(world, read="") as _:
        until(lambda: "no metric of an engine that tandem knows" in explained(world), "it is said")
        assert not named(world, "api").get("service"), named(world, "api")


@contextlib.contextmanager
def besteffort(world):
    train = subprocess.Popen(
        [SOFTGPU, "run", "--", TANDEM, "run", "--name", "train", "--", TRAIN, "--size", "1m",
         "--gpu", "10ms", "--cpu", "1ms", "--steps", "1000000"], env=world.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: named(world, "train").get("steps") or named(world, "train").get("held_ns"),
              "it runs")
        yield
    finally:
        train.kill()
        train.wait()


def p99_beyond_the_objective_takes_time_from_besteffort_work():
    """The feedback of the default policy needs nothing but the metrics."""
    for objective, gives_way in (("10s", False), ("1ms", True)):
        with World() as world, service(world, "--objective", objective,
                                       serve=["--kernel", "5ms"]) as (_, url):
            with load(world, url, 20), besteffort(world):
                until(lambda: named(world, "api").get("p99_ns", 0) > 1000000, "the P99 is seen")
                if gives_way:
                    until(lambda: 0 < named(world, "train")["duty_ppm"] <= 200000,
                          "the besteffort job has a small part of the time")
                else:
                    looks = {named(world, "train")["duty_ppm"] for _ in range(20)}
                    assert not any(0 < duty <= 200000 for duty in looks), looks


def without_metrics_bursts_are_seen_and_what_cannot_be_known_is_said():
    with World() as world, service(world, read=None, serve=["--kernel", "5ms"]) as (_, url):
        with load(world, url, 20):
            # The load is 20 per second. Its batches are two bursts: it waits for the long kernel
            # before it launches its layers.
            until(lambda: 12000 < named(world, "api").get("bursts_per_1000_seconds", 0) < 60000,
                  "bursts are seen")
            shown = named(world, "api")
            assert shown["burst_ns"] > 0, shown
            assert "How long requests wait before" in explained(world)
            assert "BURST/S" in world.call(TANDEM, "ps").stdout
        assert not shown.get("service"), shown


def what_makes_no_sense_is_refused():
    with World() as world:
        for options, said in (
                (["--metrics", "https://x/"], '"https://x/" is not valid: expected http://HOST'),
                (["--metrics", "http://127.0.0.1:1/,latency=a b"], 'latency "a b" is not valid'),
                (["--objective", "5ms"], "--objective has no effect without --metrics"),
                (["--metrics", "http://127.0.0.1:1/", "--objective", "x"], '--objective: "x"')):
            done = world.call(TANDEM, "run", *options, "--", "true")
            assert done.returncode == 125 and said in done.stderr, (options, done)


run_cases([the_metrics_of_a_service_are_its_rate_and_its_p99,
           a_service_that_stops_answering_is_unknown_and_never_stale,
           without_a_known_metric_it_is_said,
           p99_beyond_the_objective_takes_time_from_besteffort_work,
           without_metrics_bursts_are_seen_and_what_cannot_be_known_is_said,
           what_makes_no_sense_is_refused])
