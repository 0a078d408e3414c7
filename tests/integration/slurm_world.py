"""A Slurm cluster for tests: munge, slurmctld and slurmd in a private folder."""
import os
import shutil
import signal
import socket
import subprocess

from world import BUILD, LIBRARY, SOFTGPU, TANDEM, World, until

PLUGINS = f"{BUILD}/src/slurm"
SLURM_PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={b}/run/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={port}
StateSaveLocation={b}/state
SlurmdSpoolDir={b}/spool/%n
SlurmctldPidFile={b}/run/slurmctld.pid
SlurmdPidFile={b}/run/slurmd.%n.pid
SlurmdTimeout={timeout}
KillWait=5
SlurmctldLogFile={b}/log/slurmctld.log
SlurmdLogFile={b}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
PlugStackConfig={b}/etc/plugstack.conf
GresTypes=tandem
PluginDir={plugins}:{b}/lib
JobSubmitPlugins={submit}
Epilog={epilog}
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

NODE = ("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 Sockets=1 "
        "CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1000 Gres=tandem:{count} State=UNKNOWN")


def why_not():
    """What is missing here, or None."""
    if os.geteuid():
        return "slurmd has to be started by root"
    for name in ("spank_tandem.so", "job_submit_tandem.so"):
        if not os.path.exists(f"{PLUGINS}/{name}"):
            return f"{name} was not built: libslurm-dev is missing"
    for program in ("munged", "slurmctld", "slurmd", "srun"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            return f"{program} is missing: install munge and slurm-wlm"
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


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
        spools = [f"spool/{name}" for name in self.names]
        for folder in ("run", "state", "log", "etc", "lib", *spools):
            os.makedirs(f"{b}/{folder}", mode=0o755)
        os.chmod(b, 0o755)
        with open(f"{b}/etc/munge.key", "wb") as f:
            f.write(os.urandom(128))
        os.chmod(f"{b}/etc/munge.key", 0o600)
        shutil.copy(f"{PLUGINS}/job_submit_{self.submit}.so", f"{b}/lib")
        self.write("epilog", f"#!/bin/sh\nTANDEM={TANDEM} TANDEM_SOCKET="
                   f"{self.environment['TANDEM_SOCKET']} exec {os.path.dirname(__file__)}/"
                   "../../packaging/slurm/epilog\n")
        os.chmod(f"{b}/etc/epilog", 0o755)
        self.write("slurm.conf", CONF.format(
            b=b, host=socket.gethostname(), port=free_port(), plugins=SLURM_PLUGINS,
            epilog=f"{b}/etc/epilog", submit=self.submit, timeout=self.timeout,
            nodes="\n".join(NODE.format(name=name, host=socket.gethostname(), count=self.count,
                                        port=free_port()) for name in self.names)))
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
        self.serve("munged", "--foreground", "--force", f"--key-file={b}/etc/munge.key",
                   f"--socket={b}/run/munge.socket", f"--pid-file={b}/run/munged.pid",
                   f"--log-file={b}/log/munged.log", f"--seed-file={b}/run/munged.seed")
        until(lambda: os.path.exists(f"{b}/run/munge.socket"), "munged serves")
        self.serve("slurmctld", "-D")
        for name in self.names:
            self.serve("slurmd", "-D", "-N", name, log=f"slurmd.{name}")
        until(lambda: self.call("sinfo", "-h", "-N", "-o", "%t").stdout.split()
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
        mine = f"SLURM_CONF={self.environment.get('SLURM_CONF')}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if mine in f.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue  # it has ended meanwhile

    def srun(self, *arguments):
        return self.call(SOFTGPU, "run", "--", "srun", *arguments)

    def begin(self, *arguments):
        return self.start("srun", *arguments)

    def state(self, job):
        done = self.call("squeue", "-h", "-j", str(job), "-o", "%T %r")
        return done.stdout.strip()
