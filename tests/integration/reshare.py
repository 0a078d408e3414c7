"""A service's share of the SMs changes while it runs: a second instance takes over. TAP on stdout;
arguments: the build, cases."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

from mps_world import MpsWorld, end
from world import BUILD, DEADLINE_S, SOFTGPU, TANDEM, Skip, free_port, run_cases, until

SERVE, LOAD = f"{BUILD}/examples/serve", f"{BUILD}/examples/load"
OBJECTIVE_MS = 200


class ShadowWorld(MpsWorld):
    @contextlib.contextmanager
    def service(self, *command, **environment):
        """Its supervisor's process and URL; 60 % of the SMs."""
        if not os.path.exists(SERVE):
            raise Skip("the example is built where libmicrohttpd is")
        self.turn_on()
        port = free_port()
        command = command or (SERVE, "--name", "api", "--objective", f"{OBJECTIVE_MS}ms",
                              "--kernel", "5ms", "--sms", "20", "--port", str(port))
        process = subprocess.Popen(
            [SOFTGPU, "run", "--", TANDEM, "run", "--class", "online", "--name", "service",
             "--shadow", "--", *command],
            env=dict(self.environment, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="60", **environment),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
            process.communicate()
            until(lambda: not self.rows(), "its instances end with it")

    def rows(self):
        return [job for job in self.jobs() if job["name"] == "service"]

    def shares(self):
        return sorted(row["sm_share_ppm"] // 10000 for row in self.rows())

    def pid(self):
        (row,) = self.rows()
        return row["pid"]

    def reshare(self, percent):
        return self.tandem("restart", "service", f"{percent}%")

    @contextlib.contextmanager
    def load(self, url, rate=60):
        """Load for as long as the body runs; afterwards nothing was lost, nor late."""
        process = subprocess.Popen([LOAD, "--url", url, "--rate", str(rate), "--for", "1h",
                                    "--timeline", f"{self.directory}/timeline", "--requests",
                                    f"{self.directory}/requests"],
                                   env=self.environment, stdout=subprocess.PIPE, text=True)
        answered = lambda: self.rows() and sum(r["requests_per_1000_seconds"] for r in self.rows())
        until(lambda: answered() > 1000 * rate / 3, "load comes")
        self.loading = process
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


def ask(url):
    """One request on a connection of its own."""
    done = subprocess.run([LOAD, "--url", url, "--rate", "20", "--even", "--for", "200ms",
                           "--timeout", "60s"],
                          capture_output=True, text=True, timeout=DEADLINE_S)
    return json.loads(done.stdout)


def nothing_is_lost_while_shares_change():
    with ShadowWorld() as world, world.service() as (_, url):
        pids, changes = {world.pid()}, [30, 80, 40, 60]
        load = subprocess.Popen([LOAD, "--url", url, "--rate", "60", "--for", "12s",
                                 "--timeout", "60s"],
                                env=world.environment, stdout=subprocess.PIPE, text=True)
        until(lambda: world.rows()[0]["requests_per_1000_seconds"] > 20000, "load has come")
        made = 0
        for percent in changes:
            if load.poll() is not None:  # on a slow machine there are less
                break
            done = world.reshare(percent)
            assert done.returncode == 0, done.stderr
            assert world.shares() == [percent], world.jobs()
            assert (load.poll() is not None
                    or world.rows()[0]["requests_per_1000_seconds"] > 20000), "its figures go on"
            pids.add(world.pid())
            made += 1
        assert made, "the load ended before a change"
        figures = json.loads(load.communicate(timeout=DEADLINE_S)[0])
        assert len(pids) == 1 + made, pids
        assert figures["failed"] == 0 and figures["ok"] == figures["sent"] > 600, figures
        print(f"# P99 {figures['p99_ms']} ms; the objective is {OBJECTIVE_MS} ms")
        assert {r["restarts"] for r in world.rows()} == {0}, "a change of the share is no restart"


def a_service_changes_its_share_itself_and_a_second_instance_does_what_it_cannot():
    with ShadowWorld() as world, world.service() as (_, url):
        pid, changes, began = world.pid(), [30, 50] * 10, time.monotonic()
        load = subprocess.Popen([LOAD, "--url", url, "--rate", "60", "--for", "12s",
                                 "--timeout", "60s"],
                                env=world.environment, stdout=subprocess.PIPE, text=True)
        until(lambda: world.rows()[0]["requests_per_1000_seconds"] > 20000, "load has come")
        for percent in changes:
            if time.monotonic() > began + 5:  # on a slow machine there are less
                break
            done = world.tandem("share", "service", f"{percent}%")
            assert done.returncode == 0 and f"to {percent}% of the SMs in" in done.stdout, done
            assert world.shares() == [percent] and world.pid() == pid, world.jobs()
        # Its percentage is a limit for the whole process.
        done = world.tandem("share", "service", "80%")
        assert done.returncode == 0 and "as a second instance" in done.stdout, done
        assert world.shares() == [80] and world.pid() != pid, world.jobs()
        # That of the second one is not.
        done = world.tandem("share", "service", "100%")
        assert done.returncode == 0 and "from 80% to 100%" in done.stdout, done
        figures = json.loads(load.communicate(timeout=DEADLINE_S)[0])
        assert figures["failed"] == 0 and figures["ok"] == figures["sent"] > 600, figures
        print(f"# P99 {figures['p99_ms']} ms; the objective is {OBJECTIVE_MS} ms")


def beside_work_whose_share_changes_nothing_is_lost():
    with ShadowWorld() as world, world.service() as (_, url):
        command = [SOFTGPU, "run", "--", TANDEM, "run", "--name", "work", "--backend", "swap", "--",
                   f"{BUILD}/examples/beside", "--kernel", "2ms", "--sms", "8", "--for", "1h"]
        with subprocess.Popen(command, env=world.environment) as work:
            try:
                until(lambda: any(j["name"] == "work" for j in world.jobs()), "the work runs")
                measure = [LOAD, "--url", url, "--rate", "40", "--for", "5s", "--timeout", "60s"]
                still = json.loads(world.call(*measure).stdout)
                load = subprocess.Popen(measure, env=world.environment, stdout=subprocess.PIPE,
                                        text=True)
                for percent in [20, 40] * 10:
                    if load.poll() is not None:  # on a slow machine there are less
                        break
                    assert world.tandem("share", "work", f"{percent}%").returncode == 0
                    time.sleep(0.15)
                changed = json.loads(load.communicate(timeout=DEADLINE_S)[0])
            finally:
                end(work)
        print(f"# P99 {still['p99_ms']} ms, while shares change {changed['p99_ms']} ms")
        assert changed["failed"] == still["failed"] == 0, (still, changed)


def is_untouched(world, pid, url, process):
    assert world.shares() == [60] and world.pid() == pid, world.jobs()
    figures = ask(url)
    assert figures["failed"] == 0 and figures["ok"] > 0, figures
    assert process.poll() is None


SECOND = 'if [ "$TANDEM_INSTANCE" != 1 ]; then %s; fi; exec "$0" "$@"'


def service_whose_second_instance(does, *options):
    return ("/bin/sh", "-c", SECOND % does, SERVE, "--name", "api", "--objective",
            f"{OBJECTIVE_MS}ms", "--port", str(free_port()), *options)


def a_shadow_that_fails_leaves_the_first_instance_untouched():
    with ShadowWorld() as world, world.service(*service_whose_second_instance("exit 3")) as (
            process, url):
        pid = world.pid()
        done = world.reshare(30)
        assert done.returncode == 125 and "exit status 3" in done.stderr, done
        is_untouched(world, pid, url, process)
        done = world.reshare(40)
        assert "exit status 3" in done.stderr, done


def a_shadow_that_is_killed_leaves_the_first_instance_untouched():
    command = service_whose_second_instance('echo $$ >"$SHADOW_FILE"; exec sleep 1000')
    with ShadowWorld() as world, world.service(
            *command, SHADOW_FILE=f"{world.directory}/shadow") as (process, url):
        pid, answers = world.pid(), []
        asks = threading.Thread(target=lambda: answers.append(world.reshare(30)))
        asks.start()
        path = f"{world.directory}/shadow"
        until(lambda: os.path.exists(path) and os.path.getsize(path), "the shadow runs")
        with open(path) as f:
            os.kill(int(f.read()), signal.SIGKILL)
        asks.join()
        assert answers[0].returncode == 125 and "signal 9" in answers[0].stderr, answers
        is_untouched(world, pid, url, process)


def a_shadow_that_gets_no_memory_leaves_the_first_instance_untouched():
    # Under plain its memory cannot leave the GPU, which has room for one instance only.
    with ShadowWorld() as world, world.service(
            SERVE, "--name", "api", "--width", "4096", "--layers", "1", "--port",
            str(free_port()), TANDEM_BACKEND="plain") as (process, url):
        pid = world.pid()
        taken = next(r["resident_bytes"] for r in world.rows())
        world.tandem("set", f"gpu.capacity={taken * 3 // 2}")
        done = world.reshare(30)
        assert done.returncode == 125 and "exit status 1" in done.stderr, (done, taken)
        is_untouched(world, pid, url, process)


def who_ends_the_job_ends_a_shadow_too():
    with ShadowWorld() as world, world.service(
            *service_whose_second_instance("exec sleep 1000")) as (process, _):
        answers = []
        asks = threading.Thread(target=lambda: answers.append(world.reshare(30)))
        asks.start()
        until(lambda: [e for e in world.events("action") if "running" in e["detail"]],
              "the shadow starts")
        done = world.tandem("evict", "service")
        assert done.returncode == 0, done
        asks.join()
        assert answers[0].returncode == 125, answers
        assert "evicted instead" in answers[0].stderr, answers
        process.wait(DEADLINE_S)


# It says that it is ready when it is to end, and then takes its time.
LATE = ("trap 'printf x >/proc/self/fd/${TANDEM_READY%%:*}; : >\"$SHADOW_FILE\"; sleep 5; exit' "
        "TERM; : >\"$SHADOW_FILE.listens\"; while :; do sleep 0.05; done")


def what_a_shadow_says_too_late_costs_no_cpu():
    with ShadowWorld() as world:
        path = f"{world.directory}/late"
        with world.service(*service_whose_second_instance(LATE), SHADOW_FILE=path) as (process, _):
            asks = threading.Thread(target=lambda: world.reshare(30))
            asks.start()
            until(lambda: [e for e in world.events("action") if "running" in e["detail"]],
                  "the shadow starts")
            until(lambda: os.path.exists(f"{path}.listens"), "the shadow would hear a signal")
            ends = threading.Thread(target=lambda: world.tandem("evict", "service"))
            ends.start()
            until(lambda: os.path.exists(path), "the shadow speaks")
            before_s = cpu_s(process.pid)
            time.sleep(1)
            assert process.poll() is None, "the shadow takes its time"
            assert cpu_s(process.pid) - before_s < 0.3, "the supervisor sleeps"
            asks.join()
            ends.join()
            process.wait(DEADLINE_S)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def a_job_that_nobody_shadows_says_so():
    with ShadowWorld() as world:
        world.turn_on()
        with contextlib.ExitStack() as stack:
            client = world.client("--name", "plain")
            stack.callback(client.kill)
            done = world.tandem("restart", "plain", "30%")
            assert done.returncode == 125 and "tandem run --shadow" in done.stderr, done
            done = world.tandem("restart", "plain", "no")
            assert done.returncode == 125 and '"no"' in done.stderr, done


if __name__ == "__main__":
    run_cases([nothing_is_lost_while_shares_change,
               a_service_changes_its_share_itself_and_a_second_instance_does_what_it_cannot,
               beside_work_whose_share_changes_nothing_is_lost,
               a_shadow_that_fails_leaves_the_first_instance_untouched,
               a_shadow_that_is_killed_leaves_the_first_instance_untouched,
               a_shadow_that_gets_no_memory_leaves_the_first_instance_untouched,
               who_ends_the_job_ends_a_shadow_too,
               what_a_shadow_says_too_late_costs_no_cpu, a_job_that_nobody_shadows_says_so])
