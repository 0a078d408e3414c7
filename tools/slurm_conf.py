"""The configuration of a Slurm on this machine alone, for the demo and the tests: one folder, all
servers on loopback, several nodes on one host. Tried with Slurm 22.05."""
import os
import shutil
import socket

PLUGIN_FOLDERS = ("/usr/lib/x86_64-linux-gnu/slurm-wlm", "/usr/lib/aarch64-linux-gnu/slurm-wlm")
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
PluginDir={plugins}:{b}/lib
Epilog={b}/etc/epilog
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
{lines}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = ("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} Sockets=1 "
        "CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=1000 Gres={gres} State=UNKNOWN")


def why_not(folder, names):
    """A sentence that says what is missing for a Slurm with these of our programs, or None."""
    if os.geteuid():
        return "slurmd has to be started by root"
    for name in names:
        if not os.path.exists(f"{folder}/{name}"):
            return f"{name} was not built: libslurm-dev is missing"
    for program in ("munged", "slurmctld", "slurmd", "srun"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            return f"{program} is missing: install munge and slurm-wlm"
    if not any(map(os.path.isdir, PLUGIN_FOLDERS)):
        return f"Slurm's plugins are missing: there is no {' or '.join(PLUGIN_FOLDERS)}"
    return None


def free_ports(count):
    """So many ports, no two the same: of two nodes with one port, the first gets the other's jobs,
    and Slurm takes both for up."""
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def conf(b, port, lines):
    """The text of slurm.conf with these lines besides; b: the folder."""
    return CONF.format(b=b, host=socket.gethostname(), port=port, lines="\n".join(lines),
                       plugins=next(filter(os.path.isdir, PLUGIN_FOLDERS)))


def node(name, port, cpus, gres):
    """The line of a node."""
    return NODE.format(name=name, host=socket.gethostname(), port=port, cpus=cpus, gres=gres)


def make_folders(b, names):
    os.chmod(b, 0o755)
    for folder in ("run", "state", "log", "etc", "lib", *(f"spool/{name}" for name in names)):
        os.makedirs(f"{b}/{folder}", mode=0o755)
    with open(f"{b}/etc/munge.key", "wb") as f:
        f.write(os.urandom(128))
    os.chmod(f"{b}/etc/munge.key", 0o600)


def munged(b):
    """The command that serves at run/munge.socket."""
    return ["munged", "--foreground", "--force", f"--key-file={b}/etc/munge.key",
            f"--socket={b}/run/munge.socket", f"--pid-file={b}/run/munged.pid",
            f"--log-file={b}/log/munged.log", f"--seed-file={b}/run/munged.seed"]


def processes_with(prefix):
    """The numbers of the processes with a variable SLURM_CONF that begins so: steps of jobs outlive
    slurmd."""
    mine, found = f"SLURM_CONF={prefix}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if any(word.startswith(mine) for word in f.read().split(b"\0")):
                    found.append(int(pid))
        except OSError:
            continue  # it has ended meanwhile
    return found
