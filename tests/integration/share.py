"""Under MPS a running program gets another share of the SMs, and checks every word of its memory.
TAP on stdout; arguments: the build, cases.

TANDEM_SHARES: how many changes in all (40); TANDEM_SHARES_SEED: of what, and when.
"""
import random
import threading

from migrate_program import Program
from mps_world import MpsWorld, end
from world import *

CHANGES = int(os.environ.get("TANDEM_SHARES", "40"))
SEED = int(os.environ.get("TANDEM_SHARES_SEED", "1"))
BESIDE = f"{BUILD}/examples/beside"
# A program that has this keeps its share; and the words of tandem for it.
BLOCKED = {"managed": "unified memory", "graph": "it has graphs", "array": "arrays or textures",
           "variable": "variables on the GPU", "pool": "memory pools",
           "cooperative": "cooperative kernels"}
# The words for a change that was asked for at a moment that did not suit, and for a share whose
# nearest is the present one: a program has at most ten contexts of other shares.
FOR_NOW = ("did not end in time", "is moving", "did not return in time",
           "the nearest that it can have")


class Changed(Program):
    """Two threads, with kernels in flight."""

    def share(self, percent):
        return self.world.tandem("share", str(self.pid()), f"{percent}%")

    def has(self):
        (row,) = [row for row in self.world.jobs() if row["pid"] == self.pid()]
        return row.get("sm_share_ppm", 1000000) // 10000


def a_running_program_gets_another_share():
    with MpsWorld() as world:
        world.turn_on()
        program = Changed(world, 1)
        before = 100
        for percent in (40, 70, 100, 20, 40):
            done = program.share(percent)
            assert done.returncode == 0, done
            assert f"from {before}% to {percent}% of the SMs in" in done.stdout, done
            assert program.has() == percent, world.jobs()
            program.goes_on()
            before = percent
        assert program.share(40).returncode == 0, "it has that share already"
        program.end()


def many_changes_at_random_moments():
    chance = random.Random(SEED)
    with MpsWorld() as world:
        world.turn_on()
        programs = [Changed(world, chance.randrange(1 << 30), 1 + i) for i in range(2)]
        changed = refused = 0
        for _ in tries(20 * CHANGES, lambda: f"{changed} changes, {refused} refused"):
            if changed == CHANGES:
                break
            program = chance.choice(programs)
            done = program.share(chance.randrange(1, 101))
            program.lives()
            changed += done.returncode == 0
            refused += done.returncode != 0
            assert done.returncode == 0 or any(w in done.stderr for w in FOR_NOW), done
            if chance.randrange(2):
                time.sleep(chance.random() / 50)
        for program in programs:
            program.goes_on()
            program.end()
        say(f"# {changed} changes, {refused} refused for the moment")


def rate_of(world, pid, seconds=1.0):
    def launches():
        (row,) = [row for row in world.jobs() if row["pid"] == pid]
        return row["launches"], time.monotonic()
    first, began = launches()
    time.sleep(seconds)
    last, ended = launches()
    return (last - first) / (ended - began)


def work_takes_as_long_as_its_share_says():
    """It is so in one of several rounds: in another the machine may have no time for the work."""
    with MpsWorld() as world:
        world.turn_on()
        process = world.start(BESIDE, "--kernel", "10ms", "--sms", "40", "--for", "1h",
                              wrap="swap")
        seen = []
        try:
            until(lambda: world.jobs() and world.jobs()[0]["launches"] > 3, "it works")
            for _ in tries(20, lambda: seen):
                alone = rate_of(world, process.pid)
                assert world.tandem("share", str(process.pid), "25%").returncode == 0
                quarter = rate_of(world, process.pid)
                assert world.tandem("share", str(process.pid), "100%").returncode == 0
                again = rate_of(world, process.pid)
                seen.append(f"kernels a second: {alone:.0f}, with a quarter {quarter:.0f}, then "
                            f"{again:.0f}")
                if quarter < alone * 0.4 and again > quarter * 2:
                    break
            say(f"# {seen[-1]}")
        finally:
            end(process)


def the_meter_tells_of_the_whole_gpu_under_each_share():
    with MpsWorld() as world:
        world.turn_on()
        process = world.start(BESIDE, "--kernel", "10ms", "--sms", "10", "--for", "1h",
                              wrap="swap")

        def activity():
            rows = world.jobs()
            return rows[0].get("sm_activity_ppm", 0) if rows else 0
        try:
            until(lambda: 150000 < activity() < 280000, "a quarter of the SMs is active")
            for percent in (25, 100, 50, 100):
                assert world.tandem("share", str(process.pid), f"{percent}%").returncode == 0
                for _ in tries(20, lambda: (percent, seen)):
                    time.sleep(0.3)
                    seen = sorted(activity() for _ in range(10) if not time.sleep(0.1))
                    if 150000 < seen[5] < 320000:
                        break
                say(f"# with {percent}%: {seen[5] / 1e4:.0f}% of the SMs are active")
        finally:
            end(process)


def kills_of_program_and_daemon_at_random_moments_of_a_change():
    chance = random.Random(SEED)
    with MpsWorld() as world:
        world.turn_on()
        survivor = Changed(world, 7)
        for i in range(CHANGES // 4):
            victim = Changed(world, chance.randrange(1 << 30), 1)
            asks = threading.Thread(target=victim.share, args=[chance.randrange(10, 100)])
            asks.start()
            time.sleep(chance.random() / 12)
            os.kill(victim.pid(), signal.SIGTERM)
            victim.process.communicate()
            asks.join()
            asks = threading.Thread(target=survivor.share, args=[chance.randrange(10, 100)])
            asks.start()
            time.sleep(chance.random() / 16)
            if i % 3 == 0:
                os.kill(world.daemon_pid(), signal.SIGKILL)
                asks.join()
                world.tandem("run", "--", "true")  # starts another daemon
                world.turn_on()
            asks.join()
            survivor.goes_on()
        until(lambda: survivor.share(50).returncode == 0, "another share is possible afterwards")
        assert survivor.has() == 50, world.jobs()
        survivor.end()


def a_new_daemon_knows_the_present_share():
    with MpsWorld() as world:
        world.turn_on()
        program = Changed(world, 1)
        assert program.share(30).returncode == 0
        os.kill(world.daemon_pid(), signal.SIGKILL)
        world.tandem("run", "--", "true")
        world.turn_on()
        until(lambda: world.jobs() and program.has() == 30, "the share is known")
        program.end()


def what_cannot_change_keeps_its_share_and_says_why():
    with MpsWorld() as world:
        world.turn_on()
        for blocked, words in BLOCKED.items():
            program = Changed(world, 1, 1, blocked)
            done = program.share(50)
            assert done.returncode and words in done.stderr, (blocked, done)
            assert "tandem run --shadow" in done.stderr, done
            assert program.has() == 100
            program.goes_on()
            program.end()


def a_percentage_for_the_whole_process_is_a_limit():
    with MpsWorld(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50") as world:
        world.turn_on()
        program = Changed(world, 1)
        assert program.has() == 50
        done = program.share(60)
        assert done.returncode and "is a limit for the whole process" in done.stderr, done
        done = program.share(25)
        assert done.returncode == 0 and "from 50% to 25%" in done.stdout, done
        program.goes_on()
        program.end()


def without_mps_there_are_no_shares():
    with MpsWorld() as world:
        program = Changed(world, 1)
        done = program.share(50)
        assert done.returncode and "as only MPS does" in done.stderr, done
        program.goes_on()
        program.end()


def wrong_orders_are_refused():
    with MpsWorld() as world:
        world.turn_on()
        program = Changed(world, 1)
        for share in ("0", "101", "x"):
            done = program.share(share)
            assert done.returncode and f'"{share}%"' in done.stderr, done
        done = world.tandem("share", "nobody", "50%")
        assert done.returncode and "nobody" in done.stderr, done
        done = world.tandem("share", str(program.pid()))
        assert done.returncode and "expected a job and a share" in done.stderr, done
        done = world.tandem("set", str(program.pid()), "share=50%")
        assert done.returncode and "see tandem share" in done.stderr, done
        program.end()


run_cases([a_running_program_gets_another_share, many_changes_at_random_moments,
           work_takes_as_long_as_its_share_says,
           the_meter_tells_of_the_whole_gpu_under_each_share,
           kills_of_program_and_daemon_at_random_moments_of_a_change,
           a_new_daemon_knows_the_present_share, what_cannot_change_keeps_its_share_and_says_why,
           a_percentage_for_the_whole_process_is_a_limit, without_mps_there_are_no_shares,
           wrong_orders_are_refused])
