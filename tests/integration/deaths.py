"""The program, its supervisor or the daemon is killed at some moment of an action. Nothing of the
job is left then, and nothing starts twice. TAP on stdout; argument: the build.

TANDEM_DEATHS: how many times (6); TANDEM_DEATHS_SEED: of what, and when.
"""
import random
import re
import signal

from world import *

TIMES = int(os.environ.get("TANDEM_DEATHS", "6"))
SEED = int(os.environ.get("TANDEM_DEATHS_SEED", "1"))
WORLDS = 2
# Says that it has started, and complains if one that started before it is there still.
CHILD = """for pid in $(cat "$0/pids"); do
    kill -0 $pid 2>/dev/null && echo $pid >> "$0/doubles"
done
echo $$ >> "$0/pids"
%s
exec %s --size 1m --gpu 2ms --cpu 1ms --steps 1000000"""
IGNORES, TAKES = "trap '' TERM", ":"


def lines(path):
    try:
        with open(path) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def is_there(pid):
    """Not as a zombie, which nobody has waited for yet."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Job:
    """One that is supervised: restarted when it fails, and by order."""

    def __init__(self, world, number, disposition):
        self.world, self.folder = world, f"{world.directory}/job{number}"
        os.mkdir(self.folder)
        command = CHILD % (disposition, TRAIN)
        with open(f"{self.folder}/said", "w") as said:
            self.process = subprocess.Popen(
                [SOFTGPU, "run", "--", TANDEM, "run", "--name", f"job{number}", "--restart",
                 "on-failure:100", "--", "sh", "-c", command, self.folder],
                env=world.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self.name, self.kills = f"job{number}", 0

    def pids(self):
        return [int(pid) for pid in lines(f"{self.folder}/pids")]

    def said(self):
        return f"{self.name}: it said: {' '.join(lines(f'{self.folder}/said'))}"

    def has_ended(self):
        return self.process.poll() is not None

    def is_running(self):
        rows = self.world.jobs()
        return any((row["name"], row["state"]) == (self.name, "running") for row in rows)

    def kill_child(self):
        pids = self.pids()
        self.kills += 1
        if is_there(pids[-1]):
            os.kill(pids[-1], signal.SIGKILL)

    def check(self, restarts):
        assert not lines(f"{self.folder}/doubles"), f"{self.name}: two at once"
        starts = len(self.pids())
        assert starts <= 1 + restarts + self.kills, (starts, restarts, self.kills, self.said())

    def end(self):
        """However it stands, a kill of tandem run ends it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_S)
        until(lambda: not any(map(is_there, self.pids())), f"{self.name}: nothing of it is left")


def kill_daemon(world):
    os.kill(world.daemon_pid(), signal.SIGKILL)


def serve(world):
    until(lambda: world.call(TANDEM, "run", "--", "true").returncode == 0, "there is a daemon")
    assert world.call(TANDEM, "set", "evict.deadline=300ms").returncode == 0


def one(world, number, chance):
    verb = chance.choice(("evict", "restart", "restart"))
    victim = chance.choice(("program", "supervisor", "daemon", "daemon", "nobody"))
    disposition = chance.choice((TAKES, TAKES, IGNORES))
    # An action takes some 20 ms, or evict.deadline where SIGTERM is ignored.
    delay = chance.random() ** 2 * (0.5 if disposition == IGNORES else 0.1)
    job = Job(world, number, disposition)
    until(lambda: job.has_ended() or job.is_running(), f"{job.name} runs")
    assert not job.has_ended(), job.said()
    acting = subprocess.Popen([TANDEM, verb, "--json", job.name], env=world.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(delay)
    if victim == "program":
        job.kill_child()
    elif victim == "supervisor":
        job.process.kill()
    elif victim == "daemon":
        kill_daemon(world)
    rows, _ = acting.communicate(timeout=DEADLINE_S)
    states = re.findall(r'"state": "([^"]*)"', rows)
    if verb == "evict" and victim == "nobody":
        expected = -signal.SIGKILL if disposition == IGNORES else -signal.SIGTERM
        assert states[-1] == "done", states
        assert job.process.wait(DEADLINE_S) == expected, job.process.returncode
    if verb == "restart" and victim == "nobody":
        assert states[-1] == "done", states
        until(lambda: len(job.pids()) == 2, "it has begun anew")
    job.check(restarts=verb == "restart")
    if victim == "daemon":
        serve(world)
        # It comes back to the new daemon, if it was not ended by the old one's order.
        if verb == "restart":
            until(lambda: job.has_ended() or job.is_running(), f"{job.name} is back")
            job.check(restarts=1)
    job.end()
    job.check(restarts=verb == "restart")
    return verb, victim, states[-1] if states else "none"


def run_world(index):
    seen = {}
    chance = random.Random(f"{SEED} {index}")
    with World() as world:
        serve(world)
        for number in range(index, TIMES, WORLDS):
            what = one(world, number, chance)
            seen[what] = seen.get(what, 0) + 1
        nothing_is_left(world)
    counts = ", ".join(f"{' '.join(what)} {count}" for what, count in sorted(seen.items()))
    say(f"# seed {SEED}, world {index}: {counts}")


def nothing_is_left_and_nothing_starts_twice():
    run_world(0)


def nor_in_another_world():
    run_world(1)


if __name__ == "__main__":
    run_cases([nothing_is_left_and_nothing_starts_twice, nor_in_another_world], at_once=WORLDS)
