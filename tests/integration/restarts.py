"""`tandem run --restart` and `--requeue`: what is started again, when, and by whose order.

The daemon is a fake one, which gives orders at will. TANDEM_SUPERVISE_KILLS: how often something
is killed at random (12), TANDEM_SUPERVISE_SEED: of what. TAP on stdout; argument: the build.
"""
import collections
import random
import socket
import struct
import threading

from run_world import *

GET, ADMIT, END, ERROR, SUPERVISE, ORDER, ORDERED = 37, 51, 62, 63, 64, 65, 66
STOP, RESTART, SHADOW = range(3)
RUNNING, DONE, REFUSED = range(3)
ALWAYS, FAILURE = ("--restart", "always"), ("--restart", "on-failure")


def text(words):
    return struct.pack("<H", len(words)) + words.encode()


class Daemon:
    """Answers END, and notes what supervisors say."""

    def __init__(self, path):
        self.path, self.admits, self.listener = path, True, None
        self.said, self.connections = {}, {}  # by the pid of who says it
        self.job = 0  # whom it talks to
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.begin()

    def begin(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(100)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def die(self):
        """All connections end, and nobody listens."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in list(self.connections.values()):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # its peer is gone
        self.connections = {}

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            while packet := connection.recv(4096):
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                self.answer(connection, *struct.unpack("<ixxxxxxxx", peer),
                            *struct.unpack("<xxHxxxx", packet[:8]), packet[8:])
        except OSError:
            pass

    def answer(self, connection, pid, kind, body):
        said = self.said.setdefault(pid, [])
        if kind == SUPERVISE:
            length, = struct.unpack("<H", body[:2])
            self.connections[pid] = connection
            said.append((SUPERVISE, *struct.unpack("<IIIQ", body[2 + length:22 + length])))
        if kind == ORDERED:
            said.append((ORDERED, *struct.unpack("<QB", body[:9])))
            return
        if kind == ADMIT:
            said.append((ADMIT,))
        if kind == ADMIT and not self.admits:
            self.send(connection, ERROR, struct.pack("<I", 1) + text("no room") + text(""))
        else:
            self.send(connection, END, struct.pack("<IQ", 0, 0))

    def send(self, connection, kind, body):
        connection.send(struct.pack("<HHI", 1, kind, len(body)) + body)

    def order(self, number, kind, epoch, leave_ns=0, kill_ns=10**10, requeue=0):
        self.send(self.connections[self.job], ORDER, struct.pack(
            "<QBIQQB", number, kind, epoch, leave_ns, kill_ns, requeue) + text("test"))

    def hears(self, *words):
        """Waits until this is said, and forgets all until then."""
        said = self.said.setdefault(self.job, [])
        until(lambda: any(s[:len(words)] == words for s in said), f"{words} in {said}")
        while True:
            one = said.pop(0)
            if one[:len(words)] == words:
                return one

    def hears_of_program(self, epoch):
        """The pid of this start of the program."""
        while True:
            _, pid, its_epoch, _, _ = self.hears(SUPERVISE)
            if pid and its_epoch == epoch:
                return pid


def shell(script, options, **extra):
    return run(world, options, "sh", "-c", script, **extra)


def lines_of(script, options, **extra):
    code, out, err = shell(script, options, **extra)
    return code, out.split("\n")[:-1], err


# -- the options --


def a_restarted_program_finds_all_as_at_first():
    script = 'echo $TANDEM_RESTARTS; echo "$TANDEM_JOB $X $(pwd) $(umask)"; cd /; export X=2; '\
             'umask 077; [ $TANDEM_RESTARTS = 2 ]'
    code, out, err = lines_of(script, FAILURE, env={"X": "1"}, cwd="/usr")
    assert (code, out[::2], err) == (0, ["0", "1", "2"], ""), (code, out, err)
    assert len(set(out[1::2])) == 1 and " 1 /usr " in out[1], out


def input_goes_on_where_it_was():
    with Run(world, ("--restart", "on-failure:2"), "sh", "-c", "read x; echo $x; exit 1",
             stdin=subprocess.PIPE) as it:
        out, _ = it.process.communicate("a\nb\nc\n")
        assert (it.process.returncode, out) == (1, "a\nb\nc\n"), out


def options_say_what_is_started_again():
    for options, script, times, status in (
            (("--restart", "no"), "exit 1", 1, 1), (FAILURE, "exit 0", 1, 0),
            (("--restart", "on-failure:1"), "exit 7", 2, 7),
            (("--restart", "on-failure:1"), "kill -KILL $$", 2, -9),
            (("--restart", "always:2/1h"), "exit 0", 3, 0),
            (("--requeue",), "exit 3", 1, 3), (ALWAYS, "kill -PIPE $$", 1, -13)):
        code, out, _ = lines_of("echo x; " + script, options)
        assert (code, len(out)) == (status, times), (options, script, code, out)


def a_command_that_is_not_there_is_tried_once():
    code, _, err = run(world, ALWAYS, "no-such-command")
    assert code == 127 and err.count("\n") == 1, (code, err)


def nothing_is_said_into_a_file_unless_asked():
    options = ("--restart", "on-failure:1")
    assert shell("exit 3", options) == (3, "", "")
    _, _, err = shell("exit 3", (*options, "--verbose"))
    assert "sh ended (exit status 3): it starts again in 100.0 ms" in err, err
    assert "it is not started again, as --restart allows 1 restarts" in err, err


def a_terminal_shows_it_and_ctrl_c_ends_the_job():
    with Terminal(world, TANDEM, "run", *ALWAYS, "--", "sh", "-c", "exit 3") as t:
        t.read(r"starts again in 1.6")
        t.type("\x03")
        assert os.WTERMSIG(os.waitpid(t.pid, 0)[1]) == signal.SIGINT
    with Terminal(world, TANDEM, "run", *ALWAYS, "--", *python(world, WAITS)) as t:
        t.read("ready")
        t.type("\x03")
        assert os.waitpid(t.pid, 0)[1], "it ended"


def ctrl_z_stops_a_job_that_waits():
    with Terminal(world) as t:
        t.do(f"{TANDEM} run --restart always -- sh -c 'exit 3'", r"starts again in 1.6")
        t.type("\x1a")
        t.read(r"Stopped")
        t.read(r"\$ $")
        t.do("fg", r"starts again in")
        t.type("\x03")
        t.read(r"\$ $")
        t.do("echo status $?", r"\nstatus 130")


def a_kill_ends_a_job_that_waits():
    with Run(world, (*ALWAYS, "--verbose"), "sh", "-c", "exit 3") as it:
        assert any("1.60 s" in line for line in iter(it.process.stderr.readline, "")), "never"
        os.kill(it.pid, signal.SIGTERM)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM


def a_hangup_without_a_terminal_is_no_end():
    with Run(world, FAILURE, *python(world, WAITS)) as it:
        it.line()
        os.kill(it.pid, signal.SIGHUP)
        assert it.line().startswith("ready"), "it starts again"
        os.kill(it.pid, signal.SIGTERM)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM


def what_was_left_behind_ends_before_the_next_start():
    script = "sleep 1000 >/dev/null 2>&1 & a=$!; "\
             "(setsid sleep 1000 >/dev/null 2>&1 & echo $a $!); exit 1"
    code, out, _ = lines_of(script, ("--restart", "on-failure:1"))
    first, last = (list(map(int, line.split())) for line in out)
    assert code == 1 and not any(map(is_alive, first)) and all(map(is_alive, last)), out
    for pid in last:
        os.kill(pid, signal.SIGKILL)


def is_alive(pid):
    return state_of(pid) not in ("", "Z")


# -- orders --


class Job(Run):
    """A supervised program with the fake daemon."""

    def __init__(self, *options, command=None):
        super().__init__(world, options or ("--requeue",), *(command or python(world, WAITS)),
                         env={"TANDEM_SOCKET": daemon.path})
        daemon.job = self.pid
        self.program = daemon.hears_of_program(1)
        self.line()


def an_order_to_restart_is_carried_out_once():
    with Job() as it:
        daemon.order(10, RESTART, 1)
        daemon.hears(ORDERED, 10, RUNNING)
        program = daemon.hears_of_program(2)
        daemon.hears(ORDERED, 10, DONE)
        it.line()
        daemon.order(10, RESTART, 1)
        daemon.hears(ORDERED, 10, DONE)
        daemon.order(11, RESTART, 1)  # about a start that is over
        daemon.hears(ORDERED, 11, REFUSED)
        daemon.order(9, STOP, 2)
        daemon.hears(ORDERED, 9, REFUSED)
        daemon.order(12, SHADOW, 2)
        daemon.hears(ORDERED, 12, REFUSED)
        assert is_alive(program) and not is_alive(it.program)
        os.kill(it.pid, signal.SIGTERM)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM


def an_order_to_stop_ends_the_job_as_its_program_ends():
    with Job(*ALWAYS) as it:
        daemon.order(10, STOP, 1)
        daemon.hears(ORDERED, 10, DONE)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM


def a_program_that_does_not_leave_is_killed_with_all_of_its_job():
    script = "trap '' TERM; (setsid sh -c \"trap '' TERM; echo ready; sleep 1000\"); sleep 1000"
    with Job(*ALWAYS, command=("sh", "-c", script)) as it:
        daemon.order(10, STOP, 1, leave_ns=10**17, kill_ns=10**17)
        daemon.hears(ORDERED, 10, RUNNING)
        daemon.order(10, STOP, 1, leave_ns=0, kill_ns=10**8)
        daemon.hears(ORDERED, 10, DONE)
        assert it.process.wait(DEADLINE_S) == -signal.SIGKILL
        until(lambda: not processes_of(it.pid), "nothing is left")


def all_processes_of_a_job_are_told_to_end():
    with Job(*ALWAYS, command=("bash", "-c", "echo ready; sleep 1000; exit 4")) as it:
        daemon.order(10, STOP, 1)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM
        until(lambda: not processes_of(it.pid), "nothing is left")


def processes_of(job):
    """Of the job that this supervisor began, without the supervisor itself."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"\0TANDEM_JOB={job}.".encode() in b"\0" + f.read() and is_alive(pid):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def an_evicted_job_waits_until_it_is_admitted():
    daemon.admits = False
    with Job("--requeue", "--verbose") as it:
        daemon.order(10, STOP, 1, requeue=1)
        daemon.hears(ORDERED, 10, DONE)
        daemon.hears(ADMIT)
        daemon.hears(ADMIT)
        assert not is_alive(it.program)
        daemon.admits = True
        program = daemon.hears_of_program(2)
        assert it.line().startswith("ready") and is_alive(program)
        os.kill(it.pid, signal.SIGTERM)
        code, _, err = it.end()
        assert code == -signal.SIGTERM and err.count("was evicted") == 1, (code, err)


def an_evicted_job_that_may_not_wait_ends():
    with Job(*ALWAYS) as it:
        daemon.order(10, STOP, 1, requeue=1)
        daemon.hears(ORDERED, 10, DONE)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM


def a_supervisor_comes_back_to_the_next_daemon():
    with Job() as it:
        daemon.order(10, RESTART, 1)
        daemon.hears(ORDERED, 10, DONE)
        it.line()
        daemon.die()
        daemon.begin()
        _, pid, epoch, can, ordered = daemon.hears(SUPERVISE)
        assert (epoch, can, ordered) == (2, 3, 10) and is_alive(pid), (epoch, can, ordered)
        daemon.order(10, RESTART, 1)
        daemon.hears(ORDERED, 10, DONE)
        daemon.order(11, STOP, 2)
        daemon.hears(ORDERED, 11, DONE)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM


def a_queued_job_starts_where_no_daemon_is_left():
    daemon.admits = False
    with Job() as it:
        daemon.order(10, STOP, 1, requeue=1)
        daemon.hears(ADMIT)
        daemon.die()
        assert it.line().startswith("ready"), "it starts again"
        os.kill(it.pid, signal.SIGTERM)
        assert it.process.wait(DEADLINE_S) == -signal.SIGTERM
    daemon.admits = True
    daemon.begin()


# -- kills --

# It holds a lock as long as it or a child of it lives: a second one at the same time would say so.
LOCKED = """
exec 9>"$0"
flock -n 9 || echo double
echo start $$
sleep 0.0$(($$ % 10))
exit 3
"""


def kill_one(seed):
    """Kills the supervisor, the program, the witness or the daemon at some moment. Says whom."""
    dice = random.Random(seed)
    lock = f"{world.directory}/lock{seed}"
    with Run(world, FAILURE, "bash", "-c", LOCKED, lock, env={"TANDEM_SOCKET": daemon.path}) as it:
        starts = [it.line()]
        time.sleep(dice.random() * 0.4)
        victim = dice.choice(("supervisor", "program", "witness", "daemon", "order"))
        if victim == "supervisor":
            os.kill(it.pid, signal.SIGKILL)
        elif victim == "daemon":
            daemon.die()
            daemon.begin()
        elif victim == "order":
            daemon.job = it.pid
            if it.pid in daemon.connections:
                daemon.order(seed, dice.choice((STOP, RESTART)), dice.randrange(1, 4))
        else:
            kill_children(it.pid, victim == "witness")
        if victim in ("program", "witness", "daemon"):
            starts += [it.line(), it.line()]  # it starts again, whoever died
        if victim != "supervisor":
            os.kill(it.pid, signal.SIGTERM)
        code, out, err = it.end()
        starts += out.split("\n")[:-1]
        pids = [int(line.split()[1]) for line in starts if line.startswith("start")]
        # The program may have ended by itself, or by the kill, when SIGTERM came.
        fine = {"supervisor": (-9,), "program": (-15, 3, -9)}.get(victim, (-15, 3))
        assert code in fine and len(pids) == len(starts) and not err, (seed, victim, code, starts)
        until(lambda: not any(map(is_alive, pids)), f"the program is dead: {seed} {victim}")
        until(lambda: not processes_of(it.pid), f"nothing is left: {seed} {victim}")
    os.unlink(lock)
    return victim


def kill_children(supervisor, is_witness):
    for pid in map(int, subprocess.run(["pgrep", "-P", str(supervisor)], capture_output=True,
                                       text=True).stdout.split()):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if (f.read().strip() == "tandem-witness") == is_witness:
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # it has just ended


def kills_leave_no_orphan_and_no_double():
    first = int(os.environ.get("TANDEM_SUPERVISE_SEED", "1"))
    seeds = range(first, first + int(os.environ.get("TANDEM_SUPERVISE_KILLS", "12")))
    victims = collections.Counter(map(kill_one, seeds))
    say("# " + ", ".join(f"{victim} {count}" for victim, count in sorted(victims.items())))


with World() as world:
    daemon = Daemon(f"{world.directory}/fake/socket")
    run_cases([
        a_restarted_program_finds_all_as_at_first,
        input_goes_on_where_it_was,
        options_say_what_is_started_again,
        a_command_that_is_not_there_is_tried_once,
        nothing_is_said_into_a_file_unless_asked,
        a_terminal_shows_it_and_ctrl_c_ends_the_job,
        ctrl_z_stops_a_job_that_waits,
        a_kill_ends_a_job_that_waits,
        a_hangup_without_a_terminal_is_no_end,
        what_was_left_behind_ends_before_the_next_start,
        an_order_to_restart_is_carried_out_once,
        an_order_to_stop_ends_the_job_as_its_program_ends,
        a_program_that_does_not_leave_is_killed_with_all_of_its_job,
        all_processes_of_a_job_are_told_to_end,
        an_evicted_job_waits_until_it_is_admitted,
        an_evicted_job_that_may_not_wait_ends,
        a_supervisor_comes_back_to_the_next_daemon,
        a_queued_job_starts_where_no_daemon_is_left,
        kills_leave_no_orphan_and_no_double,
    ])
