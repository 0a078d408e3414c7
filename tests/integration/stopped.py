"""Programs that are stopped (SIGSTOP), or in a frozen control group, hold up nobody, and compute
nothing wrong when they go on. TAP on stdout; argument: the build."""
import contextlib
import os
import signal
import time

from shell import MIB, under_swap
from world import *


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def frozen(root, file, words, pid):
    group = f"{root}/tandem-test-{pid}"
    os.mkdir(group)
    try:
        write(f"{group}/cgroup.procs", pid)
        write(f"{group}/{file}", words[0])
        yield
    finally:
        write(f"{group}/{file}", words[1])
        write(f"{root}/cgroup.procs", pid)
        os.rmdir(group)


def write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


def a_root_with(file):
    """A hierarchy of control groups whose groups have that file, where groups can be made."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"):
        group = f"{root}/tandem-test-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        found = os.path.exists(f"{group}/{file}")
        os.rmdir(group)
        if found:
            return root
    raise Skip(f"no control group with {file} can be made here")


def begin(world, *sizes):
    """Programs with so many MiB each, a different number in each of their words."""
    shells = [under_swap(world) for _ in sizes]
    for number, (shell, size) in enumerate(zip(shells, sizes)):
        shell.do("alloc", size * MIB)
        shell.do("set", 0, 0, 100 * number)
        shell.do("add", 0)
    return shells


def pid_of(shell):
    return shell.process.pid


def state_of(world, shell):
    return [j["state"] for j in world.jobs() if j["pid"] == pid_of(shell)]


def is_passed_by(world, shell):
    return [e for e in world.events("stopped") if e["pid"] == pid_of(shell)]


def ends_well(world, shells, values):
    assert [shell.do("get", 0, 0) for shell in shells] == values
    for shell in shells:
        shell.end()
    nothing_is_left(world)


def a_holder_is_passed_by(how):
    with World() as world:
        shells = begin(world, 30, 30, 30)
        shells[0].do("add", 0)  # it has 30 MiB there
        with how(pid_of(shells[0])):
            for _ in range(2):
                for shell in shells[1:]:  # they take turns in what is left
                    shell.do("add", 0)
            until(lambda: state_of(world, shells[0]) == ["stopped"], "it is passed by")
        until(lambda: state_of(world, shells[0]) != ["stopped"], "it goes on")
        for shell in shells:
            shell.do("add", 0)
        ends_well(world, shells, [3, 104, 204])


def a_stopped_holder_is_passed_by():
    a_holder_is_passed_by(stopped)


def a_frozen_holder_is_passed_by():
    root = a_root_with("cgroup.freeze")
    a_holder_is_passed_by(lambda pid: frozen(root, "cgroup.freeze", ("1", "0"), pid))


def one_in_a_frozen_group_of_version_1_is_passed_by():
    root = a_root_with("freezer.state")
    a_holder_is_passed_by(lambda pid: frozen(root, "freezer.state", ("FROZEN", "THAWED"), pid))


def what_is_stopped_is_said():
    with World() as world:
        shells = begin(world, 40, 40)
        shells[0].do("add", 0)
        with stopped(pid_of(shells[0])):
            shells[1].send("add", 0)
            until(lambda: is_passed_by(world, shells[0]), "it is passed by")
            done = world.call(TANDEM, "explain", str(pid_of(shells[0])))
            assert f"-> Continue it: kill -CONT {pid_of(shells[0])}." in done.stdout, done
        until(lambda: world.events("continued"), "it goes on")
        assert shells[1].answer()[0] == 0
        ends_well(world, shells, [2, 102])


def one_that_does_not_fit_beside_it_goes_on_in_the_end():
    """It has a part of its memory on the host meanwhile."""
    with World() as world:
        shells = begin(world, 40, 40)
        world.call(TANDEM, "set", "memory.patience=100ms")
        shells[0].do("add", 0)
        with stopped(pid_of(shells[0])):
            for _ in range(3):
                shells[1].do("add", 0)
        for shell in shells:
            shell.do("add", 0)
        ends_well(world, shells, [3, 105])


def a_waiter_that_is_stopped_at_any_moment_holds_up_nobody():
    with World() as world:
        world.call(TANDEM, "set", "quantum.min=1ms", "quantum=20ms")
        shells = begin(world, 40, 40, 20)
        expected = [1, 101, 201]
        for round_ in range(12):
            asking = shells[round_ % 2]
            asking.send("add", 0)
            time.sleep(0.003 * round_)
            with stopped(pid_of(asking)):
                shells[2].do("add", 0)
                expected[2] += 1
            assert asking.answer()[0] == 0
            expected[round_ % 2] += 1
        ends_well(world, shells, expected)


def one_that_is_killed_while_it_is_stopped_leaves_nothing():
    with World() as world:
        shells = begin(world, 40, 40)
        shells[0].do("add", 0)
        os.kill(pid_of(shells[0]), signal.SIGSTOP)
        shells[1].send("add", 0)
        shells[0].kill()
        assert shells[1].answer()[0] == 0
        ends_well(world, shells[1:], [102])


def the_end_of_a_program_is_seen_though_a_child_has_its_connection():
    """A child by clone alone, as _Fork makes one: no handler of fork closes anything in it."""
    code = ("import ctypes, os, sys; cuda = ctypes.CDLL('libcuda.so.1'); context, device = "
            "ctypes.c_void_p(), ctypes.c_int(); "
            "" "assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0 and "
            "cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0; "
            "" "pid = ctypes.CDLL(None).syscall(57 if os.uname().machine == 'x86_64' else 220, "
            "*([] if os.uname().machine == 'x86_64' else [17, 0, 0, 0, 0])); "
            "" "pid or [__import__('time').sleep(1000)]; print(pid, flush=True); "
            "sys.stdin.readline(); os._exit(0)")
    with World() as world:
        program = subprocess.Popen([SOFTGPU, "run", "--", TANDEM, "run", "--", sys.executable, "-c",
                                    code], env=world.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        child = int(program.stdout.readline())
        try:
            until(lambda: [j for j in world.jobs() if j["pid"] == program.pid],
                  "the program is there")
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.wait(DEADLINE_S) == 0
            until(lambda: world.jobs() == [], "it is gone, though its child lives")
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


run_cases([
    a_stopped_holder_is_passed_by,
    a_frozen_holder_is_passed_by,
    one_in_a_frozen_group_of_version_1_is_passed_by,
    what_is_stopped_is_said,
    one_that_does_not_fit_beside_it_goes_on_in_the_end,
    a_waiter_that_is_stopped_at_any_moment_holds_up_nobody,
    one_that_is_killed_while_it_is_stopped_leaves_nothing,
    the_end_of_a_program_is_seen_though_a_child_has_its_connection,
], at_once=3)
