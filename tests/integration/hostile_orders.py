"""A hostile local user who sends what supervisors, services and tools send, and whose numbers of
processes become other users'. See hostile.py. TAP on stdout; argument: the build."""
import contextlib
import itertools
import random
import shutil

from hostile_world import *

NO_PEERPIDFD = f"{BUILD}/tests/integration/libno_peerpidfd.so"
EVICT, PAUSE, RESUME, RESTART = 1, 3, 4, 5
CAN_ALL = 7


def programs(world, count, name="same"):
    """Connections of so many programs, or as many as the user may have, and their meters'
    descriptors. The programs are on no GPU."""
    peers, meters = [], []
    for i in range(count):
        peer = connect(world)
        try:
            peer.send(hello(f"job{i}", name))
            _, fds, *_ = socket.recv_fds(peer, 4096, 2)
        except ConnectionError:
            break
        if not fds:  # it has ended
            break
        peers.append(peer)
        os.close(fds[0])
        meters.append(fds[1])
    return peers, meters


def drop_unread(peers):
    for peer in peers:
        try:
            while peer.recv(65536, socket.MSG_DONTWAIT):
                pass
        except OSError:
            pass


def flood(began, peers, packets):
    """Sends them on all connections in turn, for ever, as fast as they are taken, and reads all."""
    sent = 0
    for number, body in enumerate(packets):
        if number == 4 * len(peers):
            began()
        try:
            peers[number % len(peers)].send(body, socket.MSG_DONTWAIT)
            sent += 1
        except OSError:  # full, or dropped
            drop_unread(peers)
        if sent % 64 == 0:
            drop_unread(peers)


def endures(play, *settings, check=lambda world: None):
    """Others run on beside it, and what check() returns stays the same."""
    with SharedWorld(*settings) as world:
        before = check(world)
        with User(HOSTILE, play, world) as user:
            assert user.said(), "the other user's process has failed"
            world.stays_usable()
            assert world.is_governed()
            assert check(world) == before, (before, check(world))
            world.ends_when_told()


def act(job, kind):
    return packet(ACT, text(job) + struct.pack("<B", kind))


def act_on_everything(began, world):
    """On 480 jobs of one name, on 60 of another, on those of others, and on nobody's."""
    peers, _ = programs(world, 300)
    for i in range(60):
        peers.append(connect(world))
        peers[-1].send(hello(f"few{i}", "few"))
        assert peers[-1].recv(4096)
    tools = [connect(world) for _ in range(64)]
    for peer in peers + tools:
        peer.setblocking(False)
    kinds = itertools.cycle((PAUSE, RESUME, RESTART, 0, 2, 6, 200))
    names = itertools.cycle(("few", "same", "train", "few", "", "x" * 63, "few"))
    flood(began, tools, (act(next(names), next(kinds)) for _ in itertools.count()))


def acts_without_end_delay_nobody():
    endures(act_on_everything)


def act_on_others(began, world):
    tool = connect(world)
    for kind in (EVICT, PAUSE, RESTART):
        for name in ("train", "1", str(world.daemon.pid)):
            tool.send(act(name, kind))
            rows = answer(tool)
            assert len(rows) == 1 and struct.unpack_from("<H", rows[0], 2)[0] == ERROR, rows
    began()


def others_jobs_are_not_ones_to_act_on():
    with SharedWorld() as world:
        train = world.start(TRAIN, *STEPS[:-1], "200", wrap="plain")
        until(lambda: world.jobs(), "the program is there")
        with User(HOSTILE, act_on_others, world) as user:
            assert user.said(), "it could act on another user's job"
            finish(train)
            assert not [e for e in world.events() if e["kind"] in ("evicted", "action")]
            world.stays_usable()
            world.ends_when_told()


def supervise(job, pid, epoch, can):
    return packet(SUPERVISE, text(job) + struct.pack("<IIIQ", pid, epoch, can, 0))


def supervise_everything(began, world):
    """Says that others' jobs are its own, and what nobody can do, of processes that are others'."""
    peers, _ = programs(world, 100)
    peers += [connect(world) for _ in range(350)]
    for peer in peers:
        peer.setblocking(False)
    dice = random.Random(1)

    def say():
        for number in itertools.count():
            which = number % 350
            job = ("train", f"job{which}", "same", "")[which % 4]
            yield supervise(job, dice.choice((1, world.daemon.pid, os.getpid(), 1 << 31)),
                            dice.getrandbits(32), dice.choice((0, 1, 2, CAN_ALL, 1 << 31)))

    flood(began, peers[100:], say())


def policies(world):
    rows = json.loads(world.call(TANDEM, "policies", "--json").stdout)
    return {row["policy"]: (row["state"], [lack["ability"] for lack in row["lacks"]])
            for row in rows}


def supervisors_of_anybody_change_nothing_for_others():
    endures(supervise_everything, check=policies)


def order_back(began, world):
    """Answers orders that nobody has sent."""
    peers = [connect(world) for _ in range(300)]
    for i, peer in enumerate(peers[:250]):
        peer.send(supervise(f"job{i}", os.getpid(), 1, CAN_ALL))
        assert answer(peer)
    for peer in peers:
        peer.setblocking(False)
    dice = random.Random(2)
    flood(began, peers,
          (packet(ORDERED, struct.pack("<QB", dice.getrandbits(dice.choice((3, 64))),
                                       dice.randrange(256)) + text("a\033]0;b\007\n" * 20))
           for _ in itertools.count()))


def answers_to_no_order_delay_nobody():
    endures(order_back)


def watch_much(began, world):
    """As often as can be, by as many as there can be; half of them do not read."""
    peers, _ = programs(world, 200)
    watchers = []
    try:
        for _ in range(280):
            watchers.append(connect(world))
            watchers[-1].send(packet(WATCH, struct.pack("<Q", 1)))
    except ConnectionError:
        pass
    for peer in watchers[::2]:
        assert peer.recv(4096)
    began()
    reads = select.poll()
    for peer in watchers[::2]:
        reads.register(peer, select.POLLIN)
    while True:
        reads.poll()
        drop_unread(peers + watchers[::2])


def watchers_delay_nobody():
    endures(watch_much)


def serve_lies(began, world):
    """As many services as there can be. Their pages hold anything, and change at each moment."""
    tool = connect(world)
    tool.send(packet(LIST_JOBS, b"\1"))  # one that says nothing for seconds is dropped
    assert answer(tool)
    peers, meters = programs(world, 1000)
    noise = [random.Random(i).randbytes(8192) for i in range(4)]
    for i, peer in enumerate(peers):
        peer.send(packet(SERVICE, text(f"api{i}\033\n") + struct.pack("<QI", 1, 0xffffffff)))
        os.pwrite(meters[i], noise[i % 4], 65536)
    for turn in range(8):  # as many looks as are kept, and more
        tool.send(packet(LIST_JOBS, b"\1"))
        rows = answer(tool)
        time.sleep(0.25)  # the time between looks
        for i, meter in enumerate(meters):
            os.pwrite(meter, noise[(i + turn) % 4], 65536)
    began(f"{len(peers)} {len(rows)}".encode())
    for turn in itertools.count():
        i = turn % len(peers)
        try:
            peers[i].send(packet(SERVICE, text(f"api{turn}") + struct.pack("<QI", turn, turn)))
        except BrokenPipeError:  # the daemon has ended
            return
        os.pwrite(meters[i], noise[turn % 4], 65536)
        if not i:
            tool.send(packet(LIST_JOBS, b"\1"))
            answer(tool)
            drop_unread(peers)


def services_that_lie_cost_little():
    with SharedWorld() as world, contextlib.ExitStack() as others:
        count = 0
        for uid in (HOSTILE, NEWCOMER, NEWCOMER - 1, NEWCOMER - 2):
            user = others.enter_context(User(uid, serve_lies, world))
            said = user.said()
            assert said, f"the process of user {uid} has failed"
            services, rows = map(int, said.split())
            assert rows > services, said
            count += services
            say(f"# {count} services: RSS {world.rss_kib() / 1024:.1f} MiB")
        assert count > 900
        world.stays_usable()
        world.ends_when_told()


def ask_for_mps(began, world, directory):
    """A control daemon of its own where the daemon looks for others', and asks for the daemon's."""
    tool = connect(world)
    for value in ("off", "on", "auto"):
        tool.send(packet(SET, text("") + text("mps") + text(value) + b"\0"))
        rows = answer(tool)
        assert struct.unpack_from("<H", rows[0], 2)[0] == ERROR, rows
    path = f"{directory}/nvidia-cuda-mps-control.pid"
    os.mkfifo(path, 0o666)  # who opens it waits
    began()
    time.sleep(3)  # the daemon looks every 2 s
    os.unlink(path)
    os.symlink("/dev/zero", path)
    time.sleep(3)
    os.unlink(path)
    shutil.copy(shutil.which("sleep"), f"{directory}/nvidia-cuda-mps-control")
    control = subprocess.Popen([f"{directory}/nvidia-cuda-mps-control", "600"])
    with open(path, "w") as f:
        f.write(f"{control.pid}\n")
    time.sleep(3)
    began(str(control.pid).encode())
    signal.pause()


def another_users_mps_is_no_reason_to_have_none():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        with SharedWorld("mps=on", CUDA_MPS_PIPE_DIRECTORY=directory) as world:
            with User(HOSTILE, ask_for_mps, world, directory) as user:
                assert user.said(), "it could set the daemon's MPS, or has failed"
                world.stays_usable()
                control = int(user.said())
                until(lambda: world.gpu()["mps"] == "ready", "MPS is ready")
                world.stays_usable()
                assert world.is_governed()
                world.ends_when_told()
                os.kill(control, signal.SIGKILL)


def leave_a_number(began, world, go, accepted):
    """Has a connection of a process that ends, whose number is then free, and makes it a program's
    that can be evicted."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        peer.connect(world.environment["TANDEM_SOCKET"])
        if accepted:
            peer.send(packet(PING, b"\0"))
            peer.recv(4096)
        os._exit(0)
    os.waitpid(child, 0)
    began(str(child).encode())
    os.read(go, 1)
    peer.settimeout(DEADLINE_S)
    peer.send(hello("ghost"))
    assert peer.recv(4096)
    peer.send(attach(0))
    assert is_attached(peer)
    tool = connect(world)
    tool.send(act("ghost", EVICT))
    # Who cannot be told from the owner of the number now has no rights, so his order is refused.
    began(b"refused" if struct.unpack_from("<H", tool.recv(4096), 2)[0] == ERROR else b"taken")
    peer.settimeout(None)
    while peer.recv(4096):
        pass


def process_of_number(pid):
    """A process of another user's with that number, which was of one that has ended."""
    # The kernel tells a process's start in ticks, and no number is free again within one by itself.
    time.sleep(2 / os.sysconf("SC_CLK_TCK"))
    for _ in range(1000):
        try:
            with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                f.write(str(pid - 1))
        except OSError as problem:
            raise Skip(f"no number of a process can be chosen here: {problem}")
        process = subprocess.Popen(["sleep", "600"], user=NEWCOMER, group=NEWCOMER)
        if process.pid == pid:
            return process
        process.kill()
        process.wait(DEADLINE_S)
    raise Skip(f"number {pid} is not to be had")


def whoever_gets_the_number_of_a_dead_program_lives():
    for accepted in (True, False):
        with SharedWorld("evict.deadline=500ms", LD_PRELOAD=NO_PEERPIDFD) as world:
            go, tell = os.pipe()
            if not accepted:  # until another process has the number
                os.kill(world.daemon_pid(), signal.SIGSTOP)
            with User(HOSTILE, leave_a_number, world, go, accepted) as user:
                other = process_of_number(int(user.said()))
                try:
                    os.kill(world.daemon_pid(), signal.SIGCONT)
                    os.write(tell, b"1")
                    order = user.said()
                    assert order in (b"taken", b"refused"), "the other user's process has failed"
                    world.stays_usable()
                    until(lambda: order == b"refused" or other.poll() is not None
                          or [e for e in world.events("action") if "timed" in e["detail"]],
                          "the daemon gives up")
                    assert other.poll() is None, f"{other}: ended by the daemon"
                finally:
                    os.kill(world.daemon_pid(), signal.SIGCONT)
                    other.kill()
                    other.wait(DEADLINE_S)
                world.ends_when_told()
            os.close(go)
            os.close(tell)


run_cases([
    acts_without_end_delay_nobody,
    others_jobs_are_not_ones_to_act_on,
    supervisors_of_anybody_change_nothing_for_others,
    answers_to_no_order_delay_nobody,
    watchers_delay_nobody,
    services_that_lie_cost_little,
    another_users_mps_is_no_reason_to_have_none,
    whoever_gets_the_number_of_a_dead_program_lives,
])
