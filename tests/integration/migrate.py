"""Programs move to other GPUs while they run, and check every word of their memory. TAP on stdout;
argument: the build.

TANDEM_MOVES: how many moves in all (200); TANDEM_MOVES_SEED: of what, and when.
"""
import random
import struct
import threading

from world import *

PROGRAM = f"{BUILD}/tests/integration/migrate_test"
MOVES = int(os.environ.get("TANDEM_MOVES", "200"))
KILLS = MOVES // 10
SEED = int(os.environ.get("TANDEM_MOVES_SEED", "1"))
# A program that has this stays where it is; and the words of tandem for it.
BLOCKED = {"pool": "memory pools", "managed": "unified memory", "graph": "graphs",
           "array": "arrays", "variable": "variables", "two": "several GPUs", "vmm": "maps memory",
           "pinned": "registered memory"}
# The words for a move that was asked for at a moment that did not suit.
FOR_NOW = ("did not end in time", "is moving already", "it is on that GPU", "found no room")


class Program:
    def __init__(self, world, seed, threads=2, blocked=""):
        self.world = world
        self.path = f"{world.directory}/progress{seed}{blocked}"
        self.process = subprocess.Popen(
            [SOFTGPU, "run", "--", TANDEM, "run", "--backend", "swap", "--", PROGRAM, str(seed),
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

    def gpu(self):
        return [row["gpu"] for row in self.world.jobs() if row["pid"] == self.pid()]

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


def a_program_lives_on_another_gpu():
    with World("--gpus", "2") as world:
        program = Program(world, 1)
        done = program.move(1)
        assert done.returncode == 0 and "moved from GPU 0 to GPU 1" in done.stdout, done
        until(lambda: program.gpu() == [1], "it has left the first GPU")
        program.goes_on()
        done = program.move(1)
        assert done.returncode and "it is on that GPU" in done.stderr, done
        done = program.move(0)
        assert done.returncode == 0, done
        program.goes_on()
        program.end()
        nothing_is_left(world)


def many_moves_at_random_moments():
    chance = random.Random(SEED)
    with World("--gpus", "3") as world:
        programs = [Program(world, chance.randrange(1 << 30), 1 + i) for i in range(2)]
        moved = refused = 0
        while moved < MOVES:
            program = chance.choice(programs)
            done = program.move(chance.randrange(3))
            program.lives()
            moved += done.returncode == 0
            refused += done.returncode != 0
            assert done.returncode == 0 or any(w in done.stderr for w in FOR_NOW), done
            if chance.randrange(2):
                time.sleep(chance.random() / 50)
        for program in programs:
            program.goes_on()
            program.end()
        nothing_is_left(world)
        say(f"# {moved} moves, {refused} refused for the moment")


def begin_move(program, to):
    thread = threading.Thread(target=program.move, args=[to])
    thread.start()
    return thread


def kills_of_program_and_daemon_at_random_moments_of_a_move():
    """Nothing is left of a killed program; another one lives on, and its words are right."""
    chance = random.Random(SEED)
    with World("--gpus", "3") as world:
        survivor = Program(world, 7)
        for i in range(KILLS):
            victim = Program(world, chance.randrange(1 << 30))
            move = begin_move(victim, 1 + chance.randrange(2))
            time.sleep(chance.random() / 12)
            os.kill(victim.pid(), signal.SIGKILL)
            victim.process.communicate()
            move.join()
            move = begin_move(survivor, chance.randrange(3))
            time.sleep(chance.random() / 16)
            if i % 3 == 0:
                os.kill(world.daemon_pid(), signal.SIGKILL)
                move.join()
                world.call(TANDEM, "run", "--", "true")  # starts another daemon
            move.join()
            survivor.goes_on()
        survivor.end()
        nothing_is_left(world)


def what_cannot_move_stays_and_says_why():
    with World("--gpus", "2") as world:
        for blocked, words in BLOCKED.items():
            program = Program(world, 1, 1, blocked)
            done = program.move(1)
            assert done.returncode and words in done.stderr, (blocked, done)
            program.goes_on()
            program.end()
        nothing_is_left(world)


def wrong_orders_are_refused():
    with World("--gpus", "2") as world:
        program = Program(world, 1, 1)
        for gpu in ("7", "GPU-1", "x"):
            done = program.move(gpu)
            assert done.returncode and f'"{gpu}" is no GPU of this node' in done.stderr, done
        done = world.call(TANDEM, "migrate", "nobody", "1")
        assert done.returncode and "nobody" in done.stderr, done
        done = world.call(TANDEM, "migrate", str(program.pid()))
        assert done.returncode and "which job, and to which GPU" in done.stderr, done
        program.end()


run_cases([a_program_lives_on_another_gpu, many_moves_at_random_moments,
           kills_of_program_and_daemon_at_random_moments_of_a_move,
           what_cannot_move_stays_and_says_why, wrong_orders_are_refused])
