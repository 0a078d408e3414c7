"""Memory of the backend swap in other processes: handles, their lifetime, who may open them. TAP on
stdout; argument: the build."""
import array
import socket
import stat

from shell import *

IPC = f"{BUILD}/tests/integration/softgpu/softgpu_ipc"
# All but those about what is free on the GPU: under tandem that is told as each program's own.
IPC_CASES = ["memory_and_events_are_shared_with_another_process",
             "a_handle_of_a_dead_process_opens_nothing", "a_handle_is_good_while_its_memory_is",
             "what_is_not_from_cuMemAlloc_has_no_handle", "memory_by_handle_is_shared_as_a_file"]
INVALID_VALUE, MAP_FAILED, INVALID_HANDLE = 1, 205, 400


def what_holds_for_the_drivers_handles_holds_for_ours():
    for backend in ("plain", "swap"):
        with World() as world:
            done = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--", IPC,
                              *IPC_CASES)
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
                assert (whose.ask("set", memory, size // 4, 7)[0]
                        == whose.ask("get", memory, size // 4)[0]
                        == INVALID_VALUE), "its end is where it was asked for"
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
        rival = world.start(TRAIN, "--size", "38m", "--gpu", "5ms", "--cpu", "1ms", "--steps",
                            "100000", wrap="swap")
        until(
                lambda: any(e["pid"] == a.process.pid
                            for e in world.events("shrunk")) or rival.poll() is not None,
                "the owner has given way")
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
        assert (b.ask("open", handle)[0]
                == MAP_FAILED), "the child of the exporter does not answer for it"
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        b.end()
        nothing_is_left(world)


def a_program_without_tandem_is_told_that_it_is_no_handle():
    with World() as world:
        a, bare, plain = (under_swap(world), Shell(world),
                          Shell(world, TANDEM, "run", "--backend", "plain", "--"))
        handle = a.do("export", a.do("alloc", 4096))
        assert bare.ask("open", handle)[0] == INVALID_VALUE
        plain.do("open", handle)  # the backend is that of its own memory only
        theirs = plain.do("export", plain.do("alloc", 4096))
        a.do("open", theirs)
        a.end(), bare.end(), plain.end()
        nothing_is_left(world)


def abstract(handle):
    return b"\0tandem-ipc-" + handle[8:24].hex().encode()


def meeting(world):
    return world.environment["TANDEM_SOCKET"] + ".ipc"


def path(world, handle):
    return f"{meeting(world)}/{handle[8:24].hex()}"


def ask_socket(name, wanted, uid=None):
    """What somebody gets who connects and says `wanted`: (reply, number of descriptors)."""
    result = os.pipe()
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
        os.chmod(world.directory, 0o711)  # for the other user
        for name in (abstract(handle), path(world, handle)):
            assert ask_socket(name, right)[1] == 2, "the way in"
            assert ask_socket(name, wrong)[0] > 0 and ask_socket(name, wrong)[1] == 0
            for nonsense in (b"", b"x", handle, bytes(24)):
                assert ask_socket(name, nonsense)[1] == 0
            if os.getuid() == 0:
                assert ask_socket(name, right, uid=65534) == (0, 0)
            again = ask_socket(name, right)
            assert again[1] == 2, again
        a.do("free", mine)
        assert a.do("used") == 0, "nobody who came has kept it"
        a.end()
        nothing_is_left(world)


def is_shared_with(world, b, a):
    mine = a.do("alloc", 4 * MIB)
    a.do("set", mine, 0, 11)
    theirs = b.do("open", a.do("export", mine))
    b.do("set", theirs, 1, 12)
    assert b.do("get", theirs, 0) == 11 and a.do("get", mine, 1) == 12
    b.do("close", theirs)


def unshared(*options):
    done = (subprocess.run(["unshare", *options, "true"], capture_output=True, text=True)
            if shutil.which("unshare")
            else None)
    if not done or done.returncode:
        raise Skip(f"unshare {' '.join(options)}: {done.stderr.strip() if done else 'not here'}")
    return ["unshare", *options]


def a_network_namespace_of_ones_own_does_not_matter():
    there = unshared("-n", "-p", "-f")
    with World() as world:
        a, b = under_swap(world), Shell(world, *there, TANDEM, "run", "--backend", "swap", "--")
        is_shared_with(world, b, a)
        is_shared_with(world, a, b)
        a.end(), b.end()
        nothing_is_left(world)


def the_sockets_directory_may_be_mounted_elsewhere():
    there = unshared("-n", "-m", "-p", "-f")
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        a, inside = under_swap(world), f"{world.directory}/inside"
        os.mkdir(inside)
        script = ('mount --bind "$0" "$1" && mount -t tmpfs none "$0" '
                  '&& export TANDEM_SOCKET="$1/socket" && shift && exec "$@"')
        b = Shell(world, *there, "sh", "-c", script, f"{world.directory}/t", inside, TANDEM, "run",
                  "--backend", "swap", "--")
        is_shared_with(world, b, a)
        is_shared_with(world, a, b)
        a.end(), b.end()
        nothing_is_left(world)


def explained(world, shell):
    return world.call(TANDEM, "explain", str(shell.process.pid)).stdout


def who_cannot_get_there_is_told_and_so_is_who_asks():
    there = unshared("-n")
    with World() as world:
        a, b = under_swap(world), Shell(world, *there, TANDEM, "run", "--backend", "swap", "--")
        mine = a.do("alloc", 4 * MIB)
        handle = a.do("export", mine)
        until(lambda: "1 handle(s) of its memory; they have opened 0" in explained(world, a),
              "it is said what others may open")
        assert "CUDA_ERROR_INVALID_VALUE" in explained(world, a)
        assert [e["pid"] for e in world.events("shares")] == [a.process.pid]
        theirs = b.do("open", handle)
        until(lambda: "1 handle(s) of its memory; they have opened 1." in explained(world, a),
              "it is said that one has it open")
        b.do("close", theirs)
        os.rename(meeting(world), meeting(world) + ".away")
        with open(meeting(world), "w"):
            pass  # so that the daemon cannot make it again
        assert b.ask("open", handle)[0] == MAP_FAILED
        until(lambda: "cannot be reached from there" in explained(world, b), "it is said why")
        assert "denied" not in explained(world, a) and len(world.events("denied")) == 1
        until(lambda: "there is no directory .ipc" in explained(world, a),
              "it is said of the owner, too")
        os.unlink(meeting(world))
        os.rename(meeting(world) + ".away", meeting(world))
        until(lambda: b.ask("open", handle)[0] == 0, "the way is there again")
        a.do("free", mine)
        c = under_swap(world)
        assert c.ask("open", handle)[0] == INVALID_HANDLE
        until(lambda: "its owner has freed it" in explained(world, c), "it is said why")
        until(lambda: "may open" not in explained(world, a), "there is nothing to open")
        a.end(), b.end(), c.end()
        nothing_is_left(world)


def is_listening(where):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(where)
        return True
    except OSError:
        return False


def who_has_lost_its_place_gets_it_back_or_it_is_said():
    with World() as world:
        a = under_swap(world)
        where = path(world, bytes.fromhex(a.do("export", a.do("alloc", 4096))))
        shutil.rmtree(meeting(world))
        until(lambda: is_listening(where), "the directory comes back, and the file")
        assert os.stat(meeting(world)).st_mode & 0o7777 == (0o700 if os.getuid() else 0o1733)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as thief:
            thief.bind(where + ".thief")
            os.rename(where + ".thief", where)
            until(lambda: is_listening(where), "its name leads to itself again")
        os.rename(where, where + ".own")
        os.mkdir(where)  # which it cannot remove, as it could not another user's file
        until(lambda: "something that it cannot remove has its name" in explained(world, a),
              "it is said")
        assert any("its name" in e["detail"] for e in world.events("shares")), (
            world.events("shares"))
        os.rmdir(where)
        until(lambda: is_listening(where) and "Only programs" not in explained(world, a),
              "it is there again")
        os.unlink(where + ".own")
        a.end()
        nothing_is_left(world)


def sockets_are_files_of_their_owner_that_are_gone_when_it_is():
    with World() as world:
        a, b, c = under_swap(world), under_swap(world), under_swap(world)
        files = []
        for shell in (a, b, c):
            files.append(path(world, bytes.fromhex(shell.do("export", shell.do("alloc", 4096)))))
        modes = [os.stat(f).st_mode for f in files]
        assert all(stat.S_ISSOCK(m) and m & 0o7777 == 0o600 for m in modes), modes
        assert os.stat(meeting(world)).st_mode & 0o7777 == (0o700 if os.getuid() else 0o1733)
        a.end()
        assert not os.path.exists(files[0]), "who ends takes it along"
        os.unlink(files[2])
        until(lambda: os.path.exists(files[2]), "a file that was lost comes back")
        b.kill()
        until(lambda: not os.path.exists(files[1]), "a killed program's is removed by the daemon")
        assert os.path.exists(files[2]), "a living one's is not"
        c.kill()
        os.kill(world.daemon_pid(), signal.SIGKILL)
        until(lambda: world.call(TANDEM, "ps").returncode, "the daemon is gone, too")
        old = time.time() - 60
        os.utime(files[2], (old, old))
        world.call(TANDEM, "run", "--", "true")
        until(lambda: not os.listdir(meeting(world)), "the next daemon finds what it has left")
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
    a_network_namespace_of_ones_own_does_not_matter,
    the_sockets_directory_may_be_mounted_elsewhere,
    who_cannot_get_there_is_told_and_so_is_who_asks,
    who_has_lost_its_place_gets_it_back_or_it_is_said,
    sockets_are_files_of_their_owner_that_are_gone_when_it_is,
])
