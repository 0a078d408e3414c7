"""Programs that are hard to drain, beside a rival that wants the GPU. TAP on stdout; argument: the
build."""
import json

from world import *

TEST = f"{BUILD}/tests/integration/drain_test"
RIVAL = ["--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "40"]


def succeeds(process):
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, f"exit {process.returncode}: {err}"


def take_turns(world, quantum="30ms", **options):
    world.call(TANDEM, "run", "--", "true")
    settings = [f"{key.replace('_', '.')}={value}" for key, value in options.items()]
    done = world.call(TANDEM, "set", "policy=nvshare", f"quantum={quantum}", *settings)
    assert done.returncode == 0, done.stderr


def goes_on_after_its_drain_got_stuck(mode):
    """Its gate closes while the GPU's work waits for a launch that is yet to come."""
    with World() as world:
        take_turns(world, drain_deadline="100ms")
        go = f"{world.directory}/go"
        program = world.start(TEST, mode, go, wrap="swap")
        until(lambda: world.events("opened"), "the program holds")
        pid = world.events("opened")[0]["pid"]
        rival = world.start(TRAIN, *RIVAL, wrap="swap")
        until(lambda: [e for e in world.events("draining") if e["pid"] == pid], "its gate closes")
        open(go, "w").close()
        succeeds(program)
        finish(rival)
        assert [e for e in world.events("stuck") if e["pid"] == pid], world.events()
        nothing_is_left(world)


def a_kernel_that_waits_for_a_gated_thread_gets_what_it_waits_for():
    goes_on_after_its_drain_got_stuck("flag")


def a_host_function_that_wants_a_gated_threads_lock_gets_it():
    goes_on_after_its_drain_got_stuck("callback")


def turns(world):
    """(pid, since, until) of every time that a process held, by the daemon's clock."""
    held, since = [], {}
    for event in world.events():
        if event["kind"] == "opened":
            since[event["pid"]] = event["time_ns"]
        elif event["kind"] in ("drained", "left") and event["pid"] in since:
            held.append((event["pid"], since.pop(event["pid"]), event["time_ns"]))
    return held


def one_at_a_time(world, held):
    for (_, _, ended), (_, began, _) in zip(held, held[1:]):
        assert began >= ended, held
    # A turn is one switch of the GPU at most: no kernel of another program ran within it. Set-up
    # and the last check are outside turns.
    for gpu in json.loads(world.call(SOFTGPU, "status", "--json").stdout)["gpus"]:
        assert gpu["context_switches"] <= len(held) + 8, (gpu, held)


def threads_own_streams_are_drained():
    with World() as world:
        take_turns(world)
        programs = [world.start(TEST, "threads", wrap="swap") for _ in range(2)]
        for program in programs:
            succeeds(program)
        held = turns(world)
        assert len(held) >= 4, held
        one_at_a_time(world, held)
        nothing_is_left(world)


def a_process_on_two_gpus_gets_both_or_none():
    with World("--gpus", "2") as world:
        take_turns(world)
        programs = ([world.start(TEST, "gpus", wrap="swap") for _ in range(2)]
                    + [world.start(TEST, "threads", wrap="swap")])
        for program in programs:
            succeeds(program)
        held = turns(world)
        assert len(held) >= 6, held
        one_at_a_time(world, held)
        nothing_is_left(world)


def a_capture_that_is_open_neither_breaks_nor_holds_up_the_drain():
    with World() as world:
        take_turns(world)
        go = f"{world.directory}/go"
        program = world.start(TEST, "capture", go, wrap="swap")
        until(lambda: world.events("opened"), "the program holds")
        pid = world.events("opened")[0]["pid"]
        rival = world.start(TRAIN, *RIVAL, wrap="swap")
        until(lambda: ([e for e in world.events("drained") if e["pid"] == pid]
                       or program.poll() is not None),
              "it is drained, its capture open")
        open(go, "w").close()
        succeeds(program)
        finish(rival)
        assert not world.events("stuck"), world.events("stuck")
        nothing_is_left(world)


def a_duty_breaks_no_capture():
    with World() as world:
        for duty in ("--duty", "50%"), ():
            done = world.call(SOFTGPU, "run", "--", TANDEM, "run", *duty, "--", TEST, "global")
            assert done.returncode == 0, (duty, done)
        nothing_is_left(world)


run_cases([
    a_kernel_that_waits_for_a_gated_thread_gets_what_it_waits_for,
    a_host_function_that_wants_a_gated_threads_lock_gets_it,
    threads_own_streams_are_drained,
    a_process_on_two_gpus_gets_both_or_none,
    a_capture_that_is_open_neither_breaks_nor_holds_up_the_drain,
    a_duty_breaks_no_capture,
])
