"""Whole programs through every layer on the software GPU: libtandem, tandemd, tandem, softgpu. TAP
on stdout; argument: the build."""
import os
import random
import signal
import subprocess
import time

from world import *

def the_driver_does_and_refuses_what_nvidias_does():
    with World() as world:
        done = world.call(SOFTGPU, "run", "--", f"{BUILD}/tests/integration/driver_test")
        assert done.returncode == 0, done.stdout + done.stderr


def a_program_ends_alike_without_tandem_without_daemon_and_with_it():
    with World() as world:
        bare = finish(world.start(TRAIN, *SMALL))
        assert (finish(world.start(TRAIN, *SMALL, "--memory", "managed"))["checksum_ok"]
                and world.status()["managed_allocations"] == 1)
        alone = finish(world.start(TRAIN, *SMALL, LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap"))
        disabled = finish(world.start(TRAIN, *SMALL, LD_PRELOAD=LIBRARY, TANDEM_DISABLE="1"))
        for backend in ("plain", "swap", "managed"):
            shared = finish(world.start(TRAIN, *SMALL, wrap=backend))
            assert shared["checksum"] == bare["checksum"]
        assert alone["checksum"] == disabled["checksum"] == bare["checksum"]
        nothing_is_left(world)


def two_programs_larger_than_the_gpu_take_turns_and_use_no_managed_memory():
    with World() as world:
        programs = trains_that_take_turns(world, 2, 12)
        first, second = map(finish, programs)
        assert first["checksum"] == second["checksum"]
        opened = [e["pid"] for e in world.events("opened")]
        assert all(opened.count(program.pid) > 1 for program in programs), opened
        status = world.status()
        assert (status["managed_allocations"] == 0 and status["faults"] == 0
                and status["copy_out_bytes"] > 0), status
        nothing_is_left(world)


def two_programs_that_fit_run_side_by_side():
    with World() as world:
        a, b = (world.start(TRAIN, *SMALL, wrap="swap") for _ in range(2))
        finish(a), finish(b)
        assert not world.events("draining"), world.events("draining")


def turns_of_those_that_always_compute_grow_and_it_is_said_why():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        assert (world.call(TANDEM, "set", "quantum.min=1ms", "swap.share=50%",
                           "swap.share.long=20%").returncode
                == 0)
        programs = [world.start(TRAIN, "--size", "46m", "--gpu", "5ms", "--cpu", "0", "--steps",
                                "100000", wrap="swap")
                    for _ in range(2)]
        until(lambda: len(world.events("opened")) >= 2, "both had a turn")
        explained = lambda: " ".join(world.call(TANDEM, "explain", str(job["pid"])).stdout
                                     for job in world.jobs())
        until(lambda: "always busy" in explained(), "turns have grown")
        assert world.call(TANDEM, "set", "swap.share.long=90%").returncode == 0
        until(lambda: "little lately" in explained(), "turns are short again")
        for program in programs:
            program.kill()
            program.communicate(timeout=DEADLINE_S)
        nothing_is_left(world)


def nvshare_lets_one_program_at_a_time():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        assert world.call(TANDEM, "set", "policy=nvshare", "quantum=50ms").returncode == 0
        a, b = (world.start(TRAIN, *SMALL, wrap="swap") for _ in range(2))
        finish(a), finish(b)
        holder = None
        for e in world.events():
            if e["kind"] == "opened":
                assert holder in (None, e["pid"]), "opened while another held"
                holder = e["pid"]
            elif e["kind"] in ("drained", "left") and e["pid"] == holder:
                holder = None


def programs_survive_a_daemon_that_is_killed_and_come_back_to_the_next():
    with World() as world:
        programs = trains_that_take_turns(world, 2, 12)
        os.kill(world.daemon_pid(), signal.SIGKILL)
        world.call(TANDEM, "run", "--", "true")
        until(lambda: len(world.jobs()) == 2 or any(p.poll() is not None for p in programs),
              "both registered again")
        for program in programs:
            finish(program)
        nothing_is_left(world)


def a_daemon_that_is_gone_for_good_hurts_nobody():
    with World() as world:
        programs = trains_that_take_turns(world, 2, 12)
        os.kill(world.daemon_pid(), signal.SIGKILL)
        for program in programs:
            finish(program)


def without_a_daemon_what_does_not_fit_lives_on_the_host():
    with World() as world:
        a = world.start(TRAIN, *LARGE[:-1], "100000", LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap")
        until(lambda: world.status()["plain_bytes"] >= 46 << 20, "the first has the device")
        b = world.start(TRAIN, *LARGE[:-1], "1", LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap")
        assert finish(b)["steps"] == 1
        assert a.poll() is None, "the second had to wait for the first"
        a.kill()
        a.communicate()


def without_a_daemon_and_host_memory_it_waits_for_room():
    with World("--no-host-vmm") as world:
        a, b = (world.start(TRAIN, *LARGE, LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap")
                for _ in range(2))
        finish(a), finish(b)


def host_memory_goes_back_to_the_device_when_there_is_a_daemon_again():
    """The second lives on the host for a while, then takes turns with the first; its sums stay
    right."""
    with World() as world:
        a = world.start(TRAIN, *LARGE[:-1], "24", LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap")
        until(lambda: world.status()["plain_bytes"] >= 46 << 20, "the first has the device")
        b = world.start(TRAIN, *LARGE[:-1], "24", LD_PRELOAD=LIBRARY, TANDEM_BACKEND="swap")
        until(lambda: world.status()["processes"] == 2 and world.status()["kernels"] > 12
              or a.poll() is not None, "both run")
        world.call(TANDEM, "run", "--", "true")
        until(lambda: len(world.jobs()) == 2 or a.poll() is not None, "both registered")
        finish(a), finish(b)
        assert len({e["pid"] for e in world.events("opened")}) >= 1, world.events()
        nothing_is_left(world)


def killing_programs_in_any_state_leaves_nothing_behind():
    """Four programs at a time, 1.9 times the GPU's memory; one of them, or now and then the daemon,
    dies; another takes its place."""
    kills = int(os.environ.get("TANDEM_TEST_KILLS", "60"))
    seed = int(os.environ.get("TANDEM_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    chance = random.Random(seed)
    say(f"# TANDEM_TEST_KILLS={kills} TANDEM_TEST_SEED={seed}")
    with World() as world:
        def begin():
            steps = str(chance.randrange(1, 30))
            return world.start(TRAIN, "--size", "30m", "--gpu", "5ms", "--cpu", "5ms", "--steps",
                               steps, wrap="swap")

        programs, killed = [begin() for _ in range(4)], 0
        for _ in tries(100 * kills, lambda: f"{kills} kills: {killed}"):
            if killed == kills:
                break
            time.sleep(chance.random() * 0.15)
            victim = chance.randrange(len(programs))
            if chance.random() < 0.05:
                os.kill(world.daemon_pid(), signal.SIGKILL)
                world.call(TANDEM, "run", "--", "true")
                killed += 1
                continue
            if programs[victim].poll() is None:
                programs[victim].kill()
                programs[victim].communicate(timeout=DEADLINE_S)
                killed += 1
            else:
                finish(programs[victim])
            programs[victim] = begin()
        for program in programs:
            finish(program)
        nothing_is_left(world)


def a_gpu_that_dies_gives_errors_not_hangs():
    with World() as world:
        program = world.start(TRAIN, *LARGE[:-1], "100000", wrap="swap")
        until(lambda: len(world.jobs()) == 1, "registered")
        world.call(SOFTGPU, "stop")
        _, err = program.communicate(timeout=DEADLINE_S)
        assert program.returncode == 1 and "CUDA_ERROR" in err, (program.returncode, err)


def a_waiting_program_whose_context_dies_sees_the_error():
    with World() as world:
        programs = [world.start(TRAIN, *LARGE[:-1], "400", wrap="swap") for _ in range(2)]
        until(lambda: sorted(j["state"] for j in world.jobs()) == ["running", "waiting"],
              "one waits for the other")
        world.call(SOFTGPU, "fault", "ecc")
        for program in programs:
            _, err = program.communicate(timeout=DEADLINE_S)
            assert program.returncode == 1 and "CUDA_ERROR_ECC" in err, (program.returncode, err)
        nothing_is_left(world)


def who_waits_ends_with_the_gpu_and_the_next_one_is_for_all():
    with World() as world:
        for backend in ("swap", "managed"):
            programs = [world.start(TRAIN, *LARGE[:-1], "400", wrap=backend) for _ in range(2)]
            until(lambda: sorted(j["state"] for j in world.jobs()) == ["running", "waiting"],
                  "one waits for the other")
            world.call(SOFTGPU, "stop")
            for program in programs:
                _, err = program.communicate(timeout=DEADLINE_S)
                assert (program.returncode == 1
                        and "CUDA_ERROR" in err), (backend, program.returncode, err)
            until(lambda: not world.jobs(), "no job is left")
            assert world.call(SOFTGPU, "start").returncode == 0
            finish(world.start(TRAIN, *LARGE, wrap=backend))


def exit_codes_are_the_childs_or_those_of_a_wrapper():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "sh", "-c", "exit 7").returncode == 7
        assert world.call(TANDEM, "run", "--", "/no/such/program").returncode == 127
        assert world.call(TANDEM, "run", "--", "/etc/passwd").returncode == 126
        bad = world.call(TANDEM, "run", "--backend", "swop", "--", "true")
        assert bad.returncode == 125 and '"swop"' in bad.stderr, bad
        killed = world.call(TANDEM, "run", "--", "sh", "-c", "kill -9 $$")
        assert killed.returncode == -signal.SIGKILL


def fifty_simultaneous_starts_make_one_daemon():
    with World() as world:
        programs = [subprocess.Popen([TANDEM, "run", "--", "true"], env=world.environment,
                                     stderr=subprocess.PIPE, text=True)
                    for _ in range(50)]
        for program in programs:
            _, err = program.communicate(timeout=DEADLINE_S)
            assert program.returncode == 0, err
        second = world.call(TANDEMD)
        assert second.returncode == 1 and f"pid={world.daemon_pid()}" in second.stderr, second


def programs_that_begin_at_once_share_one_software_gpu():
    with World() as world:
        world.call(SOFTGPU, "stop")
        programs = [world.start("true") for _ in range(12)]
        for program in programs:
            _, err = program.communicate(timeout=DEADLINE_S)
            assert program.returncode == 0, err
        assert world.status()["index"] == 0


CASES = [
    the_driver_does_and_refuses_what_nvidias_does,
    a_program_ends_alike_without_tandem_without_daemon_and_with_it,
    two_programs_larger_than_the_gpu_take_turns_and_use_no_managed_memory,
    two_programs_that_fit_run_side_by_side,
    turns_of_those_that_always_compute_grow_and_it_is_said_why,
    nvshare_lets_one_program_at_a_time,
    programs_survive_a_daemon_that_is_killed_and_come_back_to_the_next,
    a_daemon_that_is_gone_for_good_hurts_nobody,
    without_a_daemon_what_does_not_fit_lives_on_the_host,
    without_a_daemon_and_host_memory_it_waits_for_room,
    host_memory_goes_back_to_the_device_when_there_is_a_daemon_again,
    killing_programs_in_any_state_leaves_nothing_behind,
    a_gpu_that_dies_gives_errors_not_hangs,
    a_waiting_program_whose_context_dies_sees_the_error,
    who_waits_ends_with_the_gpu_and_the_next_one_is_for_all,
    exit_codes_are_the_childs_or_those_of_a_wrapper,
    fifty_simultaneous_starts_make_one_daemon,
    programs_that_begin_at_once_share_one_software_gpu,
]

run_cases(CASES, at_once=2)
