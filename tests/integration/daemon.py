"""Attacks on a daemon from outside - malformed packets, floods, silence, a full disk - cost their
sender, and nobody else. TAP on stdout; argument: the build."""
import os
import re
import resource
import select
import socket
import struct
import subprocess
import time

from shell import MIB, Shell
from world import *

VERSION = 1
HELLO, ATTACH, WANT, ASK, LIST_JOBS, EVENTS, JOB, END, ERROR = 1, 3, 6, 13, 32, 39, 33, 62, 63


def connect(world):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(DEADLINE_S)
    peer.connect(world.environment["TANDEM_SOCKET"])
    return peer


def text(word):
    return struct.pack("<H", len(word)) + word.encode()


def packet(kind, body=b"", version=VERSION, length=None):
    return struct.pack("<HHI", version, kind, len(body) if length is None else length) + body


def hello(job="raw"):
    return packet(HELLO,
                  struct.pack("<I", os.getpid()) + text(job) + text(job)
                  + struct.pack("<BIBBI", 2, 1, 0, 0, 1))


def is_closed(peer):
    """The daemon has ended this connection."""
    try:
        while peer.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def serves(world):
    """A program comes to its GPU and ends, and a tool is answered."""
    finish(world.start(TRAIN, *SMALL, wrap="plain"))
    assert world.call(TANDEM, "ps").returncode == 0


def begin(world):
    assert world.call(TANDEM, "run", "--", "true").returncode == 0
    return world.daemon_pid()


def nonsense_costs_its_sender_the_connection_only():
    with World() as world:
        pid = begin(world)
        good = connect(world)
        good.send(hello("good"))
        assert good.recv(4096)
        for name, packets in {"short": [b"abc"],
                              "a length that lies": [packet(LIST_JOBS, b"\0", length=7)],
                              "longer than any": [packet(LIST_JOBS, b"\0" * 60000)],
                              "another version of the format": [packet(LIST_JOBS, b"\0",
                                                                       version=9)],
                              "a string beyond its end": [packet(HELLO, b"\0\0\0\0\xff\xff")],
                              "an answer as a request": [packet(JOB, b"")],
                              "a client's word without HELLO": [packet(WANT, b"\0\0\0\0")],
                              "HELLO twice": [hello(), hello()],
                              "a GPU that nobody can have": [hello(),
                                                             packet(ATTACH,
                                                                    struct.pack("<I", 999))],
                              "an ask without a GPU": [hello(),
                                                       packet(ASK,
                                                              struct.pack(
            "<IIQQ", 0, 1, 1 << 62, 0))]}.items():
            peer = connect(world)
            for one in packets:
                try:
                    peer.send(one)
                except BrokenPipeError:
                    pass
            assert is_closed(peer), name
        good.send(packet(WANT, b"\0\0\0\0"))
        serves(world)
        assert world.daemon_pid() == pid and any(j["name"] == "good" for j in world.jobs())


def what_comes_from_later_and_earlier_versions_is_understood():
    with World() as world:
        begin(world)
        peer = connect(world)
        peer.send(packet(999, b"of a later version"))
        peer.send(packet(LIST_JOBS, b"\1" + b"fields of a later version"))
        assert struct.unpack_from("<HH", peer.recv(4096))[1] in (JOB, 62)
        old = connect(world)
        old.send(packet(HELLO, struct.pack("<I", 1) + text("old")))  # the first two fields only
        assert old.recv(4096)
        until(lambda: any(j["job"] == "old" for j in world.jobs()), "the old client is known")


def a_flood_slows_nobody_down_for_long():
    with World() as world:
        begin(world)
        flooders = [connect(world) for _ in range(3)]
        for peer in flooders:
            peer.setblocking(False)
            peer.send(hello(f"flood{peer.fileno()}"))
        program, sent = world.start(TRAIN, *SMALL, wrap="plain"), 0
        end = time.monotonic() + DEADLINE_S
        while program.poll() is None and time.monotonic() < end:
            for peer in flooders:
                try:
                    peer.send(packet(WANT, struct.pack("<I", sent)))
                    sent += 1
                except BlockingIOError:
                    pass
        finish(program)
        assert sent > 1000, sent
        assert world.call(TANDEM, "ps").returncode == 0


def a_follower_that_does_not_read_is_dropped():
    with World() as world:
        begin(world)
        peer = connect(world)
        peer.send(packet(EVENTS, struct.pack("<BQ", 1, 0)))
        job = connect(world)
        job.send(hello("noise"))
        until(lambda: any(j["job"] == "noise" for j in world.jobs()), "the job is known")
        limit = time.monotonic() + DEADLINE_S
        asks = connect(world)
        asks.setblocking(False)
        # Every change is an event; 4 MiB of them are kept for one that does not read.
        while time.monotonic() < limit:
            try:
                asks.send(packet(36,
                                 text("noise") + text("weight")
                                 + text(str(1 + int(time.monotonic() * 1e6) % 900))
                                 + b"\0"))
                asks.recv(4096)
            except BlockingIOError:
                pass
            if dropped(world, peer):
                break
        else:
            raise AssertionError("it is still connected")
        serves(world)


def dropped(world, peer):
    """Without reading: the kernel says that the other end has hung up."""
    poll = select.poll()
    poll.register(peer, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def one_that_says_nothing_is_dropped_and_so_many_that_there_are_no_descriptors():
    with World() as world:
        pid = begin(world)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))
        peers = []
        for _ in range(200):
            try:
                peers.append(connect(world))
            except OSError:
                break
        ticks = cpu_ticks(pid)
        began = time.monotonic()
        until(lambda: sum(dropped(world, p) for p in peers) >= len(peers), "all are dropped")
        share = (cpu_ticks(pid) - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
        assert share < 0.5, f"the daemon was busy with them: {share}"
        serves(world)


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])


def a_full_disk_for_its_log_hurts_nobody():
    with World() as world, open("/dev/full", "w") as full:
        daemon = subprocess.Popen([TANDEMD, "--socket", world.environment["TANDEM_SOCKET"],
                                   "--verbose"], env=world.environment, stderr=full, stdout=full)
        until(lambda: world.call(TANDEM, "ps").returncode == 0, "it serves")
        peer = connect(world)
        peer.send(b"abc")
        assert is_closed(peer)
        serves(world)
        assert daemon.poll() is None
        world.call(TANDEM, "stop", "--force")
        assert daemon.wait(DEADLINE_S) == 0


def where_its_socket_cannot_be_made_the_reason_is_said():
    """No file may have a byte, as on a full disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with World() as world:
        path = world.environment["TANDEM_SOCKET"]
        # SIGXFSZ stays ignored: a write fails.
        done = subprocess.run([TANDEM, "run", "--", "true"], env=world.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S, preexec_fn=limit, restore_signals=False)
        assert (done.returncode == 125
                and done.stderr
                == f'tandem: no daemon could be started at "{path}": File too large\n'), done
        done = world.call(TANDEM, "run", "--", "true", TANDEMD="/nowhere/tandemd")
        assert (done.returncode == 125
                and done.stderr
                == f'tandem: no daemon could be started at "{path}": /nowhere/tandemd: No such '
                'file or directory\n'), done
        done = world.call(TANDEM, "run", "--", "true", TANDEM_SOCKET="/dev/null/t/socket")
        assert (done.returncode == 125
                and done.stderr
                == 'tandem: no daemon could be started at "/dev/null/t/socket": Not a '
                'directory\n'), done
        serves(world)


def another_user_sees_sums_and_cannot_tell_what_is_there():
    if os.getuid():
        raise Skip("only root has another user")
    with World() as world:
        os.chmod(world.directory, 0o711)

        def as_other(*words):
            return subprocess.run([TANDEM, *words], env=world.environment, capture_output=True,
                                  text=True, timeout=DEADLINE_S, user=65534, group=65534,
                                  extra_groups=[])

        shells = [Shell(world, TANDEM, "run", "--name", f"secret{i}", "--") for i in range(2)]
        for shell in shells:
            shell.do("alloc", 8 * MIB)
        until(lambda: sum(job["demanded_bytes"] for job in world.jobs()) == 16 * MIB,
              "they are known")
        try:
            done = as_other("ps", "--json")
        except PermissionError as why:
            raise Skip(f"the other user may not read the build: {why}") from why
        rows = json.loads(done.stdout)
        assert len(rows) == 1, rows
        row = rows[0]
        assert (row
                == {"job": "", "name": "", "pid": 0, "processes": 2, "gpu": 0,
                    "demanded_bytes": 16 * MIB, "resident_bytes": row["resident_bytes"],
                    "host_bytes": row["host_bytes"]}), done
        title, line = as_other("ps").stdout.splitlines()
        assert re.fullmatch(r"  0 - +\(2 of others\) +-( +-){4} +16.0 MiB +\S+ \S+( +\S+ MiB| +-)"
                            r"( +-)*", line), (title, line)
        job = world.jobs()[0]
        for words in (["set", "{}"], ["set", "{}", "weight=3"], ["explain", "{}"], ["pause", "{}"],
                      ["resume", "{}"], ["evict", "{}"], ["restart", "{}"]):
            nobody = as_other(*(word.format("nobody") for word in words))
            assert nobody.returncode == 125 and "nobody" in nobody.stderr, nobody
            for name in (job["job"], job["name"], str(job["pid"])):
                done = as_other(*(word.format(name) for word in words))
                assert ((done.returncode, done.stdout, done.stderr)
                        == (125, "", nobody.stderr.replace("nobody", name))), done
        for words in (["events"], ["events", "--json"], ["gpu"], ["gpu", "--json"], ["doctor"],
                      ["set"]):
            done = as_other(*words)
            assert done.stdout and "secret" not in done.stdout + done.stderr, done
        for shell in shells:
            shell.end()


def one_that_ends_while_it_is_asked_is_replaced():
    with World() as world:
        path = world.environment["TANDEM_SOCKET"]
        os.makedirs(os.path.dirname(path), mode=0o700)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        listener.listen()
        run = world.start(TANDEM, "run", "--class", "guaranteed", "--", "true")
        probe = listener.accept()[0]  # is there a daemon that answers?
        assert probe.recv(4096)
        probe.send(packet(END, b"\0\0\0\0"))
        probe.close()
        question = listener.accept()[0]
        assert question.recv(4096)
        listener.close()
        question.close()
        assert run.wait(DEADLINE_S) == 0, run.stderr.read()
        serves(world)


def the_first_answer_of_nvml_is_waited_for_longer_than_any_other():
    """It has to wake the GPUs; a tool that asks meanwhile is not told that there is none."""
    with World() as world:
        # Others are waited for for 3 s.
        environment = dict(world.environment, LD_LIBRARY_PATH=f"{BUILD}/tests/compat",
                           FAKE_NVML_WAKES="4")
        daemon = subprocess.Popen([TANDEMD], env=environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        until(lambda: world.call(TANDEM, "ps").returncode == 0, "it answers")
        gpus = json.loads(world.call(TANDEM, "gpu", "--json").stdout)
        assert [g["index"] for g in gpus] == [0, 1, 2], gpus
        assert world.call(TANDEM, "stop").returncode == 0
        assert daemon.wait(timeout=DEADLINE_S) == 0


run_cases([
    where_its_socket_cannot_be_made_the_reason_is_said,
    another_user_sees_sums_and_cannot_tell_what_is_there,
    one_that_ends_while_it_is_asked_is_replaced,
    nonsense_costs_its_sender_the_connection_only,
    what_comes_from_later_and_earlier_versions_is_understood,
    a_flood_slows_nobody_down_for_long,
    a_follower_that_does_not_read_is_dropped,
    one_that_says_nothing_is_dropped_and_so_many_that_there_are_no_descriptors,
    a_full_disk_for_its_log_hurts_nobody,
    the_first_answer_of_nvml_is_waited_for_longer_than_any_other,
])
