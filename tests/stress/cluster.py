#!/usr/bin/env python3
"""Slurm with two tandem-sched, an agent on each node and etcd, under a load of short batch jobs,
while they and the nodes' slurmd are killed at random and started again. No job may be lost, none
may start twice as the same placement, and no account may be over its quota. Every best-effort job
trains through tandem on the nodes' software GPU. What a job began must come to its end, with the
right sum, whoever was away meanwhile, unless the scheduler itself stopped it. Prints how long a
change of the leader and a start took. TAP.
usage: cluster.py BUILD [--kills N] [--seed N] [--gap SECONDS] [--timeline FILE]"""
import argparse
import collections
import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../integration")
from sched_world import cluster  # noqa: E402
from world import DEADLINE_S, SOFTGPU, TRAIN, Skip, tries, until  # noqa: E402

NODES, GPUS, QUOTA = 4, 2, 3
AT_ONCE = 14  # jobs that wait or run
LEASE_S, LEADER_S = 3, 15
JOBS = [("--tandem=0.5",), ("--tandem=0.25",), ("--tandem=1",),
        ("--tandem=1,class=guaranteed", "-A", "lab"), ("--tandem=2,class=guaranteed", "-A", "lab"),
        ("--tandem=0.5,class=guaranteed", "-A", "lab")]
OVER = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "BOOT_FAIL")


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else None


def trains(options):
    return not any("guaranteed" in word for word in options)


class Load:
    """Submits jobs, and watches what becomes of them."""

    def __init__(self, world, rng):
        self.world, self.rng = world, rng
        self.jobs, self.ended = {}, {}  # number: options; number: state
        self.of_tandem = set()  # which of them tandemd had
        self.wrong, self.most = [], 0
        self.ends = threading.Event()
        self.submits = True
        self.lines = f"{world.directory}/lines"

    def submit(self):
        options = self.rng.choice(JOBS)
        seconds = self.rng.choice((0.3, 1, 2, 4))
        work = (f"{TRAIN} --size 1m --gpu 5ms --cpu 15ms --steps {seconds / 0.02:.0f}"
                if trains(options) else f"sleep {seconds}")
        script = ("at=$(date +%s.%N); c=$(squeue -h -j $SLURM_JOB_ID -O admin_comment:200); "
                  f"echo start $SLURM_JOB_ID $at $c >> {self.lines}; "
                  f"out=$({work} 2>&1); echo end $SLURM_JOB_ID $? $c $out >> {self.lines}")
        done = self.world.call(SOFTGPU, "run", "--", "sbatch", "--parsable", "--output=/dev/null",
                               *options, f"--wrap={script}")
        if not done.returncode:
            self.jobs[done.stdout.strip()] = options

    def look(self):
        done = self.world.call("squeue", "-h", "-t", "all", "-O",
                               "jobid:12,state:16,account:16,admin_comment:200")
        if done.returncode:
            return
        used = 0
        for line in done.stdout.splitlines():
            job, state, account, comment = (line[:12].strip(), line[12:28].strip(),
                                            line[28:44].strip(), line[44:].strip())
            if state in OVER:
                self.ended[job] = state
            elif state == "RUNNING" and account == "lab" and " guest" not in comment:
                used += comment.count("+") + 1
        self.most = max(self.most, used)
        if used > QUOTA:
            self.wrong.append(f"{used} GPUs of an account with {QUOTA}:\n{done.stdout}")

    def left(self):
        return [job for job in list(self.jobs) if job not in self.ended]

    def run(self):
        while not self.ends.wait(0.1):
            self.look()
            self.of_tandem |= {row["job"].removeprefix("slurm.") for row in self.world.jobs()}
            for _ in range(min(3, AT_ONCE - len(self.left())) if self.submits else 0):
                self.submit()

    def rows(self):
        with open(self.lines) as f:
            return [line.rstrip().split(maxsplit=3) for line in f]

    def trained(self):
        return {job for job, options in self.jobs.items() if trains(options)}

    def stopped(self):
        """The placements that the scheduler ended itself: (job, epoch)."""
        with open(f"{self.world.directory}/log/slurmctld.log") as f:
            return {(job, epoch) for epoch, job in re.findall(
                r"to .* epoch=(\d+) why: it was stopped .* for JobId=(\d+)", f.read())}

    def check(self):
        """What was wrong with the jobs, as sentences."""
        starts, ends, wrong = collections.Counter(), collections.Counter(), []
        stopped, trained = self.stopped(), self.trained()
        for kind, job, number, *more in self.rows():  # the time it began at or its exit status
            told = "".join(more)
            epoch = re.search(r"epoch=(\d+)", told)
            placed = (job, epoch and epoch.group(1))
            good = number == "0" and (job not in trained or '"checksum_ok": true' in told)
            if kind == "start":
                starts[placed] += 1
            elif good:
                ends[job] += 1
            elif placed not in stopped:  # the script may outlive the program that Slurm ends
                wrong.append(f"job {job}'s program ended with {number} {told}")
        wrong += [f"job {job} ended as {state}: {self.world.shown(job)}"
                 for job, state in self.ended.items() if job in self.jobs and state != "COMPLETED"]
        wrong += [f"job {job} did not come to its end" for job in self.jobs
                  if job not in self.ended or not ends[job]]
        wrong += [f"job {job} started {count} times as placement {epoch}"
                  for (job, epoch), count in starts.items() if count > 1]
        begun = collections.Counter(job for job, epoch in starts
                                    if (job, epoch) not in stopped)
        wrong += [f"job {job} began its work {count} times and ended it {ends[job]} times"
                  for job, count in begun.items() if count > ends[job]]
        return self.wrong + wrong

    def pauses(self):
        """Seconds between the starts of two jobs, one after the other."""
        times = sorted(float(row[2]) for row in self.rows() if row[0] == "start")
        return [after - before for before, after in zip(times, times[1:])]

    def delays(self):
        """Seconds from a first release by the scheduler to Slurm's allocation, and from that to the
        job's first line."""
        released, allocated, delays = {}, {}, []
        with open(f"{self.world.directory}/log/slurmctld.log") as f:
            for line in f:
                found = re.match(r"\[(\S+)\] .*(release hold on|Allocate) JobId=(\d+)", line)
                if found:
                    at = time.mktime(time.strptime(found.group(1)[:19], "%Y-%m-%dT%H:%M:%S"))
                    table = allocated if found.group(2) == "Allocate" else released
                    table.setdefault(found.group(3), []).append(at + float(found.group(1)[19:]))
        begun = collections.defaultdict(list)
        for row in self.rows():
            if row[0] == "start":
                begun[row[1]].append(float(row[2]))
        for job, times in begun.items():
            if all(len(each.get(job, [])) == 1 for each in (begun, released, allocated)):
                delays.append((allocated[job][0] - released[job][0], times[0] - allocated[job][0]))
        return delays


class Killer:
    """Kills servers and starts them again."""

    def __init__(self, world, rng, told):
        self.world, self.rng = world, rng
        self.counts = collections.Counter()
        self.changes = []  # seconds from the death of a leader to the next one's lead
        self.restarts = []  # (when, what to start)
        self.scheds = {"one": None, "two": None}
        self.agents = {name: None for name in world.names}
        self.slurmds = {name: world.servers[2 + k] for k, name in enumerate(world.names)}
        self.died, self.leader = None, ""
        self.made, self.led = 0, 0  # the revision of the key: now, and of the last leader
        self.is_etcd_up = True
        self.told = told

    def tell(self, *words):
        if self.told:
            print(f"{time.time():.3f}", *words, file=self.told, flush=True)

    def begin(self):
        for name in self.scheds:
            self.start_sched(name)
        for name in self.agents:
            self.start_agent(name)

    def start_sched(self, name):
        self.scheds[name] = self.world.schedule("--name", name, log=name)
        self.tell("up", name)

    def start_agent(self, name):
        self.agents[name] = self.world.agent(name)

    def start_slurmd(self, name):
        self.tell("up slurmd", name)
        self.slurmds[name] = self.world.serve("slurmd", "-D", "-N", name, log=f"slurmd.{name}")

    def start_etcd(self):
        self.tell("begin etcd")
        self.world.etcd.start()
        self.is_etcd_up = True
        self.tell("up etcd")

    def end(self, process):
        process.kill()
        process.wait(DEADLINE_S)
        self.world.servers.remove(process)

    def kill(self):
        kind = self.rng.choice(("brain", "brain", "agent", "etcd", "slurmd"))
        if kind == "etcd":
            if not self.is_etcd_up:
                return False
            self.is_etcd_up, self.died = False, None
            self.tell("down etcd")
            self.world.etcd.kill()
            self.later(3, self.start_etcd)
        else:
            table = {"brain": self.scheds, "agent": self.agents, "slurmd": self.slurmds}[kind]
            up = [name for name in table if table[name]]
            if not up:
                return False
            name = self.rng.choice(up)
            self.look()
            if kind == "brain" and name == self.leader and self.is_etcd_up:
                self.died = time.monotonic()
            self.tell("down", kind, name)
            process, table[name] = table[name], None
            self.end(process)
            self.later(4 if kind == "brain" else 2,
                       {"brain": self.start_sched, "agent": self.start_agent,
                        "slurmd": self.start_slurmd}[kind], name)
        self.counts[kind] += 1
        return True

    def later(self, most_s, start, *arguments):
        self.restarts.append((time.monotonic() + self.rng.uniform(0, most_s), start, arguments))

    def turn(self):
        now = time.monotonic()
        for restart in [r for r in self.restarts if r[0] <= now]:
            self.restarts.remove(restart)
            restart[1](*restart[2])
        self.look()

    def look(self):
        """Notes who leads."""
        if not self.is_etcd_up:
            return
        try:
            leader, made = self.world.etcd.made("leader")
        except OSError:
            return
        if made != self.made:
            self.tell("leader", leader or "-")
        # One that begins anew under its old name makes the key anew, too.
        if made and self.died and made != self.led:
            self.changes.append(time.monotonic() - self.died)
            self.died = None
        self.made, self.led, self.leader = made, made or self.led, leader or self.leader


def run(world, options):
    rng = random.Random(options.seed)
    world.sched.kill()
    world.sched.wait(DEADLINE_S)
    world.servers.remove(world.sched)
    world.etcd.delete("leader")
    told = open(options.timeline, "w") if options.timeline else None
    killer, load = Killer(world, rng, told), Load(world, random.Random(options.seed + 1))
    killer.begin()
    thread = threading.Thread(target=load.run)
    thread.start()
    begun = time.monotonic()
    try:
        until(lambda: load.ended, "jobs run")
        for _ in tries(20 * options.kills + 20, lambda: f"{options.kills} kills: {killer.counts}"):
            if sum(killer.counts.values()) >= options.kills:
                break
            if killer.kill() and sum(killer.counts.values()) % 50 == 0:
                print(f"# {sum(killer.counts.values())} kills, {len(load.ended)} jobs, "
                      f"{time.monotonic() - begun:.0f} s", flush=True)
            end = time.monotonic() + rng.uniform(0.2, 2 * options.gap)
            while time.monotonic() < end:
                killer.turn()
                time.sleep(0.05)
        load.submits = False
        end = time.monotonic() + DEADLINE_S
        while load.left() and time.monotonic() < end:
            killer.turn()
            time.sleep(0.1)
    finally:
        load.ends.set()
        thread.join()
        if told:
            told.close()
    wrong = load.check()
    trained, seen = len(load.trained()), len(load.trained() & load.of_tandem)
    print(f"# {trained} jobs trained, {seen} of them seen at tandemd; the scheduler stopped "
          f"{len(load.stopped())} placements")
    if 2 * seen < trained:
        wrong.append("tandemd had too few of the jobs that trained")
    wrong += [f"a leader was followed after {s:.1f} s" for s in killer.changes if s > LEADER_S]
    delays, pauses = load.delays(), load.pauses()
    print(f"# {sum(killer.counts.values())} kills ({dict(killer.counts)}), {len(load.jobs)} jobs, "
          f"{sum(row[0] == 'start' for row in load.rows())} starts, {load.most} of {QUOTA} GPUs of "
          f"quota at most, {time.monotonic() - begun:.0f} s")
    if killer.changes:
        print(f"# leader change, {len(killer.changes)} times: median "
              f"{percentile(killer.changes, 0.5):.1f} s, longest {max(killer.changes):.1f} s")
    if pauses:
        print(f"# between two starts, {len(pauses)} times: "
              f"P90 {percentile(pauses, 0.9):.1f} s, P99 {percentile(pauses, 0.99):.1f} s, "
              f"longest {max(pauses):.1f} s")
    if delays:
        for title, values in (("release to allocation, which is Slurm's", [d[0] for d in delays]),
                              ("allocation to start", [d[1] for d in delays]),
                              ("release to start", [sum(d) for d in delays])):
            each = [f"{title} {1000 * percentile(values, part):.0f} ms"
                    for title, part in (("median", 0.5), ("P90", 0.9), ("P99", 0.99))]
            print(f"# {title}, {len(delays)} jobs: " + ", ".join(each))
    assert not wrong, "\n".join(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap", type=float, default=1.0)
    parser.add_argument("--timeline", metavar="FILE",
                        help="gets a line for each kill, start and change of the leader")
    options = parser.parse_args()
    print("1..1")
    try:
        with cluster("--quota", "lab=" + str(QUOTA), "--start", "20s", nodes=NODES, gpus=GPUS,
                     timeout=30, etcd=True) as world:
            run(world, options)
    except Skip as why:
        print(f"ok 1 - nothing_is_lost # SKIP {why}")
    except AssertionError as problem:
        print("not ok 1 - nothing_is_lost\n# " + str(problem)[-20000:].replace("\n", "\n# "))
    else:
        print("ok 1 - nothing_is_lost")


if __name__ == "__main__":
    main()
