"""Memory of the backend swap in other processes: handles, their lifetime, who may open them. TAP on stdout; argument: the build."""
import array
import socket

from shell import *

IPC = f"{BUILD}/tests/integration/softgpu/softgpu_ipc"
INVALID_VALUE, MAP_FAILED, INVALID_HANDLE = 1, 205, 400


def what_holds_for_the_drivers_handles_holds_for_ours():
    for backend in ("plain", "swap"):
        with World() as world:
            done = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--", IPC)
            assert done.returncode == 0, done.stdout + done.stderr
            nothing_is_left(world)


def large_and_small_memory_is_shared_and_charged_once():
    with World() as world:
        a, b = under_swap(world), under_swap(world)
        assert a.do("used") == b.do("used") == 0  # both have their contexts
        for size in (20 * MIB + 12, 1000):
            mine = a.do("alloc", size)
            a.do("set", mine, 1, 5)
            handle = a.do("export", mine)
            assert a.do("export", mine) == handle
            before = world.status()["plain_bytes"]
            theirs = b.do("open", handle)
            assert world.status()["plain_bytes"] == before and b.do("used") == 0
            assert b.do("range", theirs) == size
            b.do("set", theirs, (size - 4) // 4, 7)
            assert b.do("get", theirs, 1) == 5 and a.do("get", mine, (size - 4) // 4) == 7
            for whose, memory in ((a, mine), (b, theirs)):
                assert whose.ask("set", memory, size // 4, 7)[0] == whose.ask("get", memory, size // 4)[0] == INVALID_VALUE, "its end is where it was asked for"
            assert b.do("open", handle) is not None
            b.do("close", theirs), b.do("close", theirs)
            assert b.ask("close", theirs)[0] == INVALID_VALUE
            a.do("free", mine)
            assert a.do("used") == 0
        a.end(), b.end()
        nothing_is_left(world)


def what_is_shared_stays_on_the_gpu_while_its_owner_gives_way():
    with World() as world:
        a, b = under_swap(world), under_swap(world)
        mine, moved = a.do("alloc", 20 * MIB), a.do("alloc", 10 * MIB)
        a.do("set", mine, 0, 41), a.do("set", moved, 0, 1)
        theirs = b.do("open", a.do("export", mine))
        rival = world.start(TRAIN, "--size", "38m", "--gpu", "5ms", "--cpu", "1ms", "--steps", "100000", wrap="swap")
        until(lambda: any(e["pid"] == a.process.pid for e in world.events("shrunk")) or rival.poll() is not None, "the owner has given way")
        assert rival.poll() is None, rival.communicate()
        row = [j for j in world.jobs() if j["pid"] == a.process.pid][0]
        assert row["resident_bytes"] >= 20 * MIB and row["host_bytes"] > 0, row
        b.do("add", theirs)
        assert b.do("get", theirs, 0) == 42
        assert a.do("get", mine, 0) == 42 and a.do("get", moved, 0) == 1
        rival.kill()
        rival.communicate()
        b.do("close", theirs)
        a.end(), b.end()
        nothing_is_left(world)


def what_is_freed_while_others_have_it_open_lasts_until_they_close_it():
    with World() as world:
        a, b = under_swap(world), under_swap(world)
        mine = a.do("alloc", 8 * MIB)
        a.do("set", mine, 0, 3)
        handle = a.do("export", mine)
        theirs = b.do("open", handle)
        a.do("free", mine)
        assert a.ask("free", mine)[0] == INVALID_VALUE and a.ask("export", mine)[0] == INVALID_VALUE
        assert a.do("used") == 8 * MIB, "it is still on the GPU"
        assert b.do("get", theirs, 0) == 3
        c = under_swap(world)
        assert c.ask("open", handle)[0] == INVALID_HANDLE
        b.do("close", theirs)
        until(lambda: a.do("used") == 0 and demanded(world, a) == 0, "it is freed")
        a.end(), b.end(), c.end()
        nothing_is_left(world)


def a_killed_importer_lets_go_and_a_killed_exporter_leaves_its_memory_to_who_has_it():
    with World() as world:
        a, b, c = under_swap(world), under_swap(world), under_swap(world)
        first, second = a.do("alloc", 4 * MIB), a.do("alloc", 4 * MIB)
        a.do("set", second, 0, 8)
        handle = a.do("export", second)
        b.do("open", a.do("export", first))
        theirs = c.do("open", handle)
        a.do("free", first)
        assert a.do("used") == 8 * MIB
        b.kill()
        until(lambda: a.do("used") == 4 * MIB, "what the dead had open is freed")
        a.kill()
        assert c.do("get", theirs, 0) == 8
        c.do("set", theirs, 0, 9)
        assert c.do("get", theirs, 0) == 9
        c.do("close", theirs)
        assert c.ask("open", handle)[0] == MAP_FAILED
        c.end()
        nothing_is_left(world)


def a_child_of_fork_holds_nothing():
    with World() as world:
        a, b = under_swap(world), under_swap(world)
        mine = a.do("alloc", 4 * MIB)
        theirs = b.do("open", a.do("export", mine))
        children = [a.do("fork"), b.do("fork")]
        a.do("free", mine)
        b.do("close", theirs)
        until(lambda: a.do("used") == 0, "the child of the importer does not hold it")
        handle = a.do("export", a.do("alloc", 4 * MIB))
        a.kill()
        assert b.ask("open", handle)[0] == MAP_FAILED, "the child of the exporter does not answer for it"
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        b.end()
        nothing_is_left(world)


def a_program_without_tandem_is_told_that_it_is_no_handle():
    with World() as world:
        a, bare, plain = under_swap(world), Shell(world), Shell(world, TANDEM, "run", "--backend", "plain", "--")
        handle = a.do("export", a.do("alloc", 4096))
        assert bare.ask("open", handle)[0] == INVALID_VALUE
        plain.do("open", handle)  # the backend is that of its own memory only
        theirs = plain.do("export", plain.do("alloc", 4096))
        a.do("open", theirs)
        a.end(), bare.end(), plain.end()
        nothing_is_left(world)


def ask_socket(handle, wanted, uid=None):
    """What somebody gets who connects and says `wanted`: (reply, number of descriptors), or None if it is not listened to."""
    name, result = b"\0tandem-ipc-" + handle[8:24].hex().encode(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            if uid is not None:
                os.setuid(uid)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.settimeout(DEADLINE_S)
                s.connect(name)
                s.send(wanted)
                reply = s.recv(4096)
                count = 0
                if len(reply) > 8 and not int.from_bytes(reply[8:12], "little"):
                    _, ancillary, _, _ = s.recvmsg(1, 4096)
                    count = sum(len(array.array("i", data)) for _, _, data in ancillary)
                os.write(result[1], f"{len(reply)} {count}".encode())
        except OSError:
            os.write(result[1], b"0 0")
        os._exit(0)
    os.close(result[1])
    answer = os.read(result[0], 100)
    os.close(result[0])
    os.waitpid(pid, 0)
    return tuple(map(int, answer.split()))


def who_is_another_user_or_does_not_know_the_id_gets_nothing():
    with World() as world:
        a = under_swap(world)
        mine = a.do("alloc", 4 * MIB)
        handle = bytes.fromhex(a.do("export", mine))
        right, wrong = handle[:8] + handle[24:40], handle[:8] + bytes(16)
        assert ask_socket(handle, right)[1] == 2, "the way in"
        assert ask_socket(handle, wrong)[0] > 0 and ask_socket(handle, wrong)[1] == 0
        for nonsense in (b"", b"x", handle, bytes(24)):
            assert ask_socket(handle, nonsense)[1] == 0
        if os.getuid() == 0:
            assert ask_socket(handle, right, uid=65534) == (0, 0)
        again = ask_socket(handle, right)
        assert again[1] == 2, again
        a.do("free", mine)
        assert a.do("used") == 0, "nobody who came has kept it"
        a.end()
        nothing_is_left(world)


run_cases([
    what_holds_for_the_drivers_handles_holds_for_ours,
    large_and_small_memory_is_shared_and_charged_once,
    what_is_shared_stays_on_the_gpu_while_its_owner_gives_way,
    what_is_freed_while_others_have_it_open_lasts_until_they_close_it,
    a_killed_importer_lets_go_and_a_killed_exporter_leaves_its_memory_to_who_has_it,
    a_child_of_fork_holds_nothing,
    a_program_without_tandem_is_told_that_it_is_no_handle,
    who_is_another_user_or_does_not_know_the_id_gets_nothing,
])
