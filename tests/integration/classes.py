"""The effect of a job's class under the default policy, with whole programs on the software GPU.
TAP on stdout; argument: the build."""
import subprocess

from world import *


def begin(world, kind, *options, arguments):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--backend", "swap", "--class", kind, *options,
               "--", TRAIN, *arguments]
    return subprocess.Popen(command, env=world.environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def duties(world, *programs):
    """Every duty that a job of either class had while the programs ran, by class."""
    seen = {}

    def all_ended():
        for job in world.jobs():
            seen.setdefault(job["class"], set()).add(job["duty_ppm"])
        return all(program.poll() is not None for program in programs)

    until(all_ended, "the programs end")
    return seen


def side_by_side_neither_class_waits_and_a_duty_given_by_hand_is_never_exceeded():
    """Where the guaranteed one's steps are found, the besteffort one may get less for a while;
    where they are not, there is no ground for that."""
    steps = ["--size", "8m", "--gpu", "10ms", "--cpu", "2ms", "--steps", "30"]
    with World() as world:
        guaranteed, besteffort = (begin(world, "guaranteed", arguments=steps),
                                  begin(world, "besteffort", "--duty", "60%", arguments=steps))
        seen = duties(world, guaranteed, besteffort)
        assert (seen["guaranteed"] == {0} and max(seen["besteffort"]) == 600_000
                and 0 not in seen["besteffort"]), seen
        assert finish(guaranteed)["checksum"] == finish(besteffort)["checksum"]
        assert not world.events("draining"), world.events("draining")
        assert len(world.events("opened")) == 2, world.events("opened")
        nothing_is_left(world)


def where_memory_does_not_hold_both_besteffort_runs_in_the_pauses_and_gives_way():
    """Turns among equals are a minute, so it is the class that lets the guaranteed one back; and
    the besteffort one has more work than the pauses hold. The part of the time that its slack pays
    for goes to others: on a busy machine a hand-over may cost more than usual."""
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        assert world.call(TANDEM, "set", "quantum=60s", "quantum.min=60s").returncode == 0
        besteffort = begin(world, "besteffort",
                           arguments=["--size", "46m", "--gpu", "80ms", "--cpu", "0", "--steps",
                                      "100000"])
        until(lambda: world.events("opened"), "the besteffort one runs")
        guaranteed = begin(world, "guaranteed", "--slack", "50%",
                           arguments=["--size", "46m", "--gpu", "20ms", "--cpu", "1s", "--steps",
                                      "4"])
        until(lambda: world.events("left"), "one of them ends")
        turns, pids = [], []
        for event in world.events():
            if event["kind"] == "left":
                break
            pids += [event["pid"]] * (event["kind"] == "attached")
            turns += [event["pid"]] * (event["kind"] == "opened")
        assert (len(pids) == 2
                and event["pid"]
                == pids[1]), "the besteffort one, which came first, kept the GPU to its end"
        assert turns.count(pids[0]) >= 2, f"it had no turn in the pauses: {pids} {turns}"
        assert (turns.count(pids[1])
                >= 2), f"the guaranteed one did not get the GPU back from it: {pids} {turns}"
        finish(guaranteed)
        besteffort.kill(), besteffort.communicate()
        nothing_is_left(world)


def beyond_its_users_quota_a_job_is_refused_or_upgraded_when_there_is_room():
    work = ["--size", "1m", "--gpu", "5ms", "--cpu", "5ms", "--steps", "1000000"]
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        assert world.call(TANDEM, "set", "quota.jobs=1", "quota.gpus=1.5").returncode == 0
        first = begin(world, "guaranteed", "--mem", "32m", arguments=work)
        until(lambda: len(world.jobs()) == 1, "it runs")
        refused = world.call(TANDEM, "run", "--class", "guaranteed", "--", "true")
        assert (refused.returncode == 125
                and "has 1 of 1 (quota.jobs), and this would make 2. Wait"
                in refused.stderr), refused
        assert world.call(TANDEM, "run", "--class", "besteffort", "--", "true").returncode == 0
        second = begin(world, "besteffort", "--upgrade", "guaranteed", "--name", "second",
                       arguments=work)
        until(lambda: len(world.jobs()) == 2, "it runs beside the first")
        other = next(j for j in world.jobs() if j["name"] == "second")
        assert (other["class"], other["upgrade"]) == ("besteffort", "guaranteed"), other
        assert "until its user's quota has room" in world.call(TANDEM, "explain", "second").stdout
        told = world.call(TANDEM, "set", "second", "class=guaranteed")
        assert told.returncode == 125 and "beyond the quota" in told.stderr, told
        first.kill(), first.communicate(timeout=DEADLINE_S)
        until(lambda: [(j["class"], j["upgrade"]) for j in world.jobs()] == [
                  ("guaranteed", "none")], "it is upgraded")
        assert any("class=guaranteed: there is room" in e["detail"]
                   for e in world.events("option")), world.events("option")
        # The present class, for which it no longer waits, outlives the daemon.
        os.kill(world.daemon_pid(), signal.SIGKILL)
        until(lambda: world.call(TANDEM, "ps").returncode, "the daemon is gone")
        world.call(TANDEM, "run", "--", "true")
        until(lambda: [(j["class"], j["upgrade"]) for j in world.jobs()] == [
                  ("guaranteed", "none")], "it comes back as it was")
        second.kill(), second.communicate(timeout=DEADLINE_S)
        for text in ("besteffort", "x"):
            done = world.call(TANDEM, "run", "--upgrade", text, "--", "true")
            assert done.returncode == 125 and f'"{text}"' in done.stderr, done


def daemon_without_room(world):
    daemon = subprocess.Popen([TANDEMD, "--set", "quota.jobs=0"], env=world.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: world.call(TANDEM, "ps").returncode == 0, "it answers")
    return daemon


def those_who_wait_for_an_upgrade_keep_their_order_under_the_next_daemon():
    names = [f"waiter{i}" for i in range(5)]
    with World() as world:
        daemon, programs = daemon_without_room(world), []
        for name in names:
            programs.append(begin(world, "besteffort", "--upgrade", "guaranteed", "--name", name,
                                  arguments=["--size", "1m", "--gpu", "1ms", "--cpu", "10ms",
                                             "--steps", "1000000"]))
            until(lambda: len(world.jobs()) == len(programs), f"{name} is there")
        daemon.kill(), daemon.wait()
        daemon = daemon_without_room(world)
        until(lambda: len(world.jobs()) == len(names), "all are back")
        for room in range(1, len(names) + 1):
            assert world.call(TANDEM, "set", f"quota.jobs={room}").returncode == 0
            until(lambda: sorted(j["name"] for j in world.jobs()
                                 if j["class"] == "guaranteed") == names[:room],
                  f"the first {room} of them are upgraded")
        for program in programs:
            program.kill(), program.communicate(timeout=DEADLINE_S)
        nothing_is_left(world)
        daemon.terminate(), daemon.wait()


CASES = [
    beyond_its_users_quota_a_job_is_refused_or_upgraded_when_there_is_room,
    side_by_side_neither_class_waits_and_a_duty_given_by_hand_is_never_exceeded,
    those_who_wait_for_an_upgrade_keep_their_order_under_the_next_daemon,
    where_memory_does_not_hold_both_besteffort_runs_in_the_pauses_and_gives_way,
]

run_cases(CASES)
