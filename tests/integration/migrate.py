"""Programs move to other GPUs while they run, and check every word of their memory. TAP on stdout;
argument: the build.

TANDEM_MOVES: how many moves in all (200); TANDEM_MOVES_SEED: of what, and when.
"""
import collections
import json
import random
import threading

from migrate_program import Program
from world import *

MOVES = int(os.environ.get("TANDEM_MOVES", "200"))
KILLS = MOVES // 10
# More than a tenth of the orders moves something, even beside other threads that make objects.
ORDERS_MAX = 20 * MOVES
SEED = int(os.environ.get("TANDEM_MOVES_SEED", "1"))
# A program that has this stays where it is; and the words of tandem for it.
BLOCKED = {"managed": "unified memory", "two": "several GPUs"}
# The library does not move a program that has this; the driver does.
DRIVEN = ("pool", "graph", "array", "variable", "vmm", "pinned")
# The words of tandem for things that the threads of "churn" make.
MADE = ("does not lock it", "arrays or textures", "memory pools", "did not return in time")
# The words for a move that was asked for at a moment that did not suit.
FOR_NOW = ("did not end in time", "is moving already", "it is on that GPU", "found no room")


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


def what_it_makes_for_its_gpu_afterwards_is_where_it_lives():
    """Managed memory and advice, pools, graphs' memory, peers, and the answers about them."""
    with World("--gpus", "3") as world:
        program = Program(world, 1, 1, "late")
        done = program.move(1)
        assert done.returncode == 0 and "by the driver" not in done.stdout, done
        program.goes_on()
        program.end()
        nothing_is_left(world)


def many_moves_at_random_moments():
    chance = random.Random(SEED)
    with World("--gpus", "3") as world:
        programs = [Program(world, chance.randrange(1 << 30), 1 + i) for i in range(2)]
        moved = refused = 0
        threads = {}
        for _ in tries(ORDERS_MAX, lambda: f"{moved} of {MOVES} moves, {refused} refused"):
            if moved == MOVES // 10:
                threads = {program: program.threads() for program in programs}
            if moved == MOVES:
                break
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
            assert program.threads() < threads[program] + 10, "a move leaves a thread behind"
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
                world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")  # another daemon
            move.join()
            survivor.goes_on()
        # A move that a daemon had begun when it died is in nobody's way.
        for _ in tries(20, lambda: f"a move after all deaths: {done}"):
            done = survivor.move(1 - survivor.gpu()[0] % 2)
            if done.returncode == 0:
                break
        survivor.goes_on()
        survivor.end()
        nothing_is_left(world)


def one_that_finds_no_room_leaves_nothing_on_the_other_gpu():
    with World("--gpus", "2", "--memory", "64m") as world:
        gpu = lambda: json.loads(world.call(SOFTGPU, "status", "--json").stdout)["gpus"][1]
        program = Program(world, 1)
        big = world.start(TRAIN, "--size", "60m", "--gpu", "5ms", "--cpu", "5ms", "--steps",
                          "1000000", wrap="plain", CUDA_VISIBLE_DEVICES="1")
        until(lambda: gpu()["plain_bytes"] > 55 << 20 or big.poll() is not None, "GPU 1 is full")
        threads = []
        for _ in range(24):
            done = program.move(1)
            assert done.returncode and "has room for" in done.stderr, done
            program.goes_on()
            threads.append(program.threads())
        # The twin's context stays for the next attempt, with what the driver has for it.
        assert threads[-1] < threads[3] + 10, f"a refused move leaves a thread behind: {threads}"
        big.kill()
        big.communicate(timeout=DEADLINE_S)
        for _ in tries(20, lambda: f"a move into the room: {done}"):
            done = program.move(1)
            if done.returncode == 0:
                break
        program.goes_on()
        program.end()
        nothing_is_left(world)


def what_the_library_does_not_move_the_driver_moves():
    with World("--gpus", "2") as world:
        for blocked in DRIVEN:
            program = Program(world, 1, 2, blocked)
            for to in (1, 0):
                done = program.move(to)
                assert done.returncode == 0 and f"to GPU {to} by the driver" in done.stdout, done
                until(lambda: program.gpu() == [to], "it is there")
                program.goes_on()
            program.end()
        nothing_is_left(world)


def what_other_threads_make_meanwhile_moves_or_is_a_reason():
    """The driver locks nobody here, so that the library goes on moving it."""
    chance = random.Random(SEED)
    refused = collections.Counter()
    moved = 0
    with World("--gpus", "3") as world:
        world.call(SOFTGPU, "fault", "call", "cuCheckpointProcessLock=CUDA_ERROR_NOT_SUPPORTED")
        program = Program(world, SEED, 1, "churn")
        threads = program.threads()
        for _ in tries(ORDERS_MAX, lambda: f"{moved} of {MOVES // 4} moves; refused: {refused}"):
            if moved >= MOVES // 4 and any(w in words for w in MADE for words in refused):
                break
            done = program.move(chance.randrange(3))
            program.lives()
            moved += done.returncode == 0
            words = "" if done.returncode == 0 else done.stderr
            assert not words or any(w in words for w in FOR_NOW + MADE), done
            if words:
                refused[words.strip().split("refused: ")[-1]] += 1
            time.sleep(chance.random() / 100)
        program.goes_on()
        assert program.threads() < threads + 15, "a move leaves a thread behind"
        program.end()
        nothing_is_left(world)
    say(f"# {moved} moves; refused: {dict(refused)}")


def where_the_driver_does_not_either_it_stays_and_says_both_reasons():
    """The driver has no checkpoints, or fails at one of its calls."""
    with World("--gpus", "2") as world:
        program = Program(world, 1, 1, "graph")
        for call, words in (("Lock", "does not lock it"), ("Checkpoint", "refuses to checkpoint"),
                            ("Restore:1", "refuses to restore it on that GPU")):
            fault = f"cuCheckpointProcess{call}=CUDA_ERROR_NOT_SUPPORTED"
            world.call(SOFTGPU, "fault", "call", fault)
            done = program.move(1)
            assert done.returncode and f"it has graphs, and the driver {words}" in done.stderr, done
            world.call(SOFTGPU, "fault", "clear")
            assert program.gpu() == [0]
            program.goes_on()
        program.end()
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


def cooperative_kernels_move_to_a_gpu_with_as_many_sms():
    with World("--gpus", "2") as world:
        program = Program(world, 1, 1, "cooperative")
        done = program.move(1)
        assert done.returncode == 0, done
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
        assert done.returncode and "expected a job and a GPU" in done.stderr, done
        program.end()


run_cases([a_program_lives_on_another_gpu,
           what_it_makes_for_its_gpu_afterwards_is_where_it_lives, many_moves_at_random_moments,
           kills_of_program_and_daemon_at_random_moments_of_a_move,
           one_that_finds_no_room_leaves_nothing_on_the_other_gpu,
           what_other_threads_make_meanwhile_moves_or_is_a_reason,
           what_the_library_does_not_move_the_driver_moves,
           where_the_driver_does_not_either_it_stays_and_says_both_reasons,
           what_cannot_move_stays_and_says_why,
           cooperative_kernels_move_to_a_gpu_with_as_many_sms, wrong_orders_are_refused])
