"""Programs in namespaces of their own, as containers run them: the daemon's socket directory is
mounted, and the kernel tells who connects. TAP on stdout; argument: the build."""
from world import *

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


run_cases([
    a_program_in_a_pid_namespace_is_known_by_its_pid_here,
    a_program_with_a_proc_of_its_own_is_known_by_its_pid_here,
    a_program_in_a_user_namespace_is_its_users,
    a_program_that_is_nobody_in_its_user_namespace_is_its_users,
    only_the_sockets_directory_is_mounted,
    without_the_socket_a_program_runs_as_without_a_daemon,
])
