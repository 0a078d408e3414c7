"""A Slurm cluster for tests: munge, slurmctld and slurmd in a private folder."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys

from world import BUILD, LIBRARY, SOFTGPU, TANDEM, World, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import slurm_conf  # noqa: E402

PLUGINS = f"{BUILD}/src/slurm"

def why_not():
    """What is missing here, or None."""
    return slurm_conf.why_not(PLUGINS, ("spank_tandem.so", "job_submit_tandem.so"))


class Slurm(World):
    """A world with a Slurm cluster, whose nodes have the software GPU."""

    def __init__(self, *softgpu_options, nodes=("node1",), count=100, submit="tandem", timeout=300,
                 plugin="required"):
        super().__init__(*softgpu_options)
        self.names, self.count = nodes, count  # count: of the resource, on each node
        self.submit, self.timeout = submit, timeout
        self.plugin = plugin  # the first word of plugstack.conf

    def __enter__(self):
        super().__enter__()
        self.servers = []
        try:
            self.up()
        except BaseException as problem:
            self.__exit__(type(problem))
            raise
        return self

    def up(self):
        b = self.directory
        slurm_conf.make_folders(b, self.names)
        shutil.copy(f"{PLUGINS}/job_submit_{self.submit}.so", f"{b}/lib")
        self.write("epilog", f"#!/bin/sh\nTANDEM={TANDEM} TANDEM_SOCKET="
                   f"{self.environment['TANDEM_SOCKET']} exec {os.path.dirname(__file__)}/"
                   "../../packaging/slurm/epilog\n")
        os.chmod(f"{b}/etc/epilog", 0o755)
        port, *ports = slurm_conf.free_ports(1 + len(self.names))
        self.write("slurm.conf", slurm_conf.conf(b, port, [
            f"SlurmdTimeout={self.timeout}", "SchedulerType=sched/builtin",
            "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0",
            "GresTypes=tandem", f"JobSubmitPlugins={self.submit}",
            f"PlugStackConfig={b}/etc/plugstack.conf",
            *(slurm_conf.node(name, port, 8, f"tandem:{self.count}") + f" Feature=on_{name}"
              for name, port in zip(self.names, ports)),
            f"PartitionName=first Nodes={self.names[0]} MaxTime=INFINITE State=UP"]))
        self.write("gres.conf", "AutoDetect=off\n"
                   f"Name=tandem Count={self.count} Flags=CountOnly\n")
        self.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.write("plugstack.conf", f"{self.plugin} {PLUGINS}/spank_tandem.so lib={LIBRARY} "
                   f"socket={self.environment['TANDEM_SOCKET']} tandem={TANDEM}"
                   f"{' sched=yes' if 'brain' in self.submit else ''}\n")
        self.environment["SLURM_CONF"] = f"{b}/etc/slurm.conf"
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        # One that serves before any job comes.
        assert not self.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode
        self.serve(*slurm_conf.munged(b))
        until(lambda: os.path.exists(f"{b}/run/munge.socket"), "munged serves")
        self.serve("slurmctld", "-D")
        for name in self.names:
            self.serve("slurmd", "-D", "-N", name, log=f"slurmd.{name}")
        until(lambda: self.call("sinfo", "-h", "-N", "-p", "main", "-o", "%t").stdout.split()
              == ["idle"] * len(self.names), "the nodes are up")

    def write(self, name, text):
        with open(f"{self.directory}/etc/{name}", "w") as f:
            f.write(text)

    def serve(self, *command, log=None):
        """Starts a server, which ends with the world, and returns its process."""
        name = log or os.path.basename(command[0])
        with open(f"{self.directory}/log/{name}.out", "a") as out:
            self.servers.append(subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out))
        return self.servers[-1]

    def __exit__(self, kind, *rest):
        if kind:
            for name in ("slurmctld.log", "slurmd.node1.log", "slurmd.node1.out", "munged.out",
                         "tandem-sched.out"):
                path = f"{self.directory}/log/{name}"
                if os.path.exists(path):
                    with open(path) as f:
                        print(f"# {name}\n# " + f.read()[-6000:].replace("\n", "\n# "))
        self.call("scancel", "--user=root")
        for server in reversed(self.servers):
            server.terminate()
        for server in self.servers:
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        self.end_steps()
        super().__exit__(kind, *rest)

    def end_steps(self):
        """Steps of jobs outlive slurmd: whatever has this world's slurm.conf is ended."""
        for pid in slurm_conf.processes_with(self.environment.get("SLURM_CONF", self.directory)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def srun(self, *arguments):
        return self.call(SOFTGPU, "run", "--", "srun", *arguments)

    def begin(self, *arguments):
        return self.start("srun", *arguments)

    def state(self, job):
        done = self.call("squeue", "-h", "-j", str(job), "-o", "%T %r")
        return done.stdout.strip()
