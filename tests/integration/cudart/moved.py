"""Programs of nvcc that are moved to other GPUs at random moments: each has to end as without. TAP
on stdout; arguments: the build, and programs (a subset of all).

Most of them end soon, so each runs again and again until it has been moved its part of all moves,
or has been refused by a reason of its own. TANDEM_MOVES: how many in all (40); TANDEM_MOVES_SEED.
Without nvcc all are skipped.
"""
import collections
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import run as nvcc  # noqa: E402
from world import SOFTGPU, TANDEM, World, nothing_is_left, run_cases, say, until  # noqa: E402

MOVES = int(os.environ.get("TANDEM_MOVES", "40"))
SEED = int(os.environ.get("TANDEM_MOVES_SEED", "1"))
GPUS = 3
# They do different things: copies, streams and events, threads, host memory, launches, reductions.
SUBSET = ["black_scholes", "events", "histogram", "matmul", "per_thread", "pinned", "pipeline",
          "reduce", "streams", "threads", "transpose", "vector_add"]
NAMES = nvcc.CHOSEN or SUBSET
# One that cannot be moved is tried so often; it has to end right all the same.
TRIES_MAX = int(os.environ.get("TANDEM_MOVES_TRIES", "60"))


class Mover:
    """Moves whatever runs, again and again; the counts are by what tandem said."""

    def __init__(self, world, chance):
        self.world, self.chance, self.ends = world, chance, False
        self.moved, self.refused = 0, collections.Counter()
        self.thread = threading.Thread(target=self.move)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()

    def move(self):
        while not self.ends:
            done = self.world.call(TANDEM, "migrate", "program", str(self.chance.randrange(GPUS)))
            if done.returncode == 0 and "moved" in done.stdout:
                self.moved += 1
            elif "there is no job" not in done.stderr:
                self.refused[done.stderr.strip().rsplit(": ", 1)[-1]] += 1
            time.sleep(self.chance.random() / 200)


def once(world, program):
    done = subprocess.run([SOFTGPU, "run", "--", TANDEM, "run", "--backend", "swap", "--name",
                           "program", "--", program], env=world.environment, capture_output=True,
                          text=True, timeout=nvcc.DEADLINE_S)
    if done.returncode == nvcc.SKIPPED:
        return
    assert done.returncode == 0 and done.stdout == "ok\n", (
        f"exit {done.returncode}: {done.stdout}{done.stderr}")


def case_of(name):
    def case():
        source = f"{nvcc.HERE}/{name}.cu"
        part = max(1, MOVES // len(NAMES))
        with tempfile.TemporaryDirectory(prefix="moved-") as directory:
            program = f"{directory}/{name}"
            problem = nvcc.build(source, [], program, directory)
            assert not problem, problem
            with World("--gpus", str(GPUS), *nvcc.directive(source, "softgpu", [])) as world:
                once(world, program)
                with Mover(world, random.Random(f"{SEED} {name}")) as mover:
                    tries = 0
                    while mover.moved < part and tries < TRIES_MAX:
                        once(world, program)
                        tries += 1
                nothing_is_left(world)
        why = ", ".join(f"{n} x {words}" for words, n in mover.refused.most_common())
        orders = mover.moved + mover.refused.total()
        say(f"# {name}: {orders} orders, {mover.moved} moves in {tries} runs; "
            f"refused: {why or 'none'}")
    case.__name__ = name
    return case


if not nvcc.NVCC:
    print("1..0 # SKIP nvcc is not here")
else:
    sys.argv[2:] = []
    run_cases([case_of(name) for name in NAMES])
