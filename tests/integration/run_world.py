"""Programs under `tandem run`, with pipes or with a terminal of their own."""
import pty
import re
import select
import zlib

from world import *

# It reports each signal that it gets, until LAST. The kernel gives higher numbers later, so all
# that came before LAST has been reported by then.
LAST = signal.SIGRTMAX
SIGNALS = """
import os, signal, sys
signals = signal.valid_signals()
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", os.getpid(), flush=True)
while True:
    info = signal.sigwaitinfo(signals)
    if info.si_signo == signal.SIGRTMAX:
        break
    print(info.si_signo, flush=True)
"""
# It answers each line.
ECHO = """
import os, sys
os.write(1, b"ready\\n")
while line := os.read(0, 1000):
    os.write(1, b"got " + line)
"""
WAITS = 'import os, signal; print("ready", os.getpid(), flush=True); signal.pause()'


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Run:
    """One `tandem run`, in a process group of its own."""

    def __init__(self, world, options, *command, **extra):
        extra = {"stdin": subprocess.DEVNULL, "start_new_session": True, **extra}
        self.process = subprocess.Popen(
            [TANDEM, "run", *options, "--", *command], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env=dict(world.environment, **extra.pop("env", {})), **extra)
        self.pid, self.text = self.process.pid, ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self.process.communicate()

    def processes(self):
        """Its processes, as /proc shows them: where a signal was lost is seen there."""
        rows = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/status") as f:
                    lines = f.read().split("\n")
                if os.getsid(int(pid)) == self.pid:
                    rows.append([line.replace("\t", " ") for line in lines if line.startswith(
                        ("Name", "State", "Pid", "PPid", "SigPnd", "ShdPnd", "SigBlk"))])
            except OSError:
                continue
        return rows

    def line(self):
        """The next line of stdout; "" at its end."""
        while "\n" not in self.text:
            ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
            assert ready, f"never: a line behind {self.text!r}: {self.processes()}"
            more = os.read(self.process.stdout.fileno(), 4096).decode()
            self.text += more or "\n"
        line, self.text = self.text.split("\n", 1)
        return line

    def end(self):
        """(status, the rest of stdout, stderr)"""
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, self.text + out, err


def python(world, code, *arguments):
    """The code is in a file, so that a terminal does not echo it."""
    path = f"{world.directory}/{zlib.crc32(code.encode())}.py"
    with open(path, "w") as f:
        f.write(code)
    return [sys.executable, "-S", "-E", path, *arguments]


def run(world, options, *command, **extra):
    with Run(world, options, *command, **extra) as it:
        return it.end()


class Terminal:
    """A program with a terminal of its own; an interactive bash unless told otherwise."""

    def __init__(self, world, *command):
        self.text, self.has_shell = "", not command
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(world.environment, PS1="$ ", HISTFILE="", TERM="dumb")
            command = command or ("bash", "--norc", "--noprofile", "-i")
            os.execvp(command[0], command)

    def __enter__(self):
        if self.has_shell:
            self.read(r"\$ $")
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, pattern):
        """Waits for output that matches; returns the match and forgets what is before its end."""
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.fd], [], [], DEADLINE_S)
            assert ready, f"never: {pattern!r} in {self.text!r}"
            try:
                more = os.read(self.fd, 4096)
            except OSError:
                more = b""
            assert more, f"it ended: {self.text!r}, without {pattern!r}"
            self.text += more.decode(errors="replace")
        self.text = self.text[found.end():]
        return found

    def do(self, command, pattern):
        self.type(command + "\n")
        return self.read(pattern)


