"""What tests of a hostile user need: a daemon that root runs for everybody, and processes that
become another user and speak to its socket themselves."""
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import time
import traceback

from world import *

HOSTILE, NEWCOMER = 65534, 65533
HELLO, ATTACH, ATTACHED, DETACH, WANT, GRANT, USED = 1, 3, 4, 5, 6, 8, 9
LIST_JOBS, SET, EVENTS, EXPLAIN, PING, END, ERROR = 32, 36, 39, 41, 55, 62, 63
WELCOME, SERVICE, WATCH, ACT, SUPERVISE, ORDERED = 2, 28, 45, 46, 64, 66
STEPS = ["--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "3"]
SLOWER_S, ONCE_S, END_S, RSS_KIB = 2, 15, 10, 64 * 1024


def text(word):
    word = word if isinstance(word, bytes) else word.encode()
    return struct.pack("<H", len(word)) + word


def packet(kind, body=b""):
    return struct.pack("<HHI", 1, kind, len(body)) + body


def hello(job, name=None, backend=0):
    return packet(HELLO,
                  struct.pack("<I", os.getpid()) + text(job) + text(name or job)
                  + struct.pack("<BIBBI", 2, 1, backend, 0, 1))


def attach(slot, gpu=b"\x07" * 16, total=1 << 30, name="a GPU"):
    return packet(ATTACH,
                  struct.pack("<I", slot) + gpu + text(name) + struct.pack("<QQQB", total, 0, 0, 0))


def connect(world):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(DEADLINE_S)
    peer.connect(world.environment["TANDEM_SOCKET"])
    return peer


def answer(peer):
    """The packets of one answer: END or ERROR is the last."""
    packets = []
    while not packets or struct.unpack_from("<H", packets[-1], 2)[0] not in (END, ERROR):
        packets.append(peer.recv(4096))
        if not packets[-1]:
            return []
    return packets


def is_attached(peer):
    """False: it is to run as without tandem."""
    while True:
        kind = struct.unpack_from("<H", peer.recv(4096), 2)[0]
        if kind in (ATTACHED, ERROR):
            return kind == ATTACHED


class User:
    """A process of that user which runs play(), sends a byte when it has begun, and stays until it
    is ended. Each word is a packet, so that a slow reader gets one of two."""

    def __init__(self, uid, play, *arguments):
        reader, writer = (end.detach()
                          for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(reader)
                resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                play(lambda word=b"1": os.write(writer, word), *arguments)
                signal.pause()
            except BaseException:  # the parent sees that nothing is said
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(writer)
        self.pipe = reader

    def said(self):
        """What it has written; empty: it has ended without a word."""
        assert select.select([self.pipe], [], [], DEADLINE_S)[0], (
            "the other user's process says nothing")
        return os.read(self.pipe, 65536)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)


class SharedWorld(World):
    """With a daemon of root's, which every user can reach, and its log."""

    def __init__(self, *settings, **daemons):
        """daemons: what the daemon's environment has more than others'."""
        super().__init__()
        self.settings, self.daemons = settings, daemons

    def __enter__(self):
        if os.getuid():
            raise Skip("only root can be another user, and run a daemon for all users")
        super().__enter__()
        os.chmod(self.directory, 0o711)
        self.log = self.environment["TANDEM_SOCKET"] + ".log"
        os.mkdir(os.path.dirname(self.log), 0o755)
        with open(self.log, "w") as log:
            self.daemon = subprocess.Popen([SOFTGPU, "run", "--", TANDEMD,
                                            *(word for setting in self.settings
                                              for word in ("--set", setting))],
                                           env=dict(self.environment, **self.daemons), stderr=log)
        until(lambda: self.call(TANDEM, "gpu").returncode == 0 and self.gpu(),
              "the daemon serves, and has seen the GPU")
        self.usual_s = self.steps_s()
        return self

    def steps_s(self):
        began = time.monotonic()
        finish(self.start(TRAIN, *STEPS, wrap="plain"))
        return time.monotonic() - began

    def stays_usable(self):
        """The bounds of every case: a program's delay, which the machine's other load may cause
        once, and the daemon's memory."""
        for _ in tries(5, lambda: f"{took_s} s for three steps instead of {self.usual_s} s"):
            took_s, rss = self.steps_s(), self.rss_kib()
            assert took_s <= self.usual_s + ONCE_S, (took_s, self.usual_s)
            if took_s <= self.usual_s + SLOWER_S:
                break
        say(f"# three steps: {took_s:.2f} s, alone {self.usual_s:.2f} s; RSS {rss / 1024:.1f} MiB")
        assert rss < RSS_KIB, f"the daemon has {rss} KiB"
        assert self.call(TANDEM, "ps").returncode == 0

    def gpu(self):
        rows = json.loads(self.call(TANDEM, "gpu", "--json").stdout or "[]")
        return rows and next((row for row in rows if row["index"] == 0), None)

    def uuid(self):
        return bytes.fromhex(self.gpu()["uuid"].removeprefix("GPU-").replace("-", ""))

    def is_governed(self):
        """Every program of root's was taken in."""
        return not [e for e in self.events("ungoverned") if e["name"] == "train"]

    def rss_kib(self):
        with open(f"/proc/{self.daemon_pid()}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def ends_when_told(self):
        began = time.monotonic()
        self.daemon.send_signal(signal.SIGTERM)
        assert self.daemon.wait(DEADLINE_S) == 0
        took_s = time.monotonic() - began
        say(f"# ended after {took_s:.3f} s")
        assert took_s <= END_S, f"it ended after {took_s} s"


def come_after(began, world):
    """Does what a program and a tool do."""
    peer = connect(world)
    peer.send(hello("newcomer"))
    assert peer.recv(4096)
    peer.send(attach(0))
    assert is_attached(peer)
    tool = connect(world)
    tool.send(packet(LIST_JOBS, b"\1"))
    rows = answer(tool)
    began(f"{len(rows)}".encode())
