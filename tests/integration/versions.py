"""An older library under this daemon, and this library under an older daemon. Both sides' bytes are
those of the first version of the protocol, written down here, not made by the codec under test. TAP
on stdout; argument: the build."""
import array
import mmap
import select
import socket
import struct
import threading

from world import *

MIB = 1 << 20
TOTAL = 64 * MIB
CLOSED, SWAP, OPEN_GATE, CLOSED_GATE = 1, 1, 0, 2
OK, NO = 1, 4  # verdicts
VERSION = 1
is_grown = False

# Each message's number and fields in the first version.
FIRST = {"hello": (1,
                   "u32 pid, str job, str name, u8 class, u32 weight, u8 backend, u8 holds, u32 "
                   "abi"), "welcome": (2, "u32 process, str version"),
         "attach": (3, "u32 slot, uuid gpu, str gpu_name, u64 total_bytes, u64 context_bytes"),
         "attached": (4, "u32 slot, u64 capacity_bytes"), "detach": (5, "u32 slot"),
         "want": (6, "u32 word"), "idle": (7, "u64 launches, u64 since_ns"),
         "grant": (8,
                   "u32 slot, u32 seq, u8 gate, u8 others_wait, u64 device_bytes, u64 total_bytes, "
                   "u64 host_bytes, u32 ticket, u8 verdict"),
         "used": (9, "u32 slot, u32 acked_seq, u64 device_bytes, u64 total_bytes, u64 host_bytes"),
         "ready": (10, "u32 slot, u32 seq"),
         "drained": (11, "u32 seq, u64 launches, u64 frozen_ns, u64 drained_ns"),
         "stuck": (12, "u32 seq, u64 waited_ns"),
         "ask": (13, "u32 slot, u32 ticket, u64 bytes, u8 kind"),}
NUMBERS = {number: name for name, (number, _) in FIRST.items()}
FORMATS = {"u8": "<B", "u32": "<I", "u64": "<Q"}


def encode(message, **values):
    number, fields = FIRST[message]
    body = b""
    for field in fields.split(", "):
        kind, key = field.split()
        if kind == "str":
            text = values.get(key, "").encode()
            body += struct.pack("<H", len(text)) + text
        elif kind == "uuid":
            body += values[key]
        else:
            body += struct.pack(FORMATS[kind], values.get(key, 0))
    # Fields that later versions added are zero in today's version; a still later one has more.
    if is_grown:
        body += bytes(400) + os.urandom(9)
    return struct.pack("<HHI", VERSION, number, len(body)) + body


def decode(packet):
    """(name, {field: value}). Fields after the first version's are skipped; a message that it did
    not have is its number."""
    version, number, length = struct.unpack_from("<HHI", packet)
    assert version == VERSION and length == len(packet) - 8, packet
    if number not in NUMBERS:
        return number, {}
    at, values = 8, {}
    for field in FIRST[NUMBERS[number]][1].split(", "):
        kind, key = field.split()
        if kind == "str":
            size, = struct.unpack_from("<H", packet, at)
            values[key], at = packet[at + 2:at + 2 + size].decode(), at + 2 + size
        elif kind == "uuid":
            values[key], at = packet[at:at + 16], at + 16
        else:
            values[key], = struct.unpack_from(FORMATS[kind], packet, at)
            at += struct.calcsize(FORMATS[kind])
    return NUMBERS[number], values


class Closed(AssertionError):
    """The other end has gone."""


class Peer:
    """One end of a connection."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(DEADLINE_S)
        self.seen = []  # every message that came

    def send(self, message, fds=(), **values):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([encode(message, **values)], ancillary)

    def receive(self):
        packet, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(8))
        if not packet:
            raise Closed(f"the connection was closed: {self.seen}")
        self.fds = [fd for _, _,
                    data in ancillary for fd in array.array("i", data[:len(data) // 4 * 4])]
        name, values = decode(packet)
        self.seen.append(name)
        return name, values

    def until(self, wanted):
        """The next message of that name; what comes before it is passed over."""
        while True:
            name, values = self.receive()
            if name == wanted:
                return values


class OldClient(Peer):
    """A program with a library of the first version: it has memory that can move, reports it, and
    obeys."""

    def __init__(self, world, job, uuid):
        super().__init__(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.socket.connect(world.environment["TANDEM_SOCKET"])
        self.demanded = self.resident = self.limit = self.total = self.seq = 0
        self.send("hello", pid=os.getpid(), job=job, name="old", weight=1, backend=SWAP, abi=1,
                  **{"class": 2})
        while self.receive()[0] != "welcome":
            pass
        self.word = mmap.mmap(self.fds[0], 4096, prot=mmap.PROT_READ)
        for fd in self.fds:
            os.close(fd)
        self.send("attach", gpu=uuid, gpu_name="softgpu tiny", total_bytes=TOTAL)
        self.capacity = self.until("attached")["capacity_bytes"]

    def is_closed(self):
        return struct.unpack_from("<I", self.word)[0] & CLOSED

    def report(self):
        self.send("used", acked_seq=self.seq, device_bytes=self.resident, total_bytes=self.demanded,
                  host_bytes=self.demanded - self.resident)

    def act(self):
        """Does what the next message asks for. Its name."""
        name, values = self.receive()
        if name == "grant":
            self.seq, self.limit, self.total = (values["seq"], values["device_bytes"],
                                                values["total_bytes"])
            if values["verdict"]:
                self.granted = values["verdict"] != NO
                self.demanded += self.asked if self.granted else 0
            if values["gate"] == CLOSED_GATE and self.is_closed():
                self.send("drained", seq=self.seq)
                self.resident = min(self.resident, self.limit)
            elif values["gate"] != CLOSED_GATE:
                self.resident = min(self.demanded, self.limit)
            self.report()
            if values["gate"] != CLOSED_GATE and self.resident == self.demanded:
                self.send("ready", seq=self.seq)
        return name

    def run_until(self, condition, what):
        end = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < end, f"never: {what}"
            if select.select([self.socket], [], [], 0.01)[0]:
                self.act()

    def allocate(self, size):
        """As its allocator does: within its limit by itself, else it asks."""
        if self.resident + size <= self.limit and self.demanded + size <= self.total:
            self.granted = True
            self.demanded += size
            self.resident += size
            self.report()
        else:
            self.granted, self.asked = None, size
            self.send("ask", ticket=1, bytes=size)
            self.run_until(lambda: self.granted is not None, "an answer")
        return bool(self.granted)


def uuid_of(world):
    text = world.call(SOFTGPU, "smi", "-L").stdout.split("UUID: GPU-")[1].split(")")[0]
    return bytes.fromhex(text.replace("-", ""))


def an_older_library_takes_turns_with_a_new_one():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        old = OldClient(world, "old.1", uuid_of(world))
        assert 0 < old.capacity <= TOTAL
        old.send("want", word=CLOSED)
        old.run_until(lambda: not old.is_closed(), "its gate opens")
        assert old.allocate(46 * MIB)
        new = world.start(TRAIN, *LARGE, wrap="swap")
        old.run_until(old.is_closed, "it gives way to the new one")
        old.run_until(lambda: old.resident < 46 * MIB, "its memory leaves")
        old.send("want", word=struct.unpack_from("<I", old.word)[0])
        old.run_until(lambda: not old.is_closed() and old.resident == 46 * MIB,
                      "it has its turn again")
        old.send("idle", since_ns=time.monotonic_ns())
        old.run_until(lambda: new.poll() is not None, "the new one ends")
        finish(new)
        assert ({"waiting", "opened", "drained"}
                <= {e["kind"] for e in world.events() if e["name"] == "old"})
        old.socket.close()
        until(lambda: not world.jobs(), "it is gone")


def an_older_library_is_held_to_its_jobs_limit():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        old = OldClient(world, "old.2", uuid_of(world))
        old.send("want", word=CLOSED)
        old.run_until(lambda: not old.is_closed(), "its gate opens")
        assert world.call(TANDEM, "set", "old.2", "mem=20m").returncode == 0
        old.run_until(lambda: old.total == 20 * MIB, "it is told its limit")
        assert old.allocate(18 * MIB) and not old.allocate(4 * MIB) and old.allocate(2 * MIB)
        # The old side knows nothing of it.
        assert world.call(TANDEM, "set", "host.limit=10m").returncode == 0
        old.run_until(lambda: len(world.events("refused")) == 1, "the refusal is told")
        old.socket.close()
        until(lambda: not world.jobs(), "it is gone")


class OldDaemon(threading.Thread):
    """A daemon of the first version with one client at a time, which it opens, with so much memory;
    once it has been closed it opens it again."""

    def __init__(self, path, limit, takes_turns):
        super().__init__(daemon=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(4)
        self.limit, self.takes_turns, self.seen, self.error = limit, takes_turns, [], None
        self.moved, self.refused, self.demanded = False, 0, 0

    def page(self):
        fd = os.memfd_create("page")
        os.ftruncate(fd, 4096)
        return fd, mmap.mmap(fd, 4096)

    def plan(self, peer, gate, limit):
        self.seq += 1
        self.grants(peer, gate, limit, 0, 0)

    def grants(self, peer, gate, limit, ticket, verdict):
        peer.send("grant", seq=self.seq, gate=gate, others_wait=gate == CLOSED_GATE,
                  device_bytes=limit, total_bytes=limit, ticket=ticket, verdict=verdict)

    def write(self, word):
        """Who waits looks again by itself."""
        struct.pack_into("<I", self.gate, 0, word)

    def open(self, peer):
        self.plan(peer, OPEN_GATE, self.limit)
        while True:  # the program's thread need not wait for it
            name, values = peer.receive()
            if name == "ready" and values["seq"] == self.seq:
                break
            self.answer(peer, name, values)
        self.write(0)

    def answer(self, peer, name, values):
        if name == "ask":
            granted = self.demanded + values["bytes"] <= self.limit
            self.refused += not granted
            self.seq += 1
            self.grants(peer, OPEN_GATE, self.limit, values["ticket"], OK if granted else NO)
        elif name == "used":
            self.demanded = values["total_bytes"]

    def take_a_turn(self, peer):
        self.write(CLOSED | 8)
        self.plan(peer, CLOSED_GATE, 0)
        peer.until("drained")
        while True:
            values = peer.until("used")
            if values["acked_seq"] == self.seq and not values["device_bytes"]:
                break
        self.moved = values["host_bytes"] > 0
        self.open(peer)

    def serve(self, peer):
        hello = peer.until("hello")
        assert hello["pid"] and hello["backend"] == SWAP, hello
        (gate_fd, self.gate), (meter_fd, _) = self.page(), self.page()
        self.write(CLOSED)
        self.seq = 0
        peer.send("welcome", fds=[gate_fd, meter_fd], process=1, version="0.0.1")
        attach = peer.until("attach")
        assert attach["total_bytes"] == TOTAL, attach
        peer.send("attached", capacity_bytes=TOTAL)
        self.open(peer)
        while True:
            if self.takes_turns and self.demanded >= 30 * MIB:  # all that the program allocates
                self.takes_turns = False
                self.take_a_turn(peer)
            try:
                name, values = peer.receive()
            except Closed:
                return  # it has ended
            self.answer(peer, name, values)

    def run(self):
        peer = None
        try:
            peer = Peer(self.listener.accept()[0])
            self.listener.close()  # nobody else is to wait for an answer
            os.unlink(self.path)
            self.serve(peer)
        except (Closed, OSError, struct.error) as problem:
            # Who was refused its memory may end before it says that it is ready.
            if not self.refused:
                self.error = problem
        except AssertionError as problem:
            self.error = problem
        self.seen = peer.seen if peer else []


def under(world, limit, takes_turns, *arguments):
    """Starts a program of today directly under the library, because tandem run would ask more of a
    daemon than this one can."""
    daemon = OldDaemon(world.environment["TANDEM_SOCKET"], limit, takes_turns)
    daemon.start()
    program = world.start(TRAIN, *arguments, LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap")
    return daemon, program


def an_older_daemon_runs_a_new_library_and_moves_its_memory():
    with World() as world:
        daemon, program = under(world, TOTAL, True, "--size", "30m", "--gpu", "10ms", "--cpu",
                                "1ms", "--steps", "200")
        finish(program)
        daemon.join(DEADLINE_S)
        assert (not daemon.error and daemon.moved
                and "drained" in daemon.seen), (daemon.error, daemon.seen)
        assert world.status()["copy_out_bytes"] > 0


def an_older_daemon_holds_a_new_library_to_its_limit():
    with World() as world:
        daemon, program = under(world, 8 * MIB, False, "--size", "30m", "--gpu", "10ms", "--cpu",
                                "1ms", "--steps", "2")
        _, err = program.communicate(timeout=DEADLINE_S)
        assert program.returncode and "OUT_OF_MEMORY" in err, err
        daemon.join(DEADLINE_S)
        assert not daemon.error and daemon.refused, (daemon.error, daemon.seen)


def an_older_daemon_that_refused_memory_hides_no_other_mistake():
    """Messages to the daemon that is written down here must keep to the first version all the same.
    """
    for hello, closes, wrong in (({"pid": 0, "backend": SWAP}, False, True),
                                 ({"pid": 1, "backend": SWAP}, True, False)):
        with World() as world:
            daemon = OldDaemon(world.environment["TANDEM_SOCKET"], TOTAL, False)
            daemon.refused = 1
            daemon.start()
            client = Peer(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            client.socket.connect(world.environment["TANDEM_SOCKET"])
            client.send("hello", **hello)
            if closes:
                client.until("welcome")
                client.socket.close()
            daemon.join(DEADLINE_S)
            assert isinstance(daemon.error, AssertionError) == wrong, (hello, daemon.error)


def grown():
    """From here on every message has bytes at its end that today's version does not know."""
    global is_grown
    is_grown = True


def a_newer_library_takes_turns_and_is_held_to_its_limit():
    grown()
    an_older_library_takes_turns_with_a_new_one()
    an_older_library_is_held_to_its_jobs_limit()


def a_newer_daemon_runs_this_library_and_holds_it_to_its_limit():
    grown()
    an_older_daemon_runs_a_new_library_and_moves_its_memory()
    an_older_daemon_holds_a_new_library_to_its_limit()


run_cases([
    an_older_library_takes_turns_with_a_new_one,
    an_older_library_is_held_to_its_jobs_limit,
    an_older_daemon_runs_a_new_library_and_moves_its_memory,
    an_older_daemon_holds_a_new_library_to_its_limit,
    an_older_daemon_that_refused_memory_hides_no_other_mistake,
    a_newer_library_takes_turns_and_is_held_to_its_limit,
    a_newer_daemon_runs_this_library_and_holds_it_to_its_limit,
])
