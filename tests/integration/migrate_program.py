"""migrate_test as the tests of moves run it: it goes on until it is told to end, and checks every
word of its memory."""
import struct

from world import *

PROGRAM = f"{BUILD}/tests/integration/migrate_test"


class Program:
    def __init__(self, world, seed, threads=2, blocked="", backend="swap"):
        self.world = world
        self.path = f"{world.directory}/progress{seed}{blocked}"
        self.process = subprocess.Popen(
            [SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--", PROGRAM, str(seed),
             str(threads), self.path, *([blocked] if blocked else [])],
            env=world.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        until(lambda: self.turns() > 2 or self.process.poll() is not None, "it takes turns")

    def turns(self):
        try:
            with open(self.path, "rb") as f:
                return struct.unpack("Q", f.read(8))[0]
        except (FileNotFoundError, struct.error):
            return 0

    def pid(self):
        return self.process.pid

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid()}/task"))

    def gpu(self):
        """Nothing, if the program is not known or uses no GPU yet."""
        return [row["gpu"] for row in self.world.jobs()
                if row["pid"] == self.pid() and "gpu" in row]

    def move(self, to):
        return self.world.call(TANDEM, "migrate", str(self.pid()), str(to))

    def lives(self):
        if self.process.poll() is not None:
            out, err = self.process.communicate()
            raise AssertionError(f"it has ended: {self.process.returncode}: {out}{err}")

    def goes_on(self):
        seen = self.turns()
        until(lambda: self.turns() > seen + 2 or self.process.poll() is not None, "it goes on")
        self.lives()

    def end(self):
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, f"exit {self.process.returncode}: {out}{err}"
