#!/usr/bin/env python3
"""--tandem in a real Slurm: munge, slurmctld and slurmd in a private folder, with the software GPU.
TAP. usage: slurm.py BUILD [CASE]..."""
import json
import os
import shutil
import socket
import subprocess

from world import (BUILD, DEADLINE_S, LARGE, SMALL, SOFTGPU, TRAIN, LIBRARY, TANDEM, Skip, World,
                   run_cases, until)

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
JobSubmitPlugins=tandem
Epilog={epilog}
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=8 Sockets=1 \
CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1000 Gres=tandem:100 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


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
    """A world with one node of a Slurm cluster, which has the software GPU."""

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
        for folder in ("run", "state", "spool/node1", "log", "etc", "lib"):
            os.makedirs(f"{b}/{folder}", mode=0o755)
        os.chmod(b, 0o755)
        with open(f"{b}/etc/munge.key", "wb") as f:
            f.write(os.urandom(128))
        os.chmod(f"{b}/etc/munge.key", 0o600)
        shutil.copy(f"{PLUGINS}/job_submit_tandem.so", f"{b}/lib")
        self.write("epilog", f"#!/bin/sh\nTANDEM={TANDEM} TANDEM_SOCKET="
                   f"{self.environment['TANDEM_SOCKET']} exec {os.path.dirname(__file__)}/"
                   "../../packaging/slurm/epilog\n")
        os.chmod(f"{b}/etc/epilog", 0o755)
        self.write("slurm.conf", CONF.format(
            b=b, host=socket.gethostname(), port=free_port(), node_port=free_port(),
            plugins=SLURM_PLUGINS, epilog=f"{b}/etc/epilog"))
        self.write("gres.conf", "AutoDetect=off\nName=tandem Count=100 Flags=CountOnly\n")
        self.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.write("plugstack.conf", f"required {PLUGINS}/spank_tandem.so lib={LIBRARY} "
                   f"socket={self.environment['TANDEM_SOCKET']} tandem={TANDEM}\n")
        self.environment["SLURM_CONF"] = f"{b}/etc/slurm.conf"
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        # One that serves before any job comes.
        assert not self.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode
        self.serve("munged", "--foreground", "--force", f"--key-file={b}/etc/munge.key",
                   f"--socket={b}/run/munge.socket", f"--pid-file={b}/run/munged.pid",
                   f"--log-file={b}/log/munged.log", f"--seed-file={b}/run/munged.seed")
        until(lambda: os.path.exists(f"{b}/run/munge.socket"), "munged serves")
        self.serve("slurmctld", "-D")
        self.serve("slurmd", "-D", "-N", "node1")
        until(lambda: "idle" in self.call("sinfo", "-h", "-o", "%t").stdout, "the node is up")

    def write(self, name, text):
        with open(f"{self.directory}/etc/{name}", "w") as f:
            f.write(text)

    def serve(self, *command):
        with open(f"{self.directory}/log/{command[0]}.out", "w") as out:
            self.servers.append(subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out))

    def __exit__(self, kind, *rest):
        if kind:
            for name in ("slurmctld.log", "slurmd.node1.log", "slurmd.out", "munged.out"):
                path = f"{self.directory}/log/{name}"
                if os.path.exists(path):
                    with open(path) as f:
                        print(f"# {name}\n# " + f.read()[-3000:].replace("\n", "\n# "))
        self.call("scancel", "--user=root")
        for server in reversed(self.servers):
            server.terminate()
        for server in self.servers:
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        super().__exit__(kind, *rest)

    def srun(self, *arguments):
        return self.call(SOFTGPU, "run", "--", "srun", *arguments)

    def begin(self, *arguments):
        return self.start("srun", *arguments)

    def state(self, job):
        done = self.call("squeue", "-h", "-j", str(job), "-o", "%T %r")
        return done.stdout.strip()


def slurm(*softgpu_options):
    missing = why_not()
    if missing:
        raise Skip(missing)
    return Slurm(*softgpu_options)


def variables_of(world, *options):
    done = world.srun(*options, "env")
    assert not done.returncode, done
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def a_job_has_the_settings_that_it_asked_for():
    with slurm() as world:
        plain = variables_of(world)
        assert "TANDEM_MEM" not in plain and LIBRARY not in plain.get("LD_PRELOAD", "")
        half = variables_of(world, "--tandem=0.5", "--job-name=half")
        assert half["TANDEM_MEM"] == "50%" and half["TANDEM_WEIGHT"] == "50"
        assert half["TANDEM_NAME"] == "half" and half["TANDEM_JOB"].startswith("slurm.")
        assert half["LD_PRELOAD"].split(":")[0] == LIBRARY, half["LD_PRELOAD"]
        set_ = variables_of(world, "--tandem=0.5,mem=24Mi,class=guaranteed,slack=2%")
        assert set_["TANDEM_MEM"] == "24Mi" and set_["TANDEM_CLASS"] == "guaranteed"
        assert set_["TANDEM_SLACK"] == "2%" and set_["TANDEM_WEIGHT"] == "50"


def a_job_sees_all_gpus_and_uses_as_many_as_it_asked_for():
    with slurm("--gpus", "2") as world:
        known = [gpu["uuid"] for gpu in json.loads(world.call(TANDEM, "gpu", "--json").stdout)]
        assert len(known) == 2, known
        half = variables_of(world, "--tandem=0.5")
        assert half["TANDEM_GPUS"].split(",") == known and half["TANDEM_GPU_COUNT"] == "1", half


def bad_values_are_refused_and_quoted():
    with slurm() as world:
        for command in (["srun", "true"], ["salloc", "true"], ["sbatch", "--wrap=true"]):
            for value, quoted in (("1.5", '"1.5"'), ("0.5,mem=8x", '"8x"'),
                                  ("0.5,memory=8Gi", '"memory=8Gi"'), ("", '""')):
                done = world.call(command[0], f"--tandem={value}", *command[1:])
                assert done.returncode and "--tandem: " in done.stderr, done
                assert quoted in done.stderr, done
        # Who goes round the plugin of the client is refused by slurmctld.
        for gres in ("tandem:50", "gres:tandem:50"):
            done = world.call("srun", "--tandem=0.5", f"--gres={gres}", "true")
            assert done.returncode and "counted by the option --tandem itself" in done.stderr, done


def the_memory_limit_holds_inside_the_job():
    with slurm() as world:
        done = world.srun("--tandem=0.5,mem=24Mi", TRAIN, *SMALL)
        assert not done.returncode and '"checksum_ok": true' in done.stdout, done
        done = world.srun("--tandem=0.5,mem=24Mi", TRAIN, *LARGE)
        assert done.returncode and "memory" in done.stderr.lower(), done
        events = world.events()
        assert any(e.get("name") == "train" or "slurm." in str(e) for e in events), events


def tandem_knows_the_job_by_its_number():
    with slurm() as world:
        process = world.begin("--tandem=0.3,class=guaranteed", "--job-name=mine", TRAIN, "--size",
                              "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "100000")
        until(world.jobs, "tandemd sees the job")
        row = world.jobs()[0]
        job = row["job"].removeprefix("slurm.")
        assert row["name"] == "mine" and row["class"] == "guaranteed", row
        assert "tandem:30" in world.call("scontrol", "show", "job", job).stdout
        world.call("scancel", job)
        process.communicate(timeout=DEADLINE_S)
        until(lambda: not world.jobs(), "nothing of it is left")


def shares_beyond_the_gpu_wait():
    with slurm() as world:
        first = world.call("sbatch", "--parsable", "--tandem=0.6", "--output=/dev/null",
                           "--wrap=sleep 1000").stdout.strip()
        until(lambda: world.state(first).startswith("RUNNING"), "the first one runs")
        second = world.call("sbatch", "--parsable", "--tandem=0.6", "--output=/dev/null",
                            "--wrap=sleep 1000").stdout.strip()
        until(lambda: "Resources" in world.state(second), "squeue says why the second one waits")
        third = world.call("sbatch", "--parsable", "--tandem=0.4", "--output=/dev/null",
                           "--wrap=true").stdout.strip()
        assert third
        world.call("scancel", first)
        until(lambda: world.state(second).startswith("RUNNING"), "the second one has its place")
        until(lambda: not world.state(third), "0.4 fits beside 0.6")


def a_batch_script_may_say_it_itself():
    with slurm() as world:
        out = f"{world.directory}/out"
        world.write("job.sh", f"#!/bin/sh\n#SBATCH --tandem=0.25,mem=16Mi\n#SBATCH -o {out}\n"
                    "echo $TANDEM_MEM $TANDEM_JOB slurm.$SLURM_JOB_ID\n"
                    "srun env | grep TANDEM_JOB=\n")
        job = world.call("sbatch", "--parsable", f"{world.directory}/etc/job.sh").stdout.strip()
        until(lambda: not world.state(job), "it has ended")
        until(lambda: os.path.exists(out), "its output is there")
        with open(out) as f:
            lines = f.read().split()
        assert lines == ["16Mi", f"slurm.{job}", f"slurm.{job}", f"TANDEM_JOB=slurm.{job}"], lines


def what_outlives_a_job_is_ended_by_the_epilog():
    with slurm() as world:
        job = world.call(
            SOFTGPU, "run", "--", "sbatch", "--parsable", "--tandem=0.5", "--output=/dev/null",
            f"--wrap=setsid {TRAIN} --size 8m --gpu 10ms --cpu 5ms --steps 1000000 & sleep 1; "
            "exit 0").stdout.strip()
        until(lambda: world.jobs(), "tandemd sees it")
        until(lambda: not world.state(job), "the job has ended")
        until(lambda: not world.jobs(), "and nothing of it is left")


def jobs_run_on_without_the_plugin():
    with slurm() as world:
        process = world.begin("--tandem=0.5", TRAIN, "--size", "8m", "--gpu", "10ms", "--cpu",
                              "5ms", "--steps", "60")
        until(world.jobs, "tandemd sees the job")
        world.write("plugstack.conf", "")
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0 and '"checksum_ok": true' in out, (out, err)
        done = world.call("srun", "--tandem=0.5", "true")
        assert done.returncode and "unrecognized option" in done.stderr, done


run_cases([a_job_has_the_settings_that_it_asked_for,
           a_job_sees_all_gpus_and_uses_as_many_as_it_asked_for, bad_values_are_refused_and_quoted,
           the_memory_limit_holds_inside_the_job, tandem_knows_the_job_by_its_number,
           shares_beyond_the_gpu_wait, a_batch_script_may_say_it_itself,
           what_outlives_a_job_is_ended_by_the_epilog, jobs_run_on_without_the_plugin], at_once=3)
