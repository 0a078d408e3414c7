"""The program, its supervisor, the daemon or who asked is killed in each state of each action.
Nothing of the job is left then, nothing starts twice, and tandem run ends as its program did.
TAP on stdout; argument: the build.

TANDEM_DEATHS: how many deaths (24); TANDEM_DEATHS_SEED: of what, and when; TANDEM_DEATHS_JOBS: how
many jobs each of the two worlds has at once (6).
"""
import collections
import random
import signal
import socket
import struct
import threading

from world import *

TIMES = int(os.environ.get("TANDEM_DEATHS", "24"))
SEED = int(os.environ.get("TANDEM_DEATHS_SEED", "1"))
AT_ONCE = int(os.environ.get("TANDEM_DEATHS_JOBS", "6"))
WORLDS = 2
# Its lock is held as long as one of its processes lives: a second one at the same time says so.
CHILD = """exec 9>>"$0/lock"
flock -n 9 || echo $$ >> "$0/doubles"
echo $$ >> "$0/pids"
%s
exec %s --size 1m --gpu 2ms --cpu 5ms --steps 1000000"""
IGNORES, TAKES = "trap '' TERM", ":"
LIST_JOBS, JOB, ACT, ACTED, END = 32, 33, 46, 47, 62
KINDS = {"evict": 1, "pause": 3, "resume": 4, "restart": 5}
STATES = ("asked", "running", "done", "refused", "timed out")
VERBS = ("evict", "evict", "restart", "restart", "pause", "resume")
# When to strike: just before it is asked for, or when the daemon says that it is in this state.
WHEN = ("before", "asked", "running", "done")
VICTIMS = ("program", "supervisor", "asker", "nobody")


def text(words):
    return struct.pack("<H", len(words)) + words.encode()


def text_at(body, at):
    """The text, and where the next field begins."""
    end = at + 2 + struct.unpack_from("<H", body, at)[0]
    return body[at + 2:end].decode(), end


class Asker:
    """A connection to the daemon, as a tool has it."""

    def __init__(self, world):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(world.environment["TANDEM_SOCKET"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, kind, body):
        self.socket.send(struct.pack("<HHI", 1, kind, len(body)) + body)

    def answers(self):
        """(type, body) until END; an ERROR, and the death of the daemon, are an end as well."""
        while packet := self.socket.recv(65536):
            kind = struct.unpack_from("<H", packet, 2)[0]
            if kind not in (JOB, ACTED):
                return
            yield kind, packet[8:]

    def states(self, verb, job):
        """The states of the action, as they come."""
        self.ask(ACT, text(job) + bytes([KINDS[verb]]))
        for _, body in self.answers():
            yield STATES[body[9]]


def rows(world):
    """{name: (pid, state)}; empty while there is no daemon."""
    found = {}
    try:
        with Asker(world) as asker:
            asker.ask(LIST_JOBS, b"\0")
            for _, body in asker.answers():
                _, at = text_at(body, 0)
                name, at = text_at(body, at)
                pid, at = struct.unpack_from("<I", body, at)[0], at + 8
                for _ in ("class", "backend"):
                    _, at = text_at(body, at)
                found[name] = pid, text_at(body, at)[0]
    except OSError:
        pass
    return found


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

    def __init__(self, world, name, disposition):
        self.world, self.name, self.ignores = world, name, disposition == IGNORES
        self.folder = f"{world.directory}/{name}"
        os.mkdir(self.folder)
        command = CHILD % (disposition, TRAIN)
        with open(f"{self.folder}/said", "w") as said:
            self.process = subprocess.Popen(
                [SOFTGPU, "run", "--", TANDEM, "run", "--name", name, "--restart",
                 "on-failure:100", "--", "sh", "-c", command, self.folder],
                env=world.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def pids(self):
        return [int(pid) for pid in lines(f"{self.folder}/pids")]

    def has_ended(self):
        return self.process.poll() is not None

    def runs(self, state="running"):
        """The last start of its program is known to the daemon, and lives."""
        pids = self.pids()
        row = rows(self.world).get(self.name)
        return bool(pids) and row == (pids[-1], state) and is_there(pids[-1])

    def until_runs(self):
        until(lambda: self.has_ended() or self.runs(), f"{self.name} runs: {self}")
        assert not self.has_ended(), self

    def __str__(self):
        return (f"{self.name}: status {self.process.poll()}, starts {self.pids()}, said "
                f"{' '.join(lines(f'{self.folder}/said'))}")

    def kill(self, victim):
        if victim == "supervisor":
            self.process.kill()
        elif victim == "program" and is_there(self.pids()[-1]):
            os.kill(self.pids()[-1], signal.SIGKILL)

    def end(self):
        """However it stands, a kill of tandem run ends it."""
        self.process.kill()
        self.process.wait(DEADLINE_S)
        until(lambda: not any(map(is_there, self.pids())), f"nothing is left of {self}")
        assert not lines(f"{self.folder}/doubles"), f"two at once: {self}"
        shutil.rmtree(self.folder)


class Death:
    """Something is asked for, and somebody dies meanwhile. `daemon` is None, or kills it."""

    def __init__(self, world, number, chance, daemon=None):
        self.world, self.daemon = world, daemon
        self.victim = "daemon" if daemon else chance.choice(VICTIMS)
        self.verb = chance.choice(VERBS)
        self.when = chance.choice(WHEN[1:] if self.victim == "asker" else WHEN)
        self.name, self.disposition = f"job{number}", chance.choice((TAKES, TAKES, IGNORES))
        # A state lasts a few ms, or evict.deadline where SIGTERM is ignored.
        self.delay = chance.random() ** 3 * (0.3 if self.disposition == IGNORES else 0.02)
        self.seen, self.last, self.struck = "before", "none", None

    def __str__(self):
        return (f"{self.verb}, {self.victim} at {self.struck} ({self.when}), last {self.last}, "
                f"{'ignores' if self.job.ignores else 'takes'} SIGTERM, {self.job}")

    def strike(self, state, asker=None):
        if self.struck or state != self.when and state not in STATES[2:]:
            return
        time.sleep(self.delay)
        self.struck = self.seen
        self.job.kill(self.victim)
        if self.daemon:
            self.daemon.kill()
        if self.victim == "asker" and asker:
            asker.socket.close()

    def act(self):
        try:
            with Asker(self.world) as asker:
                self.strike("before", asker)
                for state in asker.states(self.verb, self.name):
                    self.seen = self.last = state
                    self.strike(state, asker)
        except OSError:
            self.last = "none"  # the daemon is dead, or who asked
        self.struck = self.struck or self.seen

    def run(self):
        self.job = Job(self.world, self.name, self.disposition)
        try:
            self.happen()
        finally:
            self.job.process.kill()  # nothing happens to one that has ended
        return self.verb, self.struck, self.victim

    def happen(self):
        self.job.until_runs()
        if self.daemon:
            self.daemon.all_run.wait(DEADLINE_S)
        self.act()
        if self.daemon:
            self.daemon.is_back.wait(DEADLINE_S)
        self.check()
        self.job.end()

    # -- what has to be so --

    def check(self):
        if self.victim == "supervisor":
            status = self.job.process.wait(DEADLINE_S)
            # The eviction may have ended it before.
            assert status == -signal.SIGKILL or self.verb == "evict" and status in self.ends(), self
        elif self.verb == "evict":
            self.check_evicted()
        else:
            self.check_goes_on()

    def ends(self):
        return (-signal.SIGKILL,) if self.job.ignores else (-signal.SIGTERM,)

    def check_evicted(self):
        """Who killed the program, or the daemon before it said so, may have been faster."""
        is_sure = self.victim == "nobody" or self.last == "done" or self.victim == "asker"
        until(lambda: self.job.has_ended() or not is_sure and self.job.runs(),
              f"it has ended, or runs on: {self}")
        if self.victim == "nobody":
            assert self.last == "done", self
        if self.job.has_ended():
            killed = (-signal.SIGKILL,) if self.victim == "program" else ()
            assert self.job.process.returncode in self.ends() + killed, self

    def check_goes_on(self):
        by_order = self.verb == "restart"
        by_death = self.victim == "program"
        if self.victim == "nobody":
            assert self.last == "done", self
        if self.verb == "pause" and self.victim == "nobody":
            until(lambda: self.job.runs("paused"), f"it is paused: {self}")
        if self.verb == "pause":
            until(lambda: self.job.runs() or self.resume(), f"it goes on: {self}")
        if by_order and self.last == "done":
            until(lambda: len(self.job.pids()) > 1, f"it has begun anew: {self}")
        self.job.until_runs()
        assert len(self.job.pids()) <= 1 + by_order + by_death, self


    def resume(self):
        """Never true: whether it runs again is seen from outside."""
        if self.job.runs("paused"):
            with Asker(self.world) as asker:
                list(asker.states("resume", self.name))


class Daemon:
    """The daemon of a round: it dies once, when the first action is where it is to be."""

    def __init__(self, world, jobs):
        self.world, self.lock, self.is_dead = world, threading.Lock(), False
        self.all_run, self.is_back = threading.Barrier(jobs), threading.Event()

    def kill(self):
        with self.lock:
            if self.is_dead:
                return
            self.is_dead = True
            os.kill(self.world.daemon_pid(), signal.SIGKILL)
        serve(self.world)
        self.is_back.set()


def serve(world):
    until(lambda: world.call(TANDEM, "run", "--", "true").returncode == 0, "there is a daemon")
    assert world.call(TANDEM, "set", "evict.deadline=300ms").returncode == 0


def run_world(index):
    seen = collections.Counter()
    chance = random.Random(f"{SEED} {index}")
    with World() as world, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        serve(world)
        for first in range(index * AT_ONCE, TIMES, WORLDS * AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, TIMES))
            daemon = Daemon(world, len(numbers)) if chance.random() < 0.3 else None
            deaths = [Death(world, n, chance, daemon) for n in numbers]
            seen.update(pool.map(Death.run, deaths))
        nothing_is_left(world)
    for what, count in sorted(seen.items()):
        say(f"# world {index}: {' '.join(what)}: {count}")
    say(f"# seed {SEED}, world {index}: {sum(seen.values())} deaths")


def nothing_is_left_and_nothing_starts_twice():
    run_world(0)


def nor_in_another_world():
    run_world(1)


if __name__ == "__main__":
    run_cases([nothing_is_left_and_nothing_starts_twice, nor_in_another_world], at_once=WORLDS)
