"""A Slurm cluster of several nodes on this machine, each with software GPUs and a tandemd of its
own. Everything lies in one private folder, and all servers listen on loopback."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import endings
import slurm_conf

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("TANDEM_DEMO_BUILD", "build"))
BIN, EXAMPLES, PLUGINS = f"{BUILD}/bin", f"{BUILD}/examples", f"{BUILD}/src/slurm"
PER_GPU = 500  # of the resource "tandem": tandem-sched(8)
DEADLINE_S = 60

SCHEDULER = ["SchedulerType=sched/backfill", "SchedulerParameters=batch_sched_delay=0,"
             "sched_interval=1,sched_min_interval=0,bf_interval=1"]
EPILOG = """#!/bin/sh
TANDEM={bin}/tandem TANDEM_SOCKET={b}/$SLURMD_NODENAME/t/socket exec {root}/packaging/slurm/epilog
"""


def why_not():
    """A sentence that says what is missing here, or None."""
    return slurm_conf.why_not(PLUGINS, ("spank_tandem.so", "job_submit_tandem_brain.so",
                                        "tandem-sched"))


class Cluster:
    """shares: jobs get parts of GPUs, placed by tandem-sched with these options; None: whole GPUs,
    by Slurm alone."""

    def __init__(self, nodes, gpus, model, shares=None):
        self.names = [f"node{n + 1}" for n in range(nodes)]
        self.gpus, self.model, self.shares = gpus, model, shares
        self.directory = tempfile.mkdtemp(prefix="tandem-cluster-")
        self.servers = []
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("CUDA_", "SLURM_", "SBATCH_", "TANDEM_", "LD_"))}
        self.environment = dict(clean, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin",
                                SLURM_CONF=f"{self.directory}/etc/slurm.conf")

    def node_environment(self, name):
        b = f"{self.directory}/{name}"
        return dict(self.environment, SOFTGPU_DIR=f"{b}/gpu", TANDEM_SOCKET=f"{b}/t/socket",
                    TANDEM_LOCKS=f"{b}/locks", SLURM_CONF=f"{self.directory}/etc/{name}/slurm.conf")

    def __enter__(self):
        with endings.beginning(self):
            self.configure()
            for name in self.names:
                self.start_gpus(name)
            self.start_slurm()
        return self

    # --- files ---

    def write(self, name, text):
        with open(f"{self.directory}/etc/{name}", "w") as f:
            f.write(text)

    def configure(self):
        b = self.directory
        slurm_conf.make_folders(b, self.names)
        for folder in ("jobs", *(f"etc/{name}" for name in self.names),
                       *(f"{name}/dev" for name in self.names)):
            os.makedirs(f"{b}/{folder}", mode=0o755)
        for name in self.names:  # Slurm wants files to count GPUs by, and opens none of them
            for gpu in range(self.gpus):
                with open(f"{b}/{name}/dev/gpu{gpu}", "w"):
                    pass
        if self.shares is not None:
            shutil.copy(f"{PLUGINS}/job_submit_tandem_brain.so", f"{b}/lib")
        self.write("epilog", EPILOG.format(bin=BIN, b=b, root=ROOT))
        os.chmod(f"{b}/etc/epilog", 0o755)
        places = ("", *self.names)
        ports = dict(zip(places, slurm_conf.free_ports(len(places))))
        for name in places:
            self.configure_node(name, ports)

    def configure_node(self, name, ports):
        """Writes the files of a node, and with the name "" those of the controller. They differ in
        the socket of tandemd only."""
        b, count = self.directory, self.gpus * PER_GPU
        kind, gres = (("gpu", f"gpu:{self.gpus}") if self.shares is None
                      else ("tandem", f"tandem:{count}"))
        self.write(f"{name}/slurm.conf", slurm_conf.conf(b, ports[""], [
            *SCHEDULER, f"GresTypes={kind}", f"PlugStackConfig={b}/etc/{name}/plugstack.conf",
            *([] if self.shares is None else ["JobSubmitPlugins=tandem_brain"]),
            # So many processors that only GPUs are scarce.
            *(slurm_conf.node(each, ports[each], 64, gres) for each in self.names)]))
        lines = f"Name=tandem Count={count} Flags=CountOnly\n"
        if self.shares is None:
            lines = "".join(f"NodeName={each} Name=gpu File={b}/{each}/dev/gpu[0-{self.gpus - 1}]\n"
                            for each in self.names)
        self.write(f"{name}/gres.conf", f"AutoDetect=off\n{lines}")
        self.write(f"{name}/cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.write(f"{name}/plugstack.conf", "" if self.shares is None else
                   f"required {PLUGINS}/spank_tandem.so lib={BUILD}/lib/libtandem.so socket="
                   f"{b}/{name or self.names[0]}/t/socket tandem={BIN}/tandem sched=yes\n")

    # --- servers ---

    def start_gpus(self, name):
        environment = self.node_environment(name)
        self.call(f"{BIN}/softgpu", "start", "--model", self.model, "--gpus", str(self.gpus),
                  environment=environment)
        self.serve([f"{BIN}/softgpu", "run", "--", f"{BIN}/tandemd", "--set", "meter=on"],
                   f"tandemd.{name}", environment)

    def serve(self, command, log, environment=None):
        with open(f"{self.directory}/log/{log}.out", "w") as out:
            self.servers.append(subprocess.Popen(
                command, env=environment or self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True))
        return self.servers[-1]

    def start_slurm(self):
        b = self.directory
        self.serve(slurm_conf.munged(b), "munged")
        self.wait(lambda: os.path.exists(f"{b}/run/munge.socket"), "munged does not serve")
        self.serve(["slurmctld", "-D"], "slurmctld")
        for name in self.names:
            self.wait(lambda name=name: len(self.gpu_rows(name)) == self.gpus,
                      f"{name}: tandemd lists no GPUs")
            self.serve([f"{BIN}/softgpu", "run", "--", "slurmd", "-D", "-N", name],
                       f"slurmd.{name}", self.node_environment(name))
        self.wait(lambda: self.call("sinfo", "-h", "-N", "-o", "%t").split()
                  == ["idle"] * len(self.names), "the nodes do not come up")
        if self.shares is not None:
            self.serve([f"{PLUGINS}/tandem-sched", *self.shares], "tandem-sched")

    def wait(self, condition, problem):
        end = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{problem}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        """The ends of the servers' logs."""
        ends = []
        for name in sorted(os.listdir(f"{self.directory}/log")):
            with open(f"{self.directory}/log/{name}", errors="replace") as f:
                ends.append(f"--- {name}\n{f.read()[-1500:]}")
        return "\n".join(ends)

    def __exit__(self, *_):
        self.call("scancel", "--user=root")
        for name in self.names:
            self.call(f"{BIN}/tandem", "stop", "--force", environment=self.node_environment(name))
        for server in reversed(self.servers):
            server.terminate()
        for server in self.servers:
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        for pid in slurm_conf.processes_with(f"{self.directory}/"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for name in self.names:
            self.call(f"{BIN}/softgpu", "stop", environment=self.node_environment(name))
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- questions ---

    def call(self, *command, environment=None):
        return subprocess.run(command, env=environment or self.environment, capture_output=True,
                              text=True, check=False, timeout=DEADLINE_S).stdout

    def gpu_rows(self, name):
        return json.loads(self.call(f"{BIN}/tandem", "gpu", "--json",
                                    environment=self.node_environment(name)) or "[]")

    def gpu_counters(self):
        """What the software GPUs of all nodes have counted."""
        return [gpu for name in self.names for gpu in json.loads(self.call(
            f"{BIN}/softgpu", "status", "--json", environment=self.node_environment(name)))["gpus"]]

    def restarts(self):
        """{number of a job: how often it was queued again}."""
        words = [dict(word.split("=", 1) for word in line.split() if "=" in word)
                 for line in self.call("scontrol", "-o", "show", "job").splitlines()]
        return {job["JobId"]: int(job["Restarts"]) for job in words if "Restarts" in job}
