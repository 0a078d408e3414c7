"""A daemon that exists and does not answer - stopped, starved, replaced by another program - blocks
no verb and no program. TAP on stdout; argument: the build."""
import contextlib
import itertools
import os
import re
import signal
import socket
import stat
import struct
import threading
import time

from shell import MIB, under_swap
from world import *

VERBS = [["ps"], ["ps", "--json"], ["gpu"], ["set"], ["set", "policy=nvshare"], ["pause", "x"],
         ["resume", "x"], ["evict", "x"], ["checkpoint", "x"], ["restore", "x"], ["policies"],
         ["events"], ["events", "-f"], ["explain", "x"], ["stop"], ["stop", "--force"]]
# A verb gives up after 2 s, a program goes on after some 10: only a hang reaches it.
BOUND_S = DEADLINE_S


def begin(world):
    assert world.call(TANDEM, "run", "--", "true").returncode == 0
    return world.daemon_pid()


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Impostor:
    """Has the daemon's socket. answer: its message to each connection, again and again; b"": it
    accepts and sends nothing; None: it accepts nobody."""

    def __init__(self, world, answer, backlog=128):
        self.path, self.answer, self.peers = world.environment["TANDEM_SOCKET"], answer, []
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(backlog)

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve)
        if self.answer is not None:
            self.thread.start()
        return self

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                self.peers.append(peer)
                if self.answer:
                    threading.Thread(target=self.talk, args=[peer]).start()

    def talk(self, peer):
        with contextlib.suppress(OSError):
            while True:
                peer.send(self.answer)
                time.sleep(0.05)

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for peer in self.peers:
            peer.close()
        os.unlink(self.path)


def ends(process):
    """Its output, however slow this machine is."""
    return process.communicate(timeout=BOUND_S)


def all_verbs_say(world, pattern, verbs=VERBS):
    running = [(verb, world.start(TANDEM, *verb)) for verb in verbs]
    for verb, process in running:
        out, err = ends(process)
        assert (process.returncode == 125
                and re.fullmatch(f"tandem: {pattern}\n", err)), (verb, process.returncode, out, err)


def doctor_says(world, pattern):
    out, err = ends(world.start(TANDEM, "doctor", "--json"))
    row = next(row for row in json.loads(out) if row["check"] == "daemon")
    assert row["result"] == "failed" and re.fullmatch(pattern, row["text"]), (row, err)


def programs_run_all_the_same(world, pattern, *options):
    """By themselves, and it is said once why."""
    running = [world.start(TANDEM, "run", *more, "--", TRAIN, *SMALL) for more in options or ([],)]
    for process in running:
        out, err = ends(process)
        assert (process.returncode == 0
                and json.loads(out)["checksum_ok"]), (process.args, process.returncode, out, err)
        assert re.fullmatch(
            f"tandem: {pattern}; until a daemon answers, the program runs without one\n", err), (
                process.args, err)


def no_answer(world, pid):
    socket_path = re.escape(world.environment["TANDEM_SOCKET"])
    return (rf"no answer in 2 s from the daemon at {socket_path} \(pid {pid}\), which is stopped "
            rf"or overloaded: `kill -CONT {pid}` continues it, "
            r"" rf"`kill -KILL {pid}` ends it and leaves programs running")


def no_tandemd(world, why):
    return (rf"what answers at {re.escape(world.environment['TANDEM_SOCKET'])} "
            rf"\(pid {os.getpid()}\) is no tandemd \({why}\): "
            r"end it, or set TANDEM_SOCKET to the socket of one")


def every_verb_says_that_a_stopped_daemon_does_not_answer():
    with World() as world:
        pid = begin(world)
        with stopped(pid):
            all_verbs_say(world, no_answer(world, pid))
            doctor_says(world, no_answer(world, pid))
        done = world.call(TANDEM, "set", "policy")
        # Neither changed nor stopped, as they were told.
        assert done.returncode == 0 and " tandem " in done.stdout, done
        assert world.call(TANDEM, "gpu").returncode == 0 and world.daemon_pid() == pid


def programs_run_beside_a_stopped_daemon():
    with World() as world:
        pid = begin(world)
        with stopped(pid):
            programs_run_all_the_same(world, no_answer(world, pid), [], ["--class", "guaranteed"],
                                      ["--gpu", "any"], ["--gpu", "0"], ["--mem", "40m"])
        finish(world.start(TRAIN, *SMALL, wrap="swap"))
        nothing_is_left(world)


def one_whose_backlog_is_full_is_as_silent():
    with World() as world:
        with Impostor(world, None, backlog=0) as impostor, contextlib.ExitStack() as fillers:
            while True:
                filler = fillers.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                filler.setblocking(False)
                try:
                    filler.connect(impostor.path)
                except BlockingIOError:
                    break
            path = re.escape(impostor.path)
            words = (rf"no answer in 2 s from the daemon at {path}, which is stopped or "
                     r"overloaded: continue it \(kill -CONT\), or end it \(kill -KILL\), which "
                     r"leaves " rf"programs running; its pid is in {path}.lock")
            all_verbs_say(world, words)
            doctor_says(world, words)
            programs_run_all_the_same(world, words)


def another_program_that_accepts_and_says_nothing_is_silent_too():
    with World() as world:
        with Impostor(world, b""):
            all_verbs_say(world, no_answer(world, os.getpid()))
            doctor_says(world, no_answer(world, os.getpid()))
            programs_run_all_the_same(world, no_answer(world, os.getpid()))


def one_that_accepts_nobody_is_silent_too():
    with World() as world:
        with Impostor(world, None):
            all_verbs_say(world, no_answer(world, os.getpid()))
            programs_run_all_the_same(world, no_answer(world, os.getpid()))


def garbage_is_no_answer():
    with World() as world:
        with Impostor(world, b"HTTP/1.1 400 Bad Request\r\n\r\n"):
            all_verbs_say(world, no_tandemd(world, "Bad message"))
            doctor_says(world, no_tandemd(world, "Bad message"))
            programs_run_all_the_same(world, no_tandemd(world, "Bad message"))
        with Impostor(world, struct.pack("<HHI", 9, 62, 0)):  # of another version of the format
            all_verbs_say(world, no_tandemd(world, "Protocol error"),
                          [["ps"], ["gpu"], ["events", "-f"]])
            programs_run_all_the_same(world, no_tandemd(world, "Protocol error"))
        # As of a later version, and never an answer.
        with Impostor(world, struct.pack("<HHI", 1, 999, 0)):
            all_verbs_say(world, no_answer(world, os.getpid()), [["ps"], ["gpu"], ["events", "-f"]])
            programs_run_all_the_same(world, no_answer(world, os.getpid()))


def a_socket_file_that_nobody_has_is_replaced():
    with World() as world:
        path = world.environment["TANDEM_SOCKET"]
        os.makedirs(os.path.dirname(path), mode=0o700)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        listener.close()
        done = world.call(TANDEM, "ps")
        assert ((done.returncode, done.stderr)
                == (125,
                    f"tandem: no daemon at {path} (Connection refused): `tandem run` starts "
                    "one\n")), done
        finish(world.start(TRAIN, *SMALL, wrap="swap"))
        assert world.call(TANDEM, "ps").returncode == 0


def a_daemon_that_does_not_come_up_is_not_waited_for():
    with World() as world:
        tandemd, pid_file = f"{world.directory}/tandemd", f"{world.directory}/pid"
        with open(tandemd, "w") as f:
            f.write(f"#!/bin/sh\necho $$ > {pid_file}\nexec sleep 1000\n")
        os.chmod(tandemd, os.stat(tandemd).st_mode | stat.S_IXUSR)
        process = world.start(TANDEM, "run", "--", TRAIN, *SMALL, TANDEMD=tandemd)
        out, err = ends(process)
        with open(pid_file) as f:
            os.kill(int(f.read()), signal.SIGKILL)
        path = world.environment["TANDEM_SOCKET"]
        assert process.returncode == 0 and json.loads(out)["checksum_ok"], (process.returncode, err)
        assert (err
                == f"tandem: the daemon that was started at {path} has not come up in 10 s: see "
                f"{path}.log; until then the program runs without it\n"), err


def who_waits_for_a_stopped_daemon_goes_on_and_both_come_back_to_it():
    with World() as world:
        pid = begin(world)
        shells = [under_swap(world) for _ in range(2)]
        for number, shell in enumerate(shells):
            shell.do("alloc", 46 * MIB)
            shell.do("set", 0, 0, 100 * number)
            shell.do("add", 0)
        with stopped(pid):
            for shell in shells:  # one of them has the GPU; the other waits at its gate
                shell.send("add", 0)
            for shell in shells:
                assert shell.answer()[0] == 0
            assert [shell.do("get", 0, 0) for shell in shells] == [2, 102]
        are_back = lambda: sorted((j["pid"], j["demanded_bytes"]) for j in world.jobs()) == sorted(
                (s.process.pid, 46 * MIB) for s in shells)
        until(are_back, "both are there again, with their memory")
        for _ in range(3):
            for shell in shells:
                shell.do("add", 0)
        assert [shell.do("get", 0, 0) for shell in shells] == [5, 105]
        assert are_back(), world.jobs()
        assert world.daemon_pid() == pid
        for shell in shells:
            shell.end()
        nothing_is_left(world)


def a_daemon_that_is_stopped_in_the_midst_of_a_drain_spoils_no_result():
    with World() as world:
        pid = begin(world)
        programs = trains_that_take_turns(world, 2, 40)
        before = len(world.events("draining"))
        follower = world.start(TANDEM, "events", "-f")
        deadline = threading.Timer(DEADLINE_S, follower.kill)
        deadline.start()
        drains = (line for line in follower.stdout if " draining " in line)
        assert len(list(itertools.islice(drains, before + 1))) > before, "they take no turns"
        with stopped(pid):
            for program in programs:
                out, err = ends(program)
                assert (program.returncode == 0
                        and json.loads(out)["checksum_ok"]), (program.returncode, out, err)
        deadline.cancel()
        follower.kill()
        follower.communicate()
        nothing_is_left(world)
        finish(world.start(TRAIN, *SMALL, wrap="swap"))


run_cases([
    every_verb_says_that_a_stopped_daemon_does_not_answer,
    programs_run_beside_a_stopped_daemon,
    one_whose_backlog_is_full_is_as_silent,
    another_program_that_accepts_and_says_nothing_is_silent_too,
    one_that_accepts_nobody_is_silent_too,
    garbage_is_no_answer,
    a_socket_file_that_nobody_has_is_replaced,
    a_daemon_that_does_not_come_up_is_not_waited_for,
    who_waits_for_a_stopped_daemon_goes_on_and_both_come_back_to_it,
    a_daemon_that_is_stopped_in_the_midst_of_a_drain_spoils_no_result,
], at_once=3)
