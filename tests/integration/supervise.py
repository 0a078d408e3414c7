"""`tandem run` seen from outside: the same whether it becomes the program or stays as its parent.

Each case of the table observes something for both and compares. TAP on stdout; argument: the build.
"""
import fcntl
import shlex
import struct
import termios

from run_world import *

BECOMES, STAYS = (), ("--requeue",)  # without an option tandem run executes the program
SAME = {}
# It says how it was started.
STATE = """
import os, resource, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print([status[k].strip() for k in ("SigBlk", "SigIgn", "Umask", "Threads")])
files = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
print(sorted((path, os.readlink(path).split(":")[0]) for path in files if os.path.exists(path)))
print(os.getcwd(), os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_CORE))
print(sorted(name for name in os.environ if name != "TANDEM_RESTARTS"))
print(repr(sys.stdin.read()) if len(sys.argv) < 2 else "")
"""


def same(case):
    """A case of the table: what it returns is the same for both."""
    SAME[case.__name__] = case
    return case


def signalled(options, send, **extra):
    """The signals that the program reports when send(pid) has sent some."""
    with Run(world, options, *python(world, SIGNALS), **extra) as it:
        ready, program = it.line().split()
        assert ready == "ready"
        send(it.pid)
        os.kill(it.pid, LAST)
        return it.end()


def command_of(options, *command):
    return shlex.join([TANDEM, "run", *options, "--", *command])


def in_bash(script):
    """What it prints, by a bash without a terminal."""
    return subprocess.run(["bash", "-c", script], env=world.environment, capture_output=True,
                          text=True, timeout=DEADLINE_S).stdout


# -- exit statuses --


@same
def exit_statuses(options):
    return [run(world, options, "sh", "-c", f"exit {n}")
            for n in (0, 1, 2, 42, 125, 126, 127, 128, 143, 255)]


@same
def ends_by_signals(options):
    return [run(world, options, "sh", "-c", f"ulimit -c 0; kill -{n} $$")
            for n in (1, 2, 3, 6, 9, 11, 13, 14, 15, 40)]


@same
def a_shell_sees_128_and_the_signal(options):
    return in_bash(command_of(options, "sh", "-c", "kill -TERM $$") + "; echo $?")


@same
def commands_that_cannot_be_executed(options):
    plain = f"{world.directory}/plain"
    open(plain, "w").close()
    return [run(world, options, command)
            for command in ("no-such-command", f"{world.directory}/none", "/", plain)]


@same
def our_own_failure_is_125(options):
    return run(world, (*options, "--mem", "nonsense"), "true")


@same
def an_interrupt_ends_a_script_too(options):
    """A shell goes on after a command that exits, and ends after one that an interrupt ended."""
    return in_bash(command_of(options, "sh", "-c", "kill -INT $$") + "; echo goes on")


# -- signals --


def each_alone(to_group):
    kill = os.killpg if to_group else os.kill
    return [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
            signal.SIGTERM, signal.SIGWINCH, signal.SIGALRM, signal.SIGCONT, signal.SIGTSTP,
            signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE, signal.SIGRTMIN + 3], kill


@same
def signals_for_the_process_come_once(options):
    numbers, kill = each_alone(False)
    return [signalled(options, lambda pid: kill(pid, n)) for n in numbers]


@same
def signals_for_the_process_group_come_once(options):
    numbers, kill = each_alone(True)
    return [signalled(options, lambda pid: kill(pid, n)) for n in numbers]


def is_pending(pid, number):
    """Another such signal that comes now would be lost."""
    with open(f"/proc/{pid}/status") as f:
        return any(line.startswith(("SigPnd:", "ShdPnd:"))
                   and int(line.split()[1], 16) >> (number - 1) & 1 for line in f)


@same
def signals_for_both_come_twice(options):
    """The second one is sent when the program and tandem have had the first one."""
    with Run(world, options, *python(world, SIGNALS)) as it:
        it.line()
        os.killpg(it.pid, signal.SIGUSR1)
        first = it.line()
        until(lambda: not is_pending(it.pid, signal.SIGUSR1), "tandem has had it, too")
        os.kill(it.pid, signal.SIGUSR1)
        return first, it.line(), os.kill(it.pid, LAST), it.end()


@same
def an_alarm_that_was_set_before(options):
    return run(world, options, "sleep", "1000",
               preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 0.5))


@same
def a_parents_kill_ends_the_program(options):
    with Run(world, options, *python(world, SIGNALS)) as it:
        program = int(it.line().split()[1])
        os.kill(it.pid, signal.SIGKILL)
        status = it.process.wait()
        until(lambda: state_of(program) in ("", "Z"), "the program is dead")
        return status


# -- what is inherited --


@same
def state_at_the_start(options):
    with Run(world, options, *python(world, STATE), stdin=subprocess.PIPE) as it:
        out, err = it.process.communicate("some words\n", timeout=DEADLINE_S)
        return it.process.returncode, out, err


def ignores_and_blocks():
    for number in (signal.SIGHUP, signal.SIGCHLD, signal.SIGTSTP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH, signal.SIGTERM])
    os.umask(0o27)
    os.nice(3)
    os.chdir("/usr")


@same
def ignored_and_blocked_signals_stay_so(options):
    return run(world, options, *python(world, STATE), preexec_fn=ignores_and_blocks)


@same
def descriptors_stay_open_and_closed(options):
    with open("/etc/hostname") as kept:
        return run(world, options, *python(world, STATE, "-"),
                   preexec_fn=lambda: (os.dup2(kept.fileno(), 77), os.close(0)))


@same
def the_process_group_and_session(options):
    with Run(world, options, *python(world, SIGNALS)) as it:
        program = int(it.line().split()[1])
        groups = os.getpgid(program) == it.pid, os.getsid(program) == it.pid
        os.kill(it.pid, LAST)
        return groups, it.end()


@same
def nohup_survives_a_hangup(options):
    command = shlex.split(command_of(options, "sh", "-c", "echo ready; read x; echo $x"))
    process = subprocess.Popen(
        ["nohup", *command], env=world.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGHUP)
    return process.communicate("word\n", timeout=DEADLINE_S), process.returncode


# -- pipes and children --


@same
def a_pipe_that_nobody_reads_ends_the_program(options):
    return in_bash(command_of(options, "yes") + " | head -1; echo ${PIPESTATUS[*]}")


@same
def the_reader_sees_the_end_of_the_output(options):
    with Run(world, options, "echo", "words") as it:
        return it.process.stdout.read(), it.end()


@same
def a_child_outlives_the_program(options):
    code, out, _ = run(world, options, "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; exit 5")
    alive = state_of(int(out)) not in ("", "Z")
    os.kill(int(out), signal.SIGKILL)
    return code, alive


@same
def a_shell_with_several_commands(options):
    return run(world, options, "bash", "-c", "echo a; (exit 3); echo $?; sleep 0 | cat; exit 9")


# -- stopping --


OWN_GROUP = {"start_new_session": False, "process_group": 0}  # its parent may see it stop


def stopped_by(pid):
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    return os.WSTOPSIG(status)


def continued(pid):
    _, status = os.waitpid(pid, os.WCONTINUED)
    return os.WIFCONTINUED(status)


def stops_and_continues(options, stop, go):
    with Run(world, options, *python(world, WAITS), **OWN_GROUP) as it:
        program = int(it.line().split()[1])
        stop(it.pid, program)
        seen = [stopped_by(it.pid)]
        until(lambda: state_of(program) == "T", "the program is stopped")
        go(it.pid, program)
        seen.append(continued(it.pid))
        until(lambda: state_of(program) == "S", "the program goes on")
        os.kill(it.pid, signal.SIGTERM)
        return seen, it.process.wait()


@same
def a_stop_of_the_process(options):
    return stops_and_continues(options, lambda pid, _: os.kill(pid, signal.SIGTSTP),
                               lambda pid, _: os.kill(pid, signal.SIGCONT))


@same
def a_stop_of_the_group(options):
    return [stops_and_continues(options, lambda pid, _: os.killpg(pid, n),
                                lambda pid, _: os.killpg(pid, signal.SIGCONT))
            for n in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGSTOP)]


@same
def a_stop_of_the_program_by_its_own_id(options):
    return stops_and_continues(options, lambda _, program: os.kill(program, signal.SIGSTOP),
                               lambda _, program: os.kill(program, signal.SIGCONT))


@same
def a_kill_of_a_stopped_program(options):
    with Run(world, options, *python(world, WAITS), **OWN_GROUP) as it:
        program = int(it.line().split()[1])
        os.kill(program, signal.SIGSTOP)
        seen = stopped_by(it.pid)
        os.kill(program, signal.SIGKILL)
        return seen, it.process.wait()


# -- terminals --


@same
def keys_reach_the_program_once(options):
    """Ctrl-C, Ctrl-\\, a new size of the window."""
    with Terminal(world) as t:
        program = int(t.do(command_of(options, *python(world, SIGNALS)), r"ready (\d+)")[1])
        seen = []
        for key in ("\x03", "\x1c"):
            t.type(key)
            seen.append(t.read(r"(\d+)\r")[1])
        fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
        seen.append(t.read(r"(\d+)\r")[1])
        os.kill(os.getpgid(program), LAST)  # the first process of the shell's job
        seen.append(t.read(r"((?s:.*))\$ $")[1].strip())
        return seen, t.do("echo status $?", r"\nstatus (\d+)")[1]


def stop_by_key(t):
    t.type("\x1a")
    t.read(r"Stopped")
    t.read(r"\$ $")


@same
def ctrl_z_fg_and_bg(options):
    with Terminal(world) as t:
        t.do(command_of(options, *python(world, ECHO)), "ready")
        t.do("a", "got a")
        stop_by_key(t)
        t.type("fg\n")
        t.do("b", "got b")
        stop_by_key(t)
        t.type("bg\n")  # it reads the terminal, which stops it
        until(lambda: t.do("jobs", r"\[1\]\+\s+(\w+)")[1] == "Stopped", "it is stopped")
        t.type("fg\n")
        t.do("c", "got c")
        t.type("\x04")
        t.read(r"\$ $")
        return t.do("echo status $?", r"\nstatus (\d+)")[1]


@same
def a_background_job_is_killed_by_the_shell(options):
    with Terminal(world) as t:
        t.do(command_of(options, *python(world, SIGNALS)) + " &", r"ready \d+")
        pid = int(t.do("echo =$!=", r"=(\d+)=")[1])
        t.do("kill -USR1 %1", r"\b10\r")
        until(lambda: not is_pending(pid, signal.SIGUSR1), "tandem has had it, too")
        t.do("kill -USR1 $!", r"\b10\r")
        t.do("kill -64 $!; wait %1; echo status $?", r"\nstatus 0")
        t.do(command_of(options, "sleep", "1000") + " &", r"\$ ")
        t.do("kill %1; wait %1; echo status $?", r"\nstatus (\d+)")
        return True


@same
def an_editor_suspends_itself(options):
    """It takes SIGTSTP, puts the terminal in order, and stops by SIGSTOP.

    The signal also writes to a pipe, as one that came just before a read would not end that.
    """
    editor = """
import os, select, signal
def suspend(*_):
    os.write(1, b"leaves\\n")
    os.kill(os.getpid(), signal.SIGSTOP)
    os.write(1, b"is back\\n")
came, comes = os.pipe()
os.set_blocking(comes, False)
signal.set_wakeup_fd(comes)
signal.signal(signal.SIGTSTP, suspend)
print("ready", flush=True)
while True:
    ready, _, _ = select.select([0, came], [], [])
    if came in ready:
        os.read(came, 100)
    if 0 in ready:
        line = os.read(0, 4096)
        if not line:
            break
        print("got", line.decode(), flush=True)
"""
    with Terminal(world) as t:
        t.do(command_of(options, *python(world, editor)), r"ready")
        for _ in range(2):
            t.type("\x1a")
            t.read(r"leaves")
            t.read(r"Stopped")
            t.read(r"\$ $")
            t.do("fg", r"is back")
            t.do("words", r"got words")
        t.type("\x04")
        t.read(r"\$ $")
        return t.do("echo status $?", r"\nstatus (\d+)")[1]


@same
def an_interactive_shell_has_jobs_of_its_own(options):
    inner = command_of(options, "env", "PS1=inner> ", "bash", "--norc", "--noprofile", "-i")
    with Terminal(world) as t:
        t.do(inner, r"inner> $")
        t.do(shlex.join(python(world, ECHO)), "ready")
        t.do("a", "got a")
        t.type("\x1a")
        t.read(r"Stopped")
        t.read(r"inner> $")
        t.do("suspend", r"Stopped")  # the outer shell says it
        t.read(r"\$ $")
        t.do("fg", r"inner> $")
        t.type("fg\n")
        t.do("b", "got b")
        t.type("\x03")
        t.read(r"inner> $")
        t.do("exit 6", r"\$ $")
        return t.do("echo status $?", r"\nstatus (\d+)")[1]


@same
def a_pipeline_keeps_the_terminal(options):
    """The other end of the pipe reads the terminal, and Ctrl-C ends both."""
    with Terminal(world) as t:
        reader = shlex.join(python(world, ECHO)) + " < /dev/tty"
        t.do(command_of(options, "sleep", "1000") + " | " + reader, "ready")
        t.do("words", "got words")
        t.type("\x03")
        t.read(r"\$ $")
        return t.do("echo status ${PIPESTATUS[*]}", r"\nstatus ([\d ]+)")[1]


@same
def a_terminal_that_goes_away_ends_the_program(options):
    """The command is the leader of the session, which alone gets SIGHUP; or a job of a shell."""
    ends = []
    for command in ((TANDEM, "run", *options, "--", *python(world, WAITS)), ()):
        t = Terminal(world, *command)
        if not command:
            t.read(r"\$ $")
            t.type(command_of(options, *python(world, WAITS)) + "\n")
        program = int(t.read(r"ready (\d+)")[1])
        os.close(t.fd)
        until(lambda: state_of(program) in ("", "Z"), "the program has ended")
        ends.append(os.waitpid(t.pid, 0)[1] if command else os.waitpid(t.pid, 0) and 0)
    return ends


def both(case):
    def compares():
        first = case(BECOMES)
        second = case(STAYS)
        assert first == second, f"\n# becomes: {first}\n# stays:   {second}"

    compares.__name__ = f"{case.__name__}_alike"
    return compares


with World() as world:
    run_cases([both(case) for case in SAME.values()])
