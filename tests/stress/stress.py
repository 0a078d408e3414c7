"""Programs that check every word of their memory, beside kills and stops of them and of the daemon,
GPUs that are lost, and settings at random. TAP on stdout.

usage: stress.py BUILD [--seconds N] [--seed N]

The printed seed chooses the actions, not their times.

Invariants at each moment: no job has a byte more on a GPU than its hard limit, by the software
GPU's own account; the daemon dies only when it is killed; some program makes progress. Every few
seconds all may finish. Then each program that was left alone has ended well, nothing of any is left
in daemon or software GPU, and neither has more descriptors or noticeably more memory than the time
before.

TANDEM_TEST_DAEMON: a daemon that a sanitizer watches. TANDEM_STRESS_BUILD: the build of the
programs and of the library that they load.
"""
import argparse
import contextlib
import ctypes
import json
import mmap
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from world import *
from freezer import ROOT as FREEZES, Frozen

PROGRAMS = os.path.abspath(os.environ.get("TANDEM_STRESS_BUILD", BUILD))
WORKER = f"{PROGRAMS}/tests/stress/stress_worker"
MIB = 1 << 20
GPUS, CONTEXT_BYTES = 2, MIB
AT_ONCE, EPOCH_S, LATE = 5, 10, 5
SETTLE_S = 3 * DEADLINE_S  # also of those that get on, but slowly
# The share of lost GPUs among all actions; children of a program that fails may stay behind.
LOSSES = float(os.environ.get("TANDEM_STRESS_LOSSES", "0.02"))
# Several of a word: the likelier. worker.c says what the letters are.
BACKENDS = os.environ.get("TANDEM_STRESS_BACKENDS", "plain swap swap swap managed auto").split()
KINDS = os.environ.get("TANDEM_STRESS_KINDS", "p pt pt ptv pta ptm ptg ptl pgl").split()
# The slack where the device memory of an allocation is not known in advance: cuMemAlloc's rounding
# and packing, pages of unified memory, a pool's growth, the rounding of graphs' memory and of
# variables.
LOOSE_BYTES = 12 * MIB
# The first variables of each process count as code does (outside/libraries.c).
CODE_BYTES = 2 * MIB
# That caches may still take after the first round; a sanitizer keeps what is freed.
GROWTH_BYTES = (24 if TANDEMD.startswith(BUILD) else 1024) * MIB
PF_EXITING = 4  # among the flags of /proc/PID/stat


class Accounts:
    """What each process has on each GPU, in bytes, by NVML's calls."""

    class Row(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong),
                    ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]

    def __init__(self, world):
        os.environ["SOFTGPU_DIR"] = world.environment["SOFTGPU_DIR"]
        self.nvml = ctypes.CDLL(f"{BUILD}/softgpu/nvml/libnvidia-ml.so.1")
        assert self.nvml.nvmlInit_v2() == 0
        self.devices = []
        for index in range(GPUS):
            device = ctypes.c_void_p()
            assert self.nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
            self.devices.append(device)

    def rows(self, gpu):
        room = (self.Row * 256)()
        count = ctypes.c_uint(256)
        assert (self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(self.devices[gpu],
                                                                  ctypes.byref(count), room)
                == 0)
        return [(row.pid, row.bytes) for row in room[: count.value]]


class Program:
    """A worker with its children: one job, one process group."""

    def __init__(self, world, number, chance):
        self.seed, self.name = chance.randrange(1 << 32), f"s{number}"
        self.path, self.errors = (f"{world.directory}/{self.name}",
                                  f"{world.directory}/{self.name}.err")
        # Alone on a GPU each fits, with its contexts.
        self.limit = chance.choice([8, 16, 30, 48, 60]) * MIB
        self.signal, self.alone, self.lost, self.stopped, self.frozen = (None, False, False, False,
                                                                         None)
        backend, kinds = chance.choice(BACKENDS), chance.choice(KINDS)
        # By cuMemAlloc what is a little more than 1 MiB takes 2.
        self.slack = (0 if backend == "swap" and set(kinds) <= set("ptv")
                      else LOOSE_BYTES + (0 if backend == "swap" else self.limit))
        options = ["--name", self.name, "--backend", backend, "--class",
                   chance.choice(["online", "guaranteed", "besteffort", "besteffort"]), "--weight",
                   str(chance.randrange(1, 6))]
        options += ["--mem", str(self.limit)]
        options += ["--duty", chance.choice(["20%", "60%"])] if chance.random() < 0.2 else []
        command = [SOFTGPU, "run", "--", TANDEM, "run", *options, "--", WORKER, str(self.seed),
                   str(chance.randrange(10, 300)), self.path, kinds]
        self.command = " ".join(command[3:])
        with open(self.path, "wb") as f:
            f.truncate(4096)
        self.counts = mmap.mmap(os.open(self.path, os.O_RDWR), 4096)
        with open(self.errors, "wb") as errors:
            environment = dict(world.environment, TANDEM_LIB=f"{PROGRAMS}/src/preload/libtandem.so",
                               TANDEM_HOST_FULL=chance.choice(["stay", "stay", "refuse"]))
            self.process = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors,
                                            start_new_session=True)

    def count(self):
        """turns, verified bytes, refusals, launches, processes, forks"""
        return struct.unpack_from("6Q", self.counts)

    def end(self, how):
        if self.process.poll() is not None:
            return
        self.signal = how
        os.killpg(self.process.pid, how) if how == signal.SIGKILL else self.process.send_signal(how)

    def check_end(self):
        code = self.process.returncode
        good = (code == 0 or (self.signal and code in (-signal.SIGKILL, -signal.SIGTERM))
                or (self.lost and code > 0))
        with open(self.errors, errors="replace") as f:
            said = f.read()
        assert good, f"exit {code} of: {self.command}\n{said[-3000:]}"
        assert self.lost or "words of" not in said, said[-3000:]

    def stop(self):
        """With its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGSTOP)
            self.stopped = True

    def freeze(self):
        """The same by a control group, of those that are there."""
        if self.process.poll() is None and not self.frozen:
            self.frozen = Frozen([pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                                  if group_of(pid) == self.process.pid])
            self.stopped = True

    def go_on(self):
        """Also children of one that has ended."""
        if self.frozen:
            self.frozen.thaw()
            self.frozen = None
        if self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGCONT)
            self.stopped = False


def stat_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def is_alive(pid):
    """A process that ends closes its connections one after the other: to the daemon and to the GPU,
    in either order."""
    try:
        stat = stat_of(pid)
        return stat[0] not in "ZX" and not int(stat[6]) & PF_EXITING
    except (FileNotFoundError, ProcessLookupError):
        return False


def group_of(pid):
    try:
        return int(stat_of(pid)[2])
    except (FileNotFoundError, ProcessLookupError):
        return None


def resources(pid):
    """Open descriptors, bytes in memory."""
    with open(f"/proc/{pid}/statm") as f:
        return len(os.listdir(f"/proc/{pid}/fd")), int(f.read().split()[1]) * mmap.PAGESIZE


class Stress:
    def __init__(self, world, seed):
        self.world, self.chance, self.accounts = world, random.Random(seed), Accounts(world)
        self.programs, self.number, self.done = [], 0, {}
        self.totals, self.began = [0] * 6, time.monotonic()
        self.last_turns, self.last_progress = -1, time.monotonic()
        with open(f"{world.environment['SOFTGPU_DIR']}/lock") as f:
            self.server = int(f.read())
        self.daemon, self.before = None, {}
        self.restart_daemon()

    def note(self, what):
        self.done[what] = self.done.get(what, 0) + 1

    def restart_daemon(self):
        """A dying daemon may still have its socket open: then the next attempt starts another."""
        until(lambda: self.world.call(TANDEM, "run", "--",
                                      "true").returncode == 0 and self.find_daemon(),
              "there is a daemon again")

    def find_daemon(self):
        """The lock names the last one until there is another."""
        try:
            pid = self.world.daemon_pid()
        except (FileNotFoundError, ValueError):
            return False
        self.daemon = pid if is_alive(pid) else None
        return self.daemon

    def check_daemon(self):
        if self.daemon and not is_alive(self.daemon):
            raise AssertionError(f"the daemon {self.daemon} is dead, and nobody has killed it")
        if not self.daemon:
            self.find_daemon()  # a program may have started one

    def check_limits(self):
        limited = {p.process.pid: p for p in self.programs}
        for gpu in range(GPUS):
            jobs = {}
            for pid, used in self.accounts.rows(gpu):
                program = limited.get(group_of(pid))
                if program and is_alive(pid):
                    jobs.setdefault(program, []).append((pid, used - CONTEXT_BYTES))
            for program, members in jobs.items():
                # Without a daemon nobody knows the others, so each process keeps the limit for
                # itself.
                most = (max(used for _, used in members) if program.alone
                        else sum(used for _, used in members))
                slack = program.slack and program.slack + CODE_BYTES * len(members)
                assert most <= program.limit + slack, (
                    f"GPU {gpu}: {members} of {program.limit} bytes: {program.command}")
                self.note("limits seen to hold" if program.slack
                          else "limits seen to hold to the byte")

    def check_progress(self):
        turns = self.totals[0] + sum(p.count()[0] for p in self.programs)
        if turns != self.last_turns or not self.programs:
            self.last_turns, self.last_progress = turns, time.monotonic()
        assert (time.monotonic()
                < self.last_progress
                + DEADLINE_S), f"nobody has got on: {[p.command for p in self.programs]}"

    def check(self):
        self.check_daemon()
        self.check_limits()
        self.reap()
        self.check_progress()

    def reap(self):
        for program in [p for p in self.programs if p.process.poll() is not None]:
            self.programs.remove(program)
            program.go_on()
            self.totals = [a + b for a, b in zip(self.totals, program.count())]
            program.counts.close()
            program.check_end()
            self.note("killed" if program.signal else "ended by themselves")

    def begin(self):
        self.number += 1
        self.programs.append(Program(self.world, self.number, self.chance))
        if not self.daemon:
            self.programs[-1].alone = True

    def tell(self, *arguments):
        """A daemon or a job that has gone refuses; in any case the command ends by itself."""
        done = self.world.call(TANDEM, *arguments)
        assert done.returncode >= 0, (arguments, done)
        self.note(f"{arguments[0]} {'done' if done.returncode == 0 else 'refused'}")

    def set_daemon(self):
        chance = self.chance
        self.tell("set",
                  chance.choice(["policy=tandem", "policy=nvshare", "policy=timeshare",
                                 "policy=antman", "policy=tandem", "enabled=on", "enabled=off",
                                 "quantum.min=1ms", "quantum.min=100ms", "quantum=20ms",
                                 "quantum=500ms", "swap.share=1%", "swap.share=50%",
                                 "swap.share.long=90%", "quantum.long=50ms", "window=0",
                                 "window=2ms", "host.limit=none", "host.limit=20m",
                                 "host.limit=100m", "drain.deadline=20ms", "drain.deadline=15s",
                                 "gpu.sample=10ms", "gpu.sample=1s"]))

    def job_of(self, program):
        done = self.world.call(TANDEM, "ps", "--json")
        jobs = ({row["name"]: row["job"] for row in json.loads(done.stdout)} if done.returncode == 0
                else {})
        return jobs.get(program.name)

    def set_job(self):
        program = self.chance.choice(self.programs)
        job = self.job_of(program)
        choices = ["class=online", "class=guaranteed", "class=besteffort", "weight=1", "weight=9",
                   "duty=10%", "duty=80%", "duty=none", "mem-soft=4m", "mem-soft=16m",
                   "mem-soft=none"]
        if not job:
            return
        if self.chance.random() < 0.4:
            more = program.limit + self.chance.choice([-4, 2, 6]) * MIB
            program.limit = max(program.limit, more)  # lowering takes nothing away
            self.tell("set", job, f"mem={max(more, 2 * MIB)}")
        else:
            self.tell("set", job, self.chance.choice(choices))

    def pause_or_resume(self):
        program = self.chance.choice(self.programs)
        job = self.job_of(program)
        if job:
            self.tell(self.chance.choice(["pause", "resume"]), job)

    def kill_daemon(self):
        if not self.daemon:
            return
        os.kill(self.daemon, signal.SIGKILL)
        until(lambda: not is_alive(self.daemon), "the daemon is dead")
        self.daemon = None
        for program in self.programs:
            program.alone = True
        self.note("daemons killed")
        if self.chance.random() < 0.7:
            self.restart_daemon()

    def stop_or_continue(self):
        """Seldom more than one of them at a time, or little would happen."""
        stopped = [p for p in self.programs if p.stopped]
        if stopped and self.chance.random() < 0.7:
            self.chance.choice(stopped).go_on()
        elif FREEZES and self.chance.random() < 0.4:
            self.chance.choice(self.programs).freeze()
            self.note("programs frozen")
        else:
            self.chance.choice(self.programs).stop()
            self.note("programs stopped")

    def stop_daemon(self):
        if not self.daemon:
            return
        seconds = self.chance.choice([0.01, 0.1, 0.1, 0.5, 0.5, 8])
        os.kill(self.daemon, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.daemon, signal.SIGCONT)
        self.note("daemons stopped")
        # Who waited has left it, and goes by its own limit.
        for program in self.programs if seconds > 4 else []:
            program.alone = True

    def lose_gpu(self):
        """Whoever is there may fail, as any program may whose GPU is gone; it comes back."""
        gpu = str(self.chance.randrange(GPUS))
        for program in self.programs:
            program.lost = program.alone = True
            program.go_on()
        self.world.call(SOFTGPU, "fault", "--gpu", gpu, "lost")
        time.sleep(self.chance.random() * 0.1)
        until(lambda: self.reap() or not [p for p in self.programs if not p.process.poll() is None],
              "those are gone that have noticed")
        self.world.call(SOFTGPU, "fault", "--gpu", gpu, "clear")
        self.note("GPUs lost")

    def act(self):
        chance, dice = self.chance, self.chance.random()
        if len(self.programs) < AT_ONCE:
            self.begin()
        if dice < 0.10:
            chance.choice(self.programs).end(signal.SIGKILL)
        elif dice < 0.13:
            chance.choice(self.programs).end(signal.SIGTERM)
        elif dice < 0.16:
            self.kill_daemon()
        elif dice < 0.30:
            self.set_daemon()
        elif dice < 0.50:
            self.set_job()
        elif dice < 0.56:
            self.pause_or_resume()
        elif dice < 0.66:
            self.stop_or_continue()
        elif dice < 0.68:
            self.stop_daemon()
        elif dice < 0.68 + LOSSES:
            self.lose_gpu()
        time.sleep(chance.random() * 0.04)  # programs run meanwhile

    def resume_all(self):
        """Children of who was killed, too."""
        for job in {row["job"] for row in self.world.jobs() if row["state"] == "paused"}:
            self.world.call(TANDEM, "resume", job)
        return True

    def settle(self):
        """Everybody may finish; then nothing is left."""
        for program in self.programs:
            program.go_on()
        if not self.daemon:
            self.restart_daemon()
        self.tell("set", "policy=tandem", "enabled=on", "quantum=200ms", "drain.deadline=15s",
                  "host.limit=none")
        end = time.monotonic() + SETTLE_S
        while self.programs:
            assert time.monotonic() < end, f"they never end: {[p.command for p in self.programs]}"
            self.resume_all()
            self.check()
            time.sleep(0.02)
        for gpu in range(GPUS):
            until(lambda: self.resume_all() and not self.accounts.rows(gpu),
                  "memory of the dead is freed")
        until(lambda: all(g["plain_bytes"] == 0 and g["managed_resident_bytes"] == 0
                          and g["contexts"] == 0
                          for g in self.gpus()), "GPUs are empty")
        until(lambda: self.world.jobs() == [], "jobs of the dead are gone")
        self.check_daemon()
        for name, pid in (("daemon", self.daemon), ("software GPU", self.server)):
            files, memory = self.before.setdefault(pid, resources(pid))
            # The last client may just be leaving; and a daemon is a client of the software GPU only
            # if it was started under it.
            until(lambda: resources(pid)[0] <= files + 1,
                  f"the {name} has no more than {files} descriptors")
            assert (resources(pid)[1]
                    <= memory
                    + GROWTH_BYTES), f"the {name} has {resources(pid)[1]} bytes, {memory} before"

    def gpus(self):
        return json.loads(self.world.call(SOFTGPU, "status", "--json").stdout)["gpus"]

    def has_done_all(self):
        turns, verified, _, launches = self.totals[:4]
        return bool(turns and verified and launches
                    and self.done.get("limits seen to hold to the byte"))

    def run(self, seconds):
        # A busy machine has until `patience` to do each thing once.
        patience = self.began + LATE * seconds
        while (time.monotonic() < self.began + seconds
               or (not self.has_done_all() and time.monotonic() < patience)):
            epoch = min(time.monotonic() + EPOCH_S, max(self.began + seconds, time.monotonic() + 1))
            while time.monotonic() < epoch:
                self.act()
                self.check()
            self.settle()
        names = ("turns", "bytes verified", "allocations refused", "launches", "processes", "forks")
        print("# " + ", ".join(f"{value} {name}" for name, value in zip(names, self.totals)))
        print("# " + ", ".join(f"{value} {name}" for name, value in sorted(self.done.items())))
        assert self.has_done_all(), f"it has not done everything: {self.totals}, {self.done}"

    def give_up(self):
        """Ends all processes, also those whose parent is gone. They are found by their environment,
        because a PID may belong to another process by now."""
        for program in self.programs:
            program.go_on()
        mark = f"SOFTGPU_DIR={self.world.directory}/gpu".encode()
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = mark in f.read().split(b"\0")
                if ours and pid not in (self.daemon, self.server):
                    os.kill(pid, signal.SIGKILL)
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"1..1\n# --seconds {options.seconds:g} --seed {options.seed}", flush=True)
    problem = None
    with World("--gpus", str(GPUS), "--memory", "96m") as world:
        stress = Stress(world, options.seed)
        try:
            stress.run(options.seconds)
        except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as what:
            problem = what
            world.describe()
        finally:
            stress.give_up()
    print(f"{'not ok' if problem else 'ok'} 1 - "
          "no_byte_is_wrong_or_beyond_a_limit_nothing_hangs_and_nothing_is_left", flush=True)
    if problem:
        print("# " + str(problem).replace("\n", "\n# "), flush=True)


main()
