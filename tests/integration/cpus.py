"""The CPUs of besteffort jobs: a made-up tree of control groups takes what the daemon writes. TAP
on stdout; argument: the build."""
import os

from world import SOFTGPU, TANDEM, TRAIN, Skip, World, run_cases, until

LONG = [TRAIN, "--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "100000"]


def own_group():
    """The group of this test, and so of the daemon and its jobs."""
    with open("/proc/self/cgroup") as f:
        paths = [line.strip().split("::")[1] for line in f if line.startswith("0::")]
    if not paths or ".." in paths[0]:
        raise Skip("no unified control group can be seen here")
    if any(word in paths[0] for word in ("docker", "slurm", "kubepods", "containerd", "libpod",
                                         "crio", "lxc")):
        raise Skip("this test is in a container, and whose processes are there is left alone")
    return paths[0].rstrip("/")


def make_group(path):
    os.makedirs(path, exist_ok=True)
    for name in ("cgroup.procs", "cpuset.cpus", "cgroup.subtree_control"):
        open(f"{path}/{name}", "w").close()


def text_of(path):
    with open(path) as f:
        return f.read()


def the_processes_of_besteffort_jobs_are_moved_and_no_others():
    group = own_group()
    with World() as world:
        root = f"{world.directory}/cgroup"
        own = f"{root}{group}"
        make_group(own)
        for part in ("tandemd", "besteffort", "jobs"):
            make_group(f"{own}/{part}")
        with open(f"{own}/cgroup.controllers", "w") as f:
            f.write("cpuset cpu\n")
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", f"cgroup.root={root}", "besteffort.cpus=0").returncode == 0
        until(lambda: text_of(f"{own}/besteffort/cpuset.cpus") == "0\n", "the CPUs are set")
        assert text_of(f"{own}/cgroup.subtree_control") == "+cpuset"
        assert text_of(f"{own}/tandemd/cgroup.procs") == f"{world.daemon_pid()}\n"
        programs = {}
        for kind in ("online", "besteffort"):
            programs[kind] = world.start(TANDEM, "run", "--class", kind, "--", *LONG)
            until(lambda: any(j["class"] == kind for j in world.jobs()), f"the {kind} job")
        pids = {j["class"]: j["pid"] for j in world.jobs()}
        moved = f"{own}/besteffort/cgroup.procs"
        until(lambda: text_of(moved).split() == [str(pids["besteffort"])], "it is moved")
        assert "ok       cpus       besteffort jobs run on CPUs 0" in world.call(
            SOFTGPU, "run", "--", TANDEM, "doctor").stdout
        for program in programs.values():
            program.kill()
            program.communicate()


def where_the_group_is_not_the_daemons_a_sentence_says_so_and_nothing_is_moved():
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        root = f"{world.directory}/nowhere"
        assert world.call(TANDEM, "set", f"cgroup.root={root}", "besteffort.cpus=0").returncode == 0
        said = world.call(SOFTGPU, "run", "--", TANDEM, "doctor")
        assert said.returncode == 1, said
        assert "besteffort.cpus=0: the daemon cannot divide its control group" in said.stdout, said
        assert "besteffort jobs run on all CPUs" in said.stdout, said
        done = world.call(TANDEM, "set", "besteffort.cpus=3-1")
        assert done.returncode != 0 and '"3-1"' in done.stderr and "0-3,8" in done.stderr, done
        assert world.call(TANDEM, "set", "besteffort.cpus=none").returncode == 0
        assert "besteffort.cpus" not in world.call(SOFTGPU, "run", "--", TANDEM, "doctor").stdout


run_cases([the_processes_of_besteffort_jobs_are_moved_and_no_others,
           where_the_group_is_not_the_daemons_a_sentence_says_so_and_nothing_is_moved])
