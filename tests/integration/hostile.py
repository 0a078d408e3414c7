"""A hostile local user against a daemon that root runs for everybody.

Whatever that user does, others' programs run on, and the daemon stays small and ends on request.
TAP on stdout; argument: the build.

Each case forks a process that becomes another user and plays one attack on the daemon's socket.
"""
import array
import contextlib
import threading
import unicodedata

from hostile_world import *
from shell import MIB, SHELL, Shell


def slow_to_close():
    """A TCP socket whose last close() sleeps for an hour: what it has sent is not received."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    sender = socket.socket()
    sender.connect(listener.getsockname())
    kept = listener, listener.accept()[0]
    sender.setblocking(False)
    try:
        while True:
            sender.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return sender, kept


def pass_slow(began, world):
    """Beside a request, beside a later one that is not read any more, and before anything is."""
    kept = []
    for i in range(8):
        peer = connect(world)
        for _ in range(1 + i % 3):
            sender, others = slow_to_close()
            kept.append(others)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sender.fileno()]))]
            try:
                if i % 2:
                    peer.send(b"nonsense")
                peer.sendmsg([packet(LIST_JOBS, b"\1")], rights)
            except (BrokenPipeError, ConnectionResetError):
                pass
            # Where it was not taken, or is closed already, this is the last close.
            threading.Thread(target=sender.close).start()
        peer.close()
    began()
    pass_slow.kept = kept
    signal.pause()


def take_everything(began, world):
    """Clients by connections with 16 slots each, then as many connections as there are."""
    peers, slots = [], 0
    for _ in range(80):
        peer = connect(world)
        peers.append(peer)
        try:
            peer.send(hello(f"job{len(peers)}"))
            peer.recv(4096)
            for slot in range(16):
                peer.send(attach(slot))
                if not is_attached(peer):
                    break
                slots += 1
        except (ConnectionError, struct.error):  # no more of them: the connection has ended
            peers.pop().close()
    for _ in range(1200):
        peer = connect(world)
        try:
            peer.send(packet(PING, b"\0"))
            if peer.recv(4096):
                peers.append(peer)
        except ConnectionError:
            break
    began(f"{slots} {len(peers)}".encode())
    take_everything.kept = peers
    signal.pause()


def one_user_leaves_room_for_the_next_and_for_root():
    with SharedWorld() as world, User(HOSTILE, take_everything, world) as user:
        taken = user.said()
        assert taken, "the other user's process has failed"
        slots, peers = map(int, taken.split())
        say(f"# {slots} clients, {peers} connections")
        assert slots <= 512 and peers <= 512, (slots, peers)
        for uid in (NEWCOMER, NEWCOMER - 1, 0):
            with User(uid, come_after, world) as newcomer:
                assert newcomer.said(), f"uid {uid} is kept out"
        world.stays_usable()
        world.ends_when_told()


def come_and_go(began, world):
    """4,200 times to a GPU, which are 4,200 events, and as many changes of a weight."""
    peer, tool = connect(world), connect(world)
    peer.send(hello("noise"))
    peer.setblocking(False)  # each change is answered, so the daemon has read what came before
    for i in range(4200):
        peer.send(attach(0))
        peer.send(packet(DETACH, struct.pack("<I", 0)))
        tool.send(packet(SET, text("noise") + text("weight") + text(str(1 + i % 900)) + b"\0"))
        assert answer(tool)
        try:
            while peer.recv(4096):
                pass
        except BlockingIOError:
            pass
    began()


def many_events_of_one_user_erase_nobody_elses_and_fill_no_log():
    # The daemon complains of that whenever a GPU comes.
    with SharedWorld("gpu.locks=/proc/nowhere") as world:
        before = world.events()
        with User(HOSTILE, come_and_go, world) as user:
            assert user.said()
            world.stays_usable()
            events = world.events()
            assert sum(e["name"] == "noise" for e in events) > 3000, len(events)
            assert [e for e in before if e not in events] == []
            size = os.path.getsize(world.log)
            say(f"# {len(events)} events, {size} bytes of log")
            assert size < 10000, f"{size} bytes of log"
            world.ends_when_told()


def read_nothing(began, world):
    """Asks for every event again and again, on as many connections as there are."""
    peer, tool, kept = connect(world), connect(world), []
    peer.send(hello("noise"))
    for i in range(4200):
        tool.send(packet(SET, text("noise") + text("mem") + text(f"{1000000000 + i}") + b"\0"))
        assert answer(tool)
    for i in range(400):
        asks = connect(world)
        asks.setblocking(False)
        try:
            for _ in range(1 + i % 40):
                asks.send(packet(EVENTS, struct.pack("<BQ", 0, 0)))
        except OSError:  # nothing more is read of it
            pass
        kept.append(asks)
    began()
    read_nothing.kept = kept, peer, tool
    signal.pause()


def answers_that_are_not_read_cost_little():
    with SharedWorld() as world, User(HOSTILE, read_nothing, world) as user:
        assert user.said()
        with User(NEWCOMER, come_after, world) as newcomer:
            assert newcomer.said(), "another user is kept out"
        world.stays_usable()
        world.ends_when_told()


def make_up_gpus(began, world):
    """17 and more that nobody has, some of them of no size or of more than there is."""
    peers = []
    for i in range(80):
        peers.append(connect(world))
        peers[-1].send(hello(f"gpu{i}"))
        peers[-1].send(attach(0, bytes([0xee, i]) * 8, total=(0, 1, 1 << 30, 1 << 63)[i % 4]))
        while struct.unpack_from("<H", peers[-1].recv(4096), 2)[0] != ATTACHED:
            pass
    began()
    make_up_gpus.kept = peers
    signal.pause()


def gpus_that_nobody_has_leave_room_for_the_ones_that_are_there():
    with SharedWorld() as world, User(HOSTILE, make_up_gpus, world) as user:
        assert user.said()
        world.stays_usable()
        assert world.is_governed()
        world.ends_when_told()


def obey(peer):
    """Acknowledges each plan, as a program that has nothing on the GPU."""
    while True:
        message = peer.recv(4096)
        if struct.unpack_from("<H", message, 2)[0] == GRANT:
            slot, seq = struct.unpack_from("<II", message, 8)
            peer.send(packet(USED, struct.pack("<II", slot, seq)))


def lie_of_size(began, world, gpu, total):
    peer = connect(world)
    peer.send(hello("liar"))
    peer.send(attach(0, gpu, total))
    while struct.unpack_from("<H", peer.recv(4096), 2)[0] != ATTACHED:
        pass
    began()
    obey(peer)


def a_lie_about_a_gpus_size_changes_nobody_elses():
    with SharedWorld() as world:
        capacity = world.gpu()["capacity_bytes"]
        for total in (1, 1 << 62):
            with User(HOSTILE, lie_of_size, world, world.uuid(), total) as user:
                assert user.said()
                world.stays_usable()
                assert world.is_governed()
                now = world.gpu()["capacity_bytes"]  # what NVML lists, less what a driver may keep
                assert capacity * 15 // 16 <= now <= capacity, (total, world.gpu())
        world.ends_when_told()


def be_promised_all(began, world, gpu, capacity):
    """Is admitted with all of the memory, and never acknowledges it; but it reads, and is alive."""
    peer = connect(world)
    peer.send(hello("mute", backend=1))
    peer.send(attach(0, gpu, capacity))
    while struct.unpack_from("<H", peer.recv(4096), 2)[0] != ATTACHED:
        pass
    peer.send(packet(USED, struct.pack("<IIQQ", 0, 0, 0, capacity)))
    peer.send(packet(WANT, struct.pack("<I", 0)))
    while struct.unpack_from("<H", peer.recv(4096), 2)[0] != GRANT:
        pass
    began()
    peer.settimeout(None)
    while peer.recv(4096):
        peer.send(packet(PING, b"\0"))


def who_never_acknowledges_is_passed_by():
    with SharedWorld() as world:
        gpu = world.gpu()
        with User(HOSTILE, be_promised_all, world, world.uuid(), gpu["capacity_bytes"]) as user:
            assert user.said()
            program = world.start(TRAIN, *STEPS, wrap="plain")
            until(lambda: world.events("unresponsive"), "the client is unresponsive")
            finish(program)
            until(lambda: [job["state"] for job in world.jobs()] == ["unresponsive"],
                  "the program has left, and the client is as it was")
            world.stays_usable()
        world.ends_when_told()


def check_often(began, world):
    """64 times for 480 jobs whose processes have one name, by four connections at once."""
    jobs = []
    for i in range(480):
        jobs.append(connect(world))
        jobs[-1].send(hello(f"job{i}", "same"))
        assert jobs[-1].recv(4096)
        jobs[-1].send(attach(0, b"\x0c" * 16))
    tools = [connect(world) for _ in range(4)]  # one that says nothing for seconds is dropped
    began()
    for _ in range(16):
        for tool in tools:
            tool.send(packet(SET, text("same") + text("class") + text("guaranteed") + b"\1"))
        for tool in tools:
            assert answer(tool)
    began()
    signal.pause()


def questions_about_many_jobs_delay_nobody():
    with SharedWorld("quota.jobs=1000") as world, User(HOSTILE, check_often, world) as user:
        assert user.said()
        world.stays_usable()
        assert user.said()
        world.ends_when_told()


def run_shells(began, world, *classes):
    """Programs of the real library: the first is stopped in its turn, the others while they wait
    for theirs."""
    os.setsid()  # all of them are in one group, and nobody else is
    shells = [Shell(world, TANDEM, "run", "--backend", "swap", "--class", name, "--")
              for name in classes]
    for shell in shells:
        shell.do("alloc", 40 * MIB)  # of 64
    shells[0].do("add", 0)
    os.kill(shells[0].process.pid, signal.SIGSTOP)
    for shell in shells[1:]:
        shell.send("add", 0)
        until(lambda: [job for job in world.jobs()
                       if job["pid"] == shell.process.pid and job["state"] == "waiting"],
              "it waits")
        os.kill(shell.process.pid, signal.SIGSTOP)
    began()
    run_shells.kept = shells
    signal.pause()


def open_gpu_to_all(world):
    """The software GPU is its owner's, as made."""
    gpu = world.environment["SOFTGPU_DIR"]
    os.chmod(gpu, 0o755)
    for name in os.listdir(gpu):
        os.chmod(f"{gpu}/{name}", 0o666)
    try:
        subprocess.run([SHELL], user=HOSTILE, stdin=subprocess.DEVNULL, env=world.environment,
                       capture_output=True, timeout=DEADLINE_S)
    except PermissionError:
        raise Skip("another user may not run what is in the build")


def stopped_programs_of_another_user_delay_nobody():
    for classes in (["besteffort"], ["guaranteed"], ["besteffort", "besteffort"],
                    ["guaranteed", "besteffort"]):
        with SharedWorld("quota.gpus=2") as world:
            open_gpu_to_all(world)
            with User(HOSTILE, run_shells, world, *classes) as user:
                try:
                    assert user.said(), classes
                    world.stays_usable()
                    assert world.is_governed()
                    states = [job["state"] for job in world.jobs() if job["name"] != "train"]
                    assert len(states) == len(classes), world.jobs()
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(user.pid, signal.SIGKILL)
            until(lambda: world.jobs() == [], "jobs of the dead are gone")
            world.stays_usable()
            world.ends_when_told()


def explain_and_not_read(began, world):
    """Asks about 480 jobs, which are gone before the answer is read."""
    jobs = []
    for i in range(480):
        jobs.append(connect(world))
        jobs[-1].send(hello(f"job{i}", "same"))
        assert jobs[-1].recv(4096)
    # Not before: one that says nothing for seconds is dropped.
    tool, other = connect(world), connect(world)
    tool.send(packet(EXPLAIN, text("same")))
    all_rows = len(answer(tool))
    tool.send(packet(EXPLAIN, text("same")))
    tool.recv(4096, socket.MSG_PEEK)  # it has begun
    for job in jobs:
        job.close()
    rows = []
    for _ in tries(10000, lambda: f"jobs that have left are gone, but {len(rows)} are shown"):
        other.send(packet(LIST_JOBS, b"\1"))
        rows = answer(other)
        if len(rows) == 1:  # none of them is left
            break
    began(f"{all_rows} {len(answer(tool))}".encode())
    signal.pause()


def an_answer_about_many_jobs_is_made_as_it_is_read():
    with SharedWorld() as world, User(HOSTILE, explain_and_not_read, world) as user:
        all_rows, rows = map(int, user.said().split())
        say(f"# {all_rows} rows, and {rows} of an answer that was not read while the jobs ended")
        assert 480 < all_rows and 1 < rows < all_rows
        world.stays_usable()
        world.ends_when_told()


EVIL = "a\033]0;b\007\nc\u009b2Jd\u202ee"  # a title, a line, an erased screen, a changed direction


def name_badly(began, world):
    peer = connect(world)
    peer.send(hello(EVIL))
    peer.send(attach(0, name=EVIL))
    tool = connect(world)
    for body in (packet(SET, text(EVIL) + text("weight") + text("3") + b"\0"),
                 packet(LIST_JOBS, b"\1")):
        tool.send(body)
        assert answer(tool)
    began()
    name_badly.kept = peer
    signal.pause()


def names_of_others_do_nothing_to_a_terminal():
    with SharedWorld() as world, User(HOSTILE, name_badly, world) as user:
        assert user.said()
        name = world.jobs()[0]["job"]
        assert name.startswith("a?]0;b??c"), repr(name)
        for words in (["ps"], ["ps", "--json"], ["gpu"], ["gpu", "--json"], ["events"],
                      ["events", "--json"], ["explain", name], ["explain", EVIL], ["set", name],
                      ["doctor"]):
            done = subprocess.run([TANDEM, *words], env=world.environment, capture_output=True,
                                  timeout=DEADLINE_S)
            shown = done.stdout.decode().replace("\n", "")  # strictly UTF-8
            assert words == ["doctor"] or done.returncode == 0, done
            assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")], (
                words, shown)
            assert (words[0] in ("gpu", "doctor") or "]0;b" in shown
                    or words[0] in ("explain", "set")), (words, shown)
        world.stays_usable()
        world.ends_when_told()


def a_descriptor_that_is_slow_to_close_delays_nobody():
    with SharedWorld() as world, User(HOSTILE, pass_slow, world) as user:
        assert user.said()
        world.stays_usable()
        world.ends_when_told()


run_cases([
    a_descriptor_that_is_slow_to_close_delays_nobody,
    one_user_leaves_room_for_the_next_and_for_root,
    many_events_of_one_user_erase_nobody_elses_and_fill_no_log,
    names_of_others_do_nothing_to_a_terminal,
    answers_that_are_not_read_cost_little,
    gpus_that_nobody_has_leave_room_for_the_ones_that_are_there,
    a_lie_about_a_gpus_size_changes_nobody_elses,
    questions_about_many_jobs_delay_nobody,
    who_never_acknowledges_is_passed_by,
    stopped_programs_of_another_user_delay_nobody,
    an_answer_about_many_jobs_is_made_as_it_is_read,
])
