"""Programs that do what they are told; see memory_shell.c."""
import select

from world import *

SHELL = f"{BUILD}/tests/integration/memory_shell"
MIB = 1 << 20


class Shell:
    """One of them."""

    def __init__(self, world, *command, program=SHELL):
        self.process = subprocess.Popen([SOFTGPU, "run", "--", *command, program],
                                        env=world.environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        assert ready, "it hangs"
        line = self.process.stdout.readline()
        assert line, f"it ended: {self.process.wait()}"
        result, value = line.split(" ", 1)
        return int(result), value.strip()

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def do(self, *words):
        result, value = self.ask(*words)
        assert result == 0, (words, result)
        return int(value) if value.isdigit() and len(value) < 20 else value

    def end(self):
        self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate()


def under_swap(world):
    return Shell(world, TANDEM, "run", "--backend", "swap", "--")


def demanded(world, shell):
    return sum(j["demanded_bytes"] for j in world.jobs() if j["pid"] == shell.process.pid)
