"""Jobs are evicted and restarted by hand. TAP on stdout; argument: the build."""
import signal

from world import *

LONG = ["--size", "8m", "--gpu", "10ms", "--cpu", "1ms", "--steps", "100000"]
SAVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "evict_saver.py")


def act(world, verb, job):
    return subprocess.Popen([TANDEM, verb, str(job)], env=world.environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def said(process):
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


def end_of(process):
    process.communicate(timeout=DEADLINE_S)
    return process.returncode


def job_of(world, process):
    """The row of its process, which is the child of tandem run or that itself."""
    def find():
        parents = {process.pid}
        return [j for j in world.jobs() if j["pid"] in parents or parent(j["pid"]) in parents]

    until(find, "it is known")
    return find()[0]


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def runs(world, process):
    until(lambda: (job_of(world, process)["launches"] or 0) > 3, "it runs")


def actions(world):
    return [e["detail"] for e in world.events("action")]


def it_ends_by_sigterm_and_others_go_on():
    with World() as world:
        other = world.start(TRAIN, *SMALL, wrap="swap")
        a = world.start(TRAIN, *LONG, wrap="swap")
        runs(world, a)
        job = job_of(world, a)
        code, out, err = said(act(world, "evict", job["pid"]))
        assert code == 0 and not err and job["job"] in out and "evicted" in out, (code, out, err)
        assert end_of(a) == -signal.SIGTERM, a.returncode
        finish(other)
        nothing_is_left(world)
        assert actions(world) == ["evict: asked", "evict: running", "evict: done"], actions(world)


def all_who_ask_at_once_are_answered():
    with World() as world:
        a = world.start(TRAIN, *LONG, wrap="swap")
        runs(world, a)
        job = job_of(world, a)
        both = [act(world, "evict", job["pid"]) for _ in range(2)]
        codes = sorted((code, "evicted" in out) for code, out, _ in map(said, both))
        # The second one may have come when there was no such job any more.
        assert codes in ([(0, True), (0, True)], [(0, True), (125, False)]), codes
        assert end_of(a) == -signal.SIGTERM
        code, _, err = said(act(world, "evict", job["pid"]))
        assert code == 125 and "there is no job" in err, (code, err)
        assert actions(world).count("evict: done") == 1, actions(world)


def a_handler_saves_what_is_on_the_gpu():
    with World() as world:
        saved = f"{world.directory}/saved"
        a = world.start(sys.executable, SAVER, saved, wrap="swap")
        until(lambda: any(j["demanded_bytes"] for j in world.jobs()), "it has memory")
        done = world.call(TANDEM, "evict", "--json", str(job_of(world, a)["pid"]))
        rows = json.loads(done.stdout)
        assert (done.returncode == 0 and rows[-1]["state"] == "done"
                and rows[-1]["action"] == "evict"), done
        assert end_of(a) == 7, a.returncode
        with open(saved, "rb") as f:
            assert f.read() == b"\x5a" * (1 << 20)


def one_that_ignores_sigterm_is_killed():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", "evict.deadline=200ms").returncode == 0
        a = world.start("sh", "-c", f"trap '' TERM; exec {TRAIN} {' '.join(LONG)}", wrap="swap")
        runs(world, a)
        code, out, err = said(act(world, "evict", job_of(world, a)["pid"]))
        assert code == 0, (code, out, err)
        assert end_of(a) == -signal.SIGKILL
        nothing_is_left(world)


def a_program_that_is_stopped_is_killed():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", "evict.deadline=200ms").returncode == 0
        a = world.start(TRAIN, *LONG, wrap="swap")
        runs(world, a)
        pid = job_of(world, a)["pid"]
        os.kill(pid, signal.SIGSTOP)
        code, out, err = said(act(world, "evict", pid))
        assert code == 0, (code, out, err)
        assert end_of(a) in (-signal.SIGTERM, -signal.SIGKILL)


def nobody_restarts_what_is_not_supervised():
    with World() as world:
        a = world.start(TRAIN, *LONG, wrap="swap")
        runs(world, a)
        code, out, err = said(act(world, "restart", job_of(world, a)["pid"]))
        assert (code == 125 and not out and "refused" in err
                and "tandem run --restart" in err), (code, out, err)
        runs(world, a)
        assert "restart" in world.call(TANDEM, "explain", str(job_of(world, a)["pid"])).stdout
        a.kill()
        a.communicate()


def the_daemon_dies_in_the_middle():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        a = world.start(TRAIN, *LONG, wrap="swap")
        runs(world, a)
        b = world.start("sh", "-c", f"trap '' TERM; exec {TRAIN} {' '.join(LONG)}", wrap="swap")
        runs(world, b)
        jobs = [job_of(world, p) for p in (a, b)]
        evicting = act(world, "evict", jobs[1]["pid"])
        until(lambda: "evict: running" in actions(world), "it is about it")
        os.kill(world.daemon_pid(), signal.SIGKILL)
        code, _, err = said(evicting)
        assert code == 125 and "daemon" in err, (code, err)
        # A new daemon knows nothing of it, and the programs go on.
        until(lambda: world.call(TANDEM, "run", "--", "true").returncode == 0, "there is a daemon")
        until(lambda: len(world.jobs()) == 2, "they are back")
        assert world.call(TANDEM, "set", "evict.deadline=200ms").returncode == 0
        for process, job, code in ((a, jobs[0], -signal.SIGTERM), (b, jobs[1], -signal.SIGKILL)):
            assert said(act(world, "evict", job["pid"]))[0] == 0
            assert end_of(process) == code, process.returncode
        nothing_is_left(world)


if __name__ == "__main__":
    run_cases([it_ends_by_sigterm_and_others_go_on, all_who_ask_at_once_are_answered,
               a_handler_saves_what_is_on_the_gpu, one_that_ignores_sigterm_is_killed,
               a_program_that_is_stopped_is_killed, nobody_restarts_what_is_not_supervised,
               the_daemon_dies_in_the_middle], at_once=2)
