"""The backend `auto`: what it becomes, and that it says why. TAP on stdout; argument: the build."""
from shell import *


def under_auto(world, *options, opened=None):
    """opened: a file that is open from the start."""
    opens = ["sh", "-c", 'exec 9<>"$0"; exec "$@"', opened] if opened else []
    return Shell(world, *opens, TANDEM, "run", "--backend", "auto", *options, "--")


def a_device(world, path):
    """Any file will do: it is its path that counts."""
    path = f"{world.directory}{path}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").close()
    return path


def a_library(world, name):
    path = f"{world.directory}/{name}"
    shutil.copy(f"{BUILD}/tests/integration/libwrapper.so", path)
    return path


def row_of(world, shell):
    return next(j for j in world.jobs() if j["pid"] == shell.process.pid)


def explained(world, shell):
    return world.call(TANDEM, "explain", str(shell.process.pid)).stdout


def rival_takes_turns(world, shell):
    rival = world.start(TRAIN, "--size", "40m", "--gpu", "5ms", "--cpu", "1ms", "--steps", "100000",
                        wrap="auto")
    until(
            lambda: any(e["pid"] == shell.process.pid
                        for e in world.events("shrunk")) or rival.poll() is not None,
            "it has given way")
    assert rival.poll() is None, rival.communicate()
    return rival


def end(rival):
    rival.kill()
    rival.communicate()


def it_is_swap_where_nothing_speaks_against_it_and_programs_take_turns():
    with World() as world:
        a = under_auto(world)
        memory = a.do("alloc", 30 * MIB)
        a.do("set", memory, 0, 7)
        assert row_of(world, a)["backend"] == "swap", row_of(world, a)
        assert "backend auto" not in explained(world, a), explained(world, a)
        rival = rival_takes_turns(world, a)
        assert a.do("get", memory, 0) == 7
        end(rival), a.end()
        nothing_is_left(world)


def it_is_what_one_gets_without_a_word():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        for program in (Shell(world, TANDEM, "run", "--"),
                        Shell(world, "env", f"LD_PRELOAD={LIBRARY}")):
            program.do("alloc", 30 * MIB)
            assert row_of(world, program)["backend"] == "swap", row_of(world, program)
            program.end()
        plain = Shell(world, TANDEM, "run", "--backend", "plain", "--")
        plain.do("alloc", 30 * MIB)
        assert row_of(world, plain)["backend"] == "plain", row_of(world, plain)
        plain.end()
        nothing_is_left(world)


def the_doctor_says_what_it_is_here():
    with World() as world:
        done = world.call(SOFTGPU, "run", "--", TANDEM, "doctor")
        assert done.returncode == 0 and "backend auto is swap" in done.stdout, done


def two_programs_of_three_quarters_of_the_memory_each_just_run():
    with World() as world:
        programs = trains_that_take_turns(world, 2, 12, backend="auto")
        for program in programs:
            finish(program)
        assert world.events("shrunk"), world.events()
        nothing_is_left(world)


def it_is_told_to_a_daemon_that_was_greeted_before_it_was_chosen():
    with World("--gpus", "2") as world:
        a = under_auto(world, "--gpu", "any")
        memory = a.do("alloc", 30 * MIB)
        a.do("set", memory, 0, 7)
        assert row_of(world, a)["backend"] == "swap", row_of(world, a)
        rival = rival_takes_turns(world, a)
        assert a.do("get", memory, 0) == 7
        end(rival), a.end()
        nothing_is_left(world)


def it_is_swap_beside_a_library_that_could_register_memory_and_has_not():
    """As PyTorch, whose wheels load libcufile in every process."""
    with World() as world:
        a = under_auto(world)
        a.do("load", a_library(world, "libcufile.so.0"))
        memory = a.do("alloc", 30 * MIB)
        a.do("set", memory, 0, 7)
        a.do("load", a_library(world, "libibverbs.so.1"))
        assert row_of(world, a)["backend"] == "swap", row_of(world, a)
        rival = rival_takes_turns(world, a)
        assert a.do("get", memory, 0) == 7
        assert "backend auto" not in explained(world, a), explained(world, a)
        end(rival), a.end()
        nothing_is_left(world)


def it_is_plain_beside_a_device_that_registers_memory_and_says_so():
    for options in ([], ["--gpu", "any"]):
        with World() as world:
            device = a_device(world, "/dev/gdrdrv")
            said = f"{device} is open"
            assert len(device) < 64, device
            a = under_auto(world, *options, opened=device)
            a.do("alloc", 30 * MIB)
            assert row_of(world, a)["backend"] == "plain", row_of(world, a)
            until(lambda: said in explained(world, a), "it is said why")
            # The next daemon hears it, too.
            os.kill(world.daemon_pid(), signal.SIGKILL)
            until(lambda: world.call(TANDEM, "ps").returncode, "the daemon is gone")
            world.call(TANDEM, "run", "--", "true")
            until(lambda: said in explained(world, a), "it is said again")
            assert row_of(world, a)["backend"] == "plain"
            a.end()
            nothing_is_left(world)


def rivals_take_turns_beside(world, size):
    """Two programs that fit one at a time. The first may have ended before the other begins."""
    for _ in tries(20, lambda: world.events("shrunk")):
        rivals = [world.start(TRAIN, "--size", size, "--gpu", "5ms", "--cpu", "1ms", "--steps",
                              "12", wrap="swap")
                  for _ in range(2)]
        for rival in rivals:
            finish(rival)
        if len(world.events("shrunk")) > 1:
            break


def once_such_a_device_is_open_nothing_moves_any_more():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        assert world.call(TANDEM, "set", "quantum=100ms", "quantum.min=100ms").returncode == 0
        a = under_auto(world)
        early = a.do("alloc", 14 * MIB)
        a.do("set", early, 0, 7)
        device = a_device(world, "/dev/infiniband/uverbs0")
        a.do("open_file", device)
        until(lambda: f"{device} is open" in explained(world, a), "it is said")
        late, small = a.do("alloc", 6 * MIB), a.do("alloc", 1000)
        a.do("set", late, 0, 8), a.do("set", small, 0, 9)
        rivals_take_turns_beside(world, "30m")
        row = row_of(world, a)
        assert (row["resident_bytes"] >= 20 * MIB and not row["host_bytes"]
                and not row["out_bytes"]), row
        assert "cannot leave GPU" in explained(world, a), explained(world, a)
        assert [a.do("get", m, 0) for m in (early, late, small)] == [7, 8, 9]
        a.do("free", early), a.do("free", late), a.do("free", small)
        until(lambda: row_of(world, a)["resident_bytes"] == 0, "what is freed is gone")
        assert "cannot leave GPU" not in explained(world, a), explained(world, a)
        a.end()
        nothing_is_left(world)


def what_has_left_before_that_comes_back_and_stays():
    with World() as world:
        a = under_auto(world)
        memory = a.do("alloc", 30 * MIB)
        a.do("set", memory, 0, 7)
        rival = rival_takes_turns(world, a)
        device = a_device(world, "/dev/nvidia-fs0")
        a.do("open_file", device)
        assert a.do("get", memory, 0) == 7
        until(lambda: f"{device} is open" in explained(world, a), "it is said")
        until(
                lambda: a.do("get", memory, 0) == 7 and row_of(world, a)[
                    "resident_bytes"] >= 30 * MIB, "it is back")
        moved = row_of(world, a)["out_bytes"]
        end(rival)
        rivals_take_turns_beside(world, "24m")
        row = row_of(world, a)
        assert row["out_bytes"] == moved and row["resident_bytes"] >= 30 * MIB, (row, moved)
        assert a.do("get", memory, 0) == 7
        a.end()
        nothing_is_left(world)


def what_is_checkpointed_by_another_process_is_there_again_afterwards():
    with World() as world:
        a, other = under_auto(world), Shell(world)
        large, small = a.do("alloc", 30 * MIB), a.do("alloc", 1000)
        a.do("set", large, 7 * MIB, 70), a.do("set", small, 3, 30)
        assert row_of(world, a)["backend"] == "swap", row_of(world, a)
        for _ in range(2):
            before = world.status()["plain_bytes"]
            other.do("suspend", a.process.pid)
            assert world.status()["plain_bytes"] <= before - 30 * MIB, "its memory has left the GPU"
            other.do("resume", a.process.pid)
            assert (a.do("get", large, 7 * MIB), a.do("get", small, 3)) == (70, 30)
            # The memory moves as before.
            end(rival_takes_turns(world, a))
            assert (a.do("get", large, 7 * MIB), a.do("get", small, 3)) == (70, 30)
        other.end(), a.end()
        nothing_is_left(world)


def a_word_that_is_none_is_refused_with_those_that_are():
    with World() as world:
        done = world.call(TANDEM, "run", "--backend", "automatic", "--", "true")
        assert (done.returncode == 125 and '"automatic"' in done.stderr
                and "auto, plain, swap or managed" in done.stderr), done
        done = world.call(TANDEM, "run", "--backend", "auto", "--mem-soft", "4m", "--", "true")
        assert done.returncode == 125 and "expected --backend swap" in done.stderr, done


run_cases([
    it_is_swap_where_nothing_speaks_against_it_and_programs_take_turns,
    it_is_what_one_gets_without_a_word,
    the_doctor_says_what_it_is_here,
    two_programs_of_three_quarters_of_the_memory_each_just_run,
    it_is_told_to_a_daemon_that_was_greeted_before_it_was_chosen,
    it_is_swap_beside_a_library_that_could_register_memory_and_has_not,
    it_is_plain_beside_a_device_that_registers_memory_and_says_so,
    once_such_a_device_is_open_nothing_moves_any_more,
    what_has_left_before_that_comes_back_and_stays,
    what_is_checkpointed_by_another_process_is_there_again_afterwards,
    a_word_that_is_none_is_refused_with_those_that_are,
])
