"""Programs in namespaces of their own, as containers run them: the daemon's socket directory is
mounted, and the kernel tells who connects. TAP on stdout; argument: the build."""
from world import *

NO_PEERPIDFD = f"{BUILD}/tests/integration/libno_peerpidfd.so"
HELD = ["--size", "8m", "--gpu", "5ms", "--cpu", "1ms", "--steps", "100000"]


def may_unshare(*options):
    done = (subprocess.run(["unshare", *options, "true"], capture_output=True, text=True)
            if shutil.which("unshare")
            else None)
    if not done or done.returncode:
        raise Skip(f"unshare {' '.join(options)}: {done.stderr.strip() if done else 'not here'}")


def runs(pid):
    return os.readlink(f"/proc/{pid}/exe")


def is_known_and_ends(world, program):
    """The pid is that of this side, so that it can be paused, explained and looked up here."""
    until(lambda: world.jobs() or program.poll() is not None, "registered")
    assert program.poll() is None, program.communicate()
    job = world.jobs()[0]
    assert runs(job["pid"]) == TRAIN, job
    assert job["uid"] == os.getuid(), job
    until(lambda: world.jobs()[0]["demanded_bytes"] >= 8 << 20, "its memory is counted")
    assert world.call(TANDEM, "pause", str(job["pid"])).returncode == 0
    until(lambda: any(e["pid"] == job["pid"] for e in world.events("drained")), "paused")
    os.kill(job["pid"], signal.SIGKILL)
    program.communicate()
    nothing_is_left(world)


def namespace(*options):
    may_unshare(*options)
    with World() as world:
        is_known_and_ends(world, world.start("unshare", *options, TRAIN, *HELD, wrap="swap"))


def a_program_in_a_pid_namespace_is_known_by_its_pid_here():
    namespace("-p", "-f")


def a_program_with_a_proc_of_its_own_is_known_by_its_pid_here():
    namespace("-p", "-f", "--mount-proc")


def a_program_in_a_user_namespace_is_its_users():
    namespace("-U", "-r", "-p", "-f")


def a_program_that_is_nobody_in_its_user_namespace_is_its_users():
    namespace("-U", "-p", "-f")


def only_the_sockets_directory_is_mounted():
    """The directory is mounted at another path, and its own path is hidden: as `-v DIR:/run/tandem
    -e LD_PRELOAD=...` does it."""
    may_unshare("-m", "-p", "-f")
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        inside = f"{world.directory}/inside"
        os.mkdir(inside)
        script = ('mount --bind "$0" "$1" && mount -t tmpfs none "$0" '
                  '&& export TANDEM_SOCKET="$1/socket" && shift && exec "$@"')
        program = world.start("unshare", "-m", "-p", "-f", "sh", "-c", script,
                              f"{world.directory}/t", inside, "env", f"LD_PRELOAD={LIBRARY}",
                              "TANDEM_BACKEND=swap", TRAIN, *HELD)
        is_known_and_ends(world, program)


def without_the_socket_a_program_runs_as_without_a_daemon():
    may_unshare("-m", "-p", "-f")
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        program = world.start("unshare", "-m", "-p", "-f", "sh", "-c",
                              'mount -t tmpfs none "$0" && exec "$@"', f"{world.directory}/t",
                              "env", f"LD_PRELOAD={LIBRARY}", TRAIN, *SMALL)
        finish(program)
        assert not world.jobs(), world.jobs()


# -- rights: root of a container is a user like others --

class Container:
    """A PID namespace with a /proc of its own, in which this user, who is root, runs programs."""

    def __init__(self, world):
        self.world = world

    def __enter__(self):
        may_unshare("-p", "-f", "--mount-proc")
        if os.geteuid():
            raise Skip("needs root, which containers have")
        self.keeper = subprocess.Popen(
            ["unshare", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c",
             "echo; exec sleep 1000"], stdout=subprocess.PIPE)
        self.keeper.stdout.readline()
        with open(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children") as f:
            self.inside = ["nsenter", "-t", f.read().split()[0], "-p", "-m", "--"]
        return self

    def __exit__(self, *_):
        self.keeper.kill()
        self.keeper.communicate()

    def call(self, *command):
        return self.world.call(*self.inside, *command)

    def start(self, *command, name):
        return self.world.start(*self.inside, TANDEM, "run", "--backend", "swap", "--name", name,
                                "--", *command)

    def jobs(self):
        return json.loads(self.call(TANDEM, "ps", "--json").stdout)


def has(jobs, name):
    return [job for job in jobs if job.get("name") == name]


def is_refused(done, *words):
    assert done.returncode and not done.stdout, done
    assert all(word in done.stderr for word in words), done


def is_none_of_its(container, name):
    """What root of the container may do to another's job, by name and by pid: nothing."""
    pid = has(container.world.jobs(), name)[0]["pid"]
    assert not has(container.jobs(), name), container.jobs()
    for job in (name, str(pid)):
        for words in (["evict"], ["pause"], ["resume"], ["restart"], ["explain"]):
            is_refused(container.call(TANDEM, *words, job), "no job")
        is_refused(container.call(TANDEM, "set", job, "mem=1m"), "no job")
        is_refused(container.call(TANDEM, "set", job), "no job")
    for words in (["events", "--json"], ["gpu", "--json"], ["metrics"]):
        done = container.call(TANDEM, *words)
        assert done.returncode == 0 and name not in done.stdout, done
    now = has(container.world.jobs(), name)
    assert [job["pid"] for job in now] == [pid], now
    assert now[0]["state"] != "paused", now


def root_of_a_container_is_no_administrator():
    with World() as world, Container(world) as container:
        alone = world.start(TANDEM, "run", "--name", "alone", "--", TRAIN, *HELD)
        until(lambda: has(world.jobs(), "alone"), "registered")
        is_none_of_its(container, "alone")
        is_refused(container.call(TANDEM, "set", "policy=timeshare"), "owner")
        is_refused(container.call(TANDEM, "set", "enabled=off"), "owner")
        is_refused(container.call(TANDEM, "stop", "--force"), "owner")
        # The others are sums.
        assert "alone" not in container.call(TANDEM, "ps", "--json").stdout
        assert container.jobs(), "a row of sums"
        # Root of the node is one.
        assert world.call(TANDEM, "set", "policy=timeshare").returncode == 0
        assert world.call(TANDEM, "evict", "alone").returncode == 0
        alone.communicate()


def root_of_two_containers_is_two_users():
    with World() as world, Container(world) as a, Container(world) as b:
        world.call(TANDEM, "run", "--", "true")  # the node's daemon
        one = a.start(TRAIN, *HELD, name="job-of-a")
        two = b.start(TRAIN, *HELD, name="job-of-b")
        until(lambda: has(world.jobs(), "job-of-a") and has(world.jobs(), "job-of-b"), "registered")
        is_none_of_its(a, "job-of-b")
        is_none_of_its(b, "job-of-a")
        for container, name in ((a, "job-of-a"), (b, "job-of-b")):
            mine = has(container.jobs(), name)
            assert len(mine) == 1, container.jobs()
            # The pid is the daemon's, so that NVML, signals and limits mean this process.
            assert runs(mine[0]["pid"]) == TRAIN, mine
            until(lambda: has(world.jobs(), name)[0]["demanded_bytes"] >= 8 << 20, "metered")
            assert container.call(TANDEM, "set", name, "weight=3").returncode == 0
            assert container.call(TANDEM, "pause", name).returncode == 0
            until(lambda: has(world.jobs(), name)[0]["state"] == "paused", "paused")
            assert container.call(TANDEM, "resume", name).returncode == 0
            assert container.call(TANDEM, "explain", name).returncode == 0
            assert name in container.call(TANDEM, "events").stdout
        assert a.call(TANDEM, "evict", "job-of-a").returncode == 0
        one.communicate()
        assert has(world.jobs(), "job-of-b"), world.jobs()
        assert world.call(TANDEM, "evict", "job-of-b").returncode == 0
        two.communicate()
        nothing_is_left(world)


def a_supervisor_in_a_container_restarts_its_job():
    with World() as world, Container(world) as container:
        world.call(TANDEM, "run", "--", "true")
        program = world.start(*container.inside, TANDEM, "run", "--restart", "always", "--name",
                              "again", "--backend", "swap", "--", TRAIN, *HELD)
        until(lambda: has(world.jobs(), "again"), "registered")
        before = has(world.jobs(), "again")[0]["pid"]
        done = container.call(TANDEM, "restart", "again")
        assert done.returncode == 0, done
        until(lambda: [j for j in has(world.jobs(), "again") if j["pid"] != before], "again")
        assert container.call(TANDEM, "evict", "again").returncode == 0
        program.communicate()


def before_linux_6_5_root_of_a_container_is_none_either():
    with World() as world, Container(world) as container:
        world.environment["LD_PRELOAD"] = NO_PEERPIDFD
        world.call(TANDEM, "run", "--", "true")
        world.environment.pop("LD_PRELOAD")
        alone = world.start(TANDEM, "run", "--name", "alone", "--", TRAIN, *HELD)
        until(lambda: has(world.jobs(), "alone"), "registered")
        is_refused(container.call(TANDEM, "stop", "--force"), "owner")
        is_none_of_its(container, "alone")
        assert world.call(TANDEM, "evict", "alone").returncode == 0
        alone.communicate()


def a_daemon_in_a_namespace_of_its_own_obeys_its_own_root_alone():
    """As a DaemonSet without hostPID: peers outside are invisible to it."""
    with World() as world, Container(world) as container:
        container.call(TANDEM, "run", "--", "true")
        alone = world.start(TANDEM, "run", "--name", "alone", "--", TRAIN, *HELD)
        until(lambda: [j for j in container.jobs() if j.get("name") == "alone"], "registered")
        is_refused(world.call(TANDEM, "stop", "--force"), "owner")
        is_refused(world.call(TANDEM, "evict", "alone"), "no job")
        assert "alone" not in world.call(TANDEM, "ps", "--json").stdout
        assert container.call(TANDEM, "set", "alone", "weight=3").returncode == 0
        assert container.call(TANDEM, "stop", "--force").returncode == 0
        alone.kill()
        alone.communicate()


run_cases([
    a_program_in_a_pid_namespace_is_known_by_its_pid_here,
    a_program_with_a_proc_of_its_own_is_known_by_its_pid_here,
    a_program_in_a_user_namespace_is_its_users,
    a_program_that_is_nobody_in_its_user_namespace_is_its_users,
    only_the_sockets_directory_is_mounted,
    without_the_socket_a_program_runs_as_without_a_daemon,
    root_of_a_container_is_no_administrator,
    root_of_two_containers_is_two_users,
    a_supervisor_in_a_container_restarts_its_job,
    before_linux_6_5_root_of_a_container_is_none_either,
    a_daemon_in_a_namespace_of_its_own_obeys_its_own_root_alone,
])
