"""The serving example under open-loop load: its figures reach the daemon. TAP on stdout."""
import contextlib
import urllib.error
import urllib.request

from world import *

SERVE, LOAD = f"{BUILD}/examples/serve", f"{BUILD}/examples/load"


@contextlib.contextmanager
def service(world, *options, **environment):
    """Its process and URL, when it has run its first batch."""
    if not os.path.exists(SERVE):
        raise Skip("the example is built where libmicrohttpd is")
    process = world.start(SERVE, "--name", "api", *options, wrap="auto", **environment)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (url, process.poll() and process.stderr.read())
        yield process, url
    finally:
        process.kill()
        process.communicate()


def ask(url):
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return answer.read().decode()


def load(world, url, *options):
    done = world.call(LOAD, "--url", url, *options)
    assert done.stdout, done
    return json.loads(done.stdout)


def row(world):
    rows = json.loads(world.call(TANDEM, "ps", "--json").stdout)
    return next((r for r in rows if r.get("service") == "api"), {})


def answers_are_the_networks():
    with World() as world, service(world, "--width", "3", "--layers", "2") as (_, url):
        outputs = {json.loads(ask(f"{url}?x={x}"))["output"] for x in ("2", "2.0")}
        assert len(outputs) == 1, outputs
        one, two = (json.loads(ask(f"{url}?x={x}"))["output"] for x in (1, 2))
        assert abs(two - 2 * one) < 1e-4 * two and one > 0, (one, two)
        assert ask(url.replace("/infer", "/healthz")) == "ready\n"


def figures_reach_the_daemon_without_a_message_per_request():
    with World() as world, service(world, "--objective", "500ms", "--batch", "8") as (_, url):
        figures = load(world, url, "--rate", "50", "--for", "2s")
        assert figures["failed"] == 0 and figures["ok"] == figures["sent"] > 50, figures
        metrics = ask(url.replace("/infer", "/metrics"))
        assert f"serve_requests_total {figures['sent']}\n" in metrics, (figures, metrics)
        with subprocess.Popen([LOAD, "--url", url, "--rate", "50", "--for", "1h"],
                              env=world.environment, stdout=subprocess.DEVNULL) as second:
            until(lambda: row(world).get("requests_per_1000_seconds", 0) > 20000
                  and row(world).get("p99_ns"), "the rate and the P99 are seen")
            shown = row(world)
            assert shown["objective_ns"] == 500000000 and shown["batch"] == 8, shown
            assert 0 < shown["p50_ns"] <= shown["p99_ns"], shown
            second.terminate()
        until(lambda: not row(world)["requests_per_1000_seconds"], "nobody asks any more")


def who_asks_nonsense_is_told():
    with World() as world, service(world) as (_, url):
        for path, status in (("/infer?x=no", 400), ("/nowhere", 404)):
            try:
                ask(url.replace("/infer", path))
                raise AssertionError("it was answered")
            except urllib.error.HTTPError as error:
                assert error.code == status, (path, error.code)
    done = subprocess.run([LOAD, "--url", "ftp://x"], capture_output=True, text=True)
    assert done.returncode == 2 and '--rate or --trace is missing' in done.stderr, done
    done = subprocess.run([LOAD, "--url", "ftp://x", "--rate", "1"], capture_output=True, text=True)
    assert done.returncode == 2 and '"ftp://x" is not a URL here' in done.stderr, done


def a_stall_of_the_server_is_seen_at_its_length():
    """Open loop: requests that were due while it was stopped have waited since then."""
    with World() as world, service(world) as (process, url):
        running = subprocess.Popen([LOAD, "--url", url, "--rate", "40", "--even", "--for", "3s"],
                                   env=world.environment, stdout=subprocess.PIPE, text=True)
        metrics = url.replace("/infer", "/metrics")
        until(lambda: "serve_requests_total 0\n" not in ask(metrics), "load has come")
        stop_for(process, 1)
        figures = json.loads(running.communicate(timeout=DEADLINE_S)[0])
        assert figures["failed"] == 0 and figures["max_ms"] > 900, figures
        # A closed loop would see the stall in one request; here in all that were due during it.
        assert figures["p90_ms"] > 300, figures


def stop_for(process, seconds):
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGCONT)


run_cases([answers_are_the_networks, figures_reach_the_daemon_without_a_message_per_request,
           who_asks_nonsense_is_told, a_stall_of_the_server_is_seen_at_its_length])
