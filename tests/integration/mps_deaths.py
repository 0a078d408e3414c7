"""Best-effort jobs die beside an online service while the death of a client with work in flight
hangs MPS (softgpu fault mps-early-exit hang, the default). TAP on stdout; arguments: the build,
cases.

TANDEM_MPS_DEATHS: how many deaths in all (200). The service's failures, and the times until it
answers again, are printed; docs/results/kills.md has figures.
"""
import os
import random
import select
import signal
import statistics
import subprocess
import threading
import time

from mps_world import MpsWorld
from world import BUILD, DEADLINE_S, SOFTGPU, TANDEM, run_cases, say, tries, until

PROGRAM = f"{BUILD}/tests/integration/mps_deaths_test"
TIMES = int(os.environ.get("TANDEM_MPS_DEATHS", "200"))
SEED = int(os.environ.get("TANDEM_MPS_DEATHS_SEED", "1"))
SLOTS = 4
INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
# The ways to die that the library can do something about, and how each ends. A fifth of the deaths
# are of those that it cannot: SIGKILL and, a few times, a fault of the GPU. That ends the service
# itself before anybody can order its restart, so its supervisor waits longer each time.
CAUGHT = {"SIGINT": -INT, "SIGTERM": -TERM, "host": -signal.SIGSEGV, "exit": 0, "evict": -TERM}
FAULTS = 3


class Nursery:
    """A job that starts one short-lived program after the other."""

    def __init__(self, world, number, prefix):
        self.world, self.chance = world, random.Random(f"{SEED} {number}")
        self.process = subprocess.Popen([*prefix, PROGRAM],
                                        env=dict(world.environment, WAY="nursery"),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.text = b""

    def line(self):
        while b"\n" not in self.text:
            ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
            assert ready, "never: a line of the nursery"
            more = os.read(self.process.stdout.fileno(), 4096)
            assert more, "the nursery has ended"
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        return line.decode().split()

    def one(self, way):
        """Starts one and ends it that way. Its status, or None: MPS has failed it before that."""
        own = way if way in ("host", "exit", "device") else "run"
        self.process.stdin.write(f"{own}\n".encode())
        self.process.stdin.flush()
        said = self.line()
        if said[0] != "ready":
            return None
        pid = int(said[1])
        time.sleep(self.chance.random() * 0.02)
        if way == "evict":
            done = self.world.tandem("evict", str(pid))
            if done.returncode:
                os.kill(pid, TERM)
        elif way.startswith("SIG"):
            try:
                os.kill(pid, getattr(signal, way))
            except ProcessLookupError:
                pass
        return int(self.line()[1])

    def end(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)


class Service:
    """Reads what the service says: a line per answer, with its pid, the time, and whether it is a
    client of MPS."""

    def __init__(self, world, prefix):
        self.process = subprocess.Popen([*prefix, PROGRAM],
                                        env=dict(world.environment, WAY="serve"),
                                        stdout=subprocess.PIPE, text=True)
        self.answers, self.last, self.pid, self.failures = 0, 0.0, 0, []
        self.is_client = False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        until(lambda: self.answers > 10, "the service answers")

    def read(self):
        for line in self.process.stdout:
            pid, at, shares = line.split()
            self.is_client = shares == "1"
            if self.pid and int(pid) != self.pid:
                self.failures.append(float(at) - self.last)
            self.pid, self.last = int(pid), float(at)
            self.answers += 1

    def answers_again(self):
        before = self.answers
        until(lambda: self.answers > before + 2, "the service answers")

    def end(self):
        self.process.terminate()
        self.process.wait(DEADLINE_S)


def in_parallel(nurseries, number, run):
    """Calls run(nursery) so many times in all. What a thread fails with is raised here."""
    left, lock, problems = [number], threading.Lock(), []

    def work(nursery):
        while not problems:
            with lock:
                if not left[0]:
                    return
                left[0] -= 1
            try:
                run(nursery)
            except Exception as problem:  # of whatever kind: it is raised below
                problems.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in nurseries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def of_events(world, beginning):
    return [e["detail"] for e in world.events("mps") if e["detail"].startswith(beginning)]


def deaths_that_are_caught(world, service, nurseries, number):
    ways = sorted(CAUGHT)

    def one(nursery):
        way = nursery.chance.choice(ways)
        status = nursery.one(way)
        assert status == CAUGHT[way], (way, status)

    in_parallel(nurseries, number, one)
    service.answers_again()
    assert service.is_client
    assert not service.failures, (service.failures, world.events("mps")[-20:])
    suspicions = of_events(world, "suspect")
    assert not suspicions, suspicions


def deaths_that_are_not(world, service, nurseries, number):
    """One at a time, each recovered from. Returns how many programs found MPS not ready, and how
    often the service came back outside of MPS."""
    failed = outside = 0
    for i in range(number):
        nursery = nurseries[i % SLOTS]
        way = "device" if (i + 1) * FAULTS % number < FAULTS else "SIGKILL"
        for _ in tries(1000, lambda: "MPS is ready"):
            if nursery.one(way) is not None:
                break
            failed += 1
            time.sleep(0.05)
        # The service answers for a moment yet, or does not; then it is well, or another one.
        time.sleep(0.05)
        service.answers_again()
        # It was started again at the moment in which MPS was, and has to be once more.
        for _ in tries(1000, lambda: "the service is in MPS"):
            if service.is_client:
                break
            outside += 1
            world.tandem("restart", str(service.pid))
            service.answers_again()
    return failed, outside


def an_online_service_outlives_all_deaths():
    started = time.monotonic()
    with MpsWorld() as world:
        world.turn_on()
        world.tandem("set", "mps.window=1ms")
        world.tandem("set", "mps.patience=300ms")
        prefix = [SOFTGPU, "run", "--", TANDEM, "run"]
        service = Service(world, [*prefix, "--class", "online", "--restart", "on-failure", "--"])
        nurseries = [Nursery(world, n, [*prefix, "--"]) for n in range(SLOTS)]
        uncaught = TIMES // 5
        try:
            deaths_that_are_caught(world, service, nurseries, TIMES - uncaught)
            took = time.monotonic() - started
            say(f"# {TIMES - uncaught} deaths that are caught: no failure of the service in "
                f"{service.answers} answers, {took:.0f} s")
            failed, outside = deaths_that_are_not(world, service, nurseries, uncaught)
            times = sorted(service.failures)
            say(f"# {uncaught} deaths that are not: {len(times)} failures of the service, "
                f"{failed} best-effort programs failed, {outside} times it came back without MPS; "
                f"{time.monotonic() - started:.0f} s in all")
            if times:
                say("# seconds until it answered again: median "
                    f"{statistics.median(times):.2f}, p95 {times[int(len(times) * 0.95)]:.2f}, "
                    f"most {times[-1]:.2f}")
                # The patience, and what it takes to find and to start a server: a second, and on a
                # busy machine some.
                assert statistics.median(times) < 10, times
            hangs = of_events(world, "is started anew")
            say(f"# of the last events of MPS, restarts: {len(hangs)}")
        finally:
            service.end()
            for nursery in nurseries:
                nursery.end()


def after_three_failures_programs_run_without_mps():
    with MpsWorld() as world:
        world.turn_on()
        world.tandem("set", "mps.patience=300ms")
        prefix = [SOFTGPU, "run", "--", TANDEM, "run"]
        service = Service(world, [*prefix, "--class", "online", "--restart", "on-failure", "--"])
        nursery = Nursery(world, 0, [*prefix, "--"])
        try:
            deaths = 0
            while world.mps()[0] != "failed":
                deaths += 1
                assert deaths < 50, world.events("mps")
                nursery.one("SIGKILL")
                time.sleep(0.05)
                service.answers_again()
            assert "again and again" in world.mps()[1], world.mps()
            until(lambda: not world.control(), "MPS has ended")
            service.answers_again()
            assert not service.is_client
            failures = len(service.failures)
            for way in ("SIGKILL", "SIGKILL", "SIGTERM"):
                assert nursery.one(way) in (-KILL, -TERM)
                service.answers_again()
            assert len(service.failures) == failures, service.failures
            assert of_events(world, "is off for ten minutes"), world.events("mps")
        finally:
            service.end()
            nursery.end()


def without_tandem_the_service_hangs_within_ten_deaths():
    with MpsWorld() as world:
        pipe = f"{world.directory}/pipe"
        world.environment.update(CUDA_MPS_PIPE_DIRECTORY=pipe, CUDA_MPS_LOG_DIRECTORY=pipe)
        control = [SOFTGPU, "run", "--", "nvidia-cuda-mps-control"]
        assert world.call(*control, "-d").returncode == 0
        try:
            service = Service(world, [SOFTGPU, "run", "--"])
            nursery = Nursery(world, 0, [SOFTGPU, "run", "--"])
            deaths, before = 0, -1
            while service.answers != before and deaths <= 10:
                deaths += 1
                nursery.one("SIGTERM")
                before = service.answers
                time.sleep(1)
            say(f"# without tandem the service hung after {deaths} deaths by SIGTERM")
            assert deaths <= 10
        finally:
            subprocess.run(control, env=world.environment, input="quit -t 0\n", text=True,
                           timeout=DEADLINE_S)
            service.process.wait(DEADLINE_S)
            nursery.process.kill()
            nursery.process.wait(DEADLINE_S)


assert os.path.exists(PROGRAM)
if __name__ == "__main__":
    run_cases([an_online_service_outlives_all_deaths,
               after_three_failures_programs_run_without_mps,
               without_tandem_the_service_hangs_within_ten_deaths], at_once=2)
