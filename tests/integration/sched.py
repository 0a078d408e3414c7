#!/usr/bin/env python3
"""tandem-sched in a real Slurm: it places held jobs, sends them back, and says why they wait. TAP.
usage: sched.py BUILD [CASE]..."""
import os
import re
import signal
import statistics
import time

from promtool import promtool
from sched_world import cluster
from world import DEADLINE_S, run_cases, tries, until

def jobs_are_placed_and_share_gpus():
    with cluster() as world:
        jobs = [world.batch("--tandem=0.5") for _ in range(4)]
        until(lambda: all(world.runs(job) for job in jobs), "all four run on two GPUs")
        nodes = sorted(world.node(job) for job in jobs)
        assert nodes == ["node1", "node1", "node2", "node2"], nodes
        words = world.comment(jobs[0])
        assert words.startswith("tandem=0.5 epoch=1 on=node") and words.endswith(" guest"), words
        assert "tandem:50" in world.shown(jobs[0])["TresPerNode"]
        # The accounting follows the share.
        used = world.call("scontrol", "-o", "show", "node", "node1", "-d").stdout
        assert "GresUsed=tandem:100" in used, used


def an_interactive_job_is_placed():
    with cluster() as world:
        done = world.srun("--tandem=0.5", "sh", "-c", "echo $TANDEM_JOB")
        assert not done.returncode and done.stdout.startswith("slurm."), done


def a_job_uses_the_gpus_that_it_was_placed_on():
    with cluster(nodes=1, gpus=2) as world:
        until(lambda: len(world.gpus()) == 2, "tandemd lists both GPUs")
        known = world.gpus()
        used = []
        for k in range(2):
            out = f"{world.directory}/out{k}"
            job = world.batch("--tandem=1,class=guaranteed",
                              script=f"echo $TANDEM_GPUS > {out}; sleep 1000")
            until(lambda: os.path.exists(out) and os.path.getsize(out), "it has started")
            with open(out) as f:
                used.append(f.read().strip())
            index = int(world.comment(job).split(":")[1].split()[0])
            assert used[-1] == known[index], (used, known, index)
        assert sorted(used) == sorted(known), used


def a_step_has_the_share_of_its_job():
    with cluster(nodes=1) as world:
        out = f"{world.directory}/out"
        world.batch("--tandem=0.25", script="srun --tandem=1,class=guaranteed sh -c "
                    f"'echo $TANDEM_CLASS $TANDEM_WEIGHT > {out}'; sleep 1000")
        until(lambda: os.path.exists(out) and os.path.getsize(out), "the step has started")
        with open(out) as f:
            assert f.read().split() == ["besteffort", "25"]


def a_placed_job_starts_at_once():
    """On a busy machine not in each round."""
    with cluster(nodes=1) as world:
        waits = []
        for _ in tries(5, lambda: waits):
            jobs = []
            for _ in range(6):
                jobs.append(world.batch("--tandem=0.1"))
                until(lambda: world.runs(jobs[-1]), "it runs")
            at = {"release hold on": {}, "Allocate": {}}
            with open(f"{world.directory}/log/slurmctld.log") as f:
                for line in f:
                    found = re.match(r"\[\S+:(\S+)\] .*(release hold on|Allocate) JobId=(\d+)",
                                     line)
                    if found:
                        at[found.group(2)][found.group(3)] = float(found.group(1))
            waits = [(at["Allocate"][job] - at["release hold on"][job]) % 60 for job in jobs]
            if statistics.median(waits) < 0.2:
                break
            world.call("scancel", *jobs)


def a_job_that_waits_says_why():
    with cluster("--quota", "lab=1") as world:
        first = world.batch("--tandem=1,class=guaranteed", "-A", "lab")
        until(lambda: world.runs(first), "the first one runs")
        second = world.batch("--tandem=1,class=guaranteed", "-A", "lab")
        until(lambda: "the quota of its tenant is in use" in world.comment(second), "it says why")
        large = world.batch("--tandem=2")
        until(lambda: "more GPUs on one node than any node" in world.comment(large), "it says why")
        shown = world.call("squeue", "-h", "-j", second, "-O", "admin_comment:200").stdout
        assert "why: the quota of its tenant is in use" in shown, shown
        world.call("scancel", first)
        until(lambda: world.runs(second), "the quota is free")
        assert world.shown(large)["JobState"] == "PENDING"


def a_gang_starts_whole_on_one_node():
    with cluster(gpus=2) as world:
        one = world.batch("--tandem=1,class=guaranteed")
        until(lambda: world.runs(one), "the first one runs")
        gang = world.batch("--tandem=2,class=guaranteed")
        until(lambda: world.runs(gang), "the gang runs")
        assert world.node(gang) != world.node(one)
        assert "on=" + world.node(gang) + ":0+1" in world.comment(gang), world.comment(gang)
        other = world.batch("--tandem=2,class=guaranteed")
        until(lambda: "not free at once" in world.comment(other), "the second gang waits")
        world.call("scancel", one)
        until(lambda: world.runs(other), "and starts when a node is free")


def what_cannot_be_placed_is_refused():
    with cluster() as world:
        for options, words in ((["--array=1-3"], "arrays of jobs"),
                               (["-N", "2"], "several nodes"),
                               (["-w", "node1"], "chooses the node")):
            done = world.call("sbatch", "--tandem=0.5", *options, "--wrap=true")
            assert done.returncode and words in done.stderr, done
        plain = world.batch(script="sleep 1000")
        until(lambda: world.runs(plain), "a job without --tandem is Slurm's alone")


def a_job_is_stopped_for_others_and_starts_again():
    with cluster(nodes=1) as world:
        guest = world.batch("--tandem=1")
        until(lambda: world.runs(guest), "the guest runs")
        time.sleep(3)  # what it has to run before it may be stopped is 2 s
        holder = world.batch("--tandem=1,class=guaranteed")
        until(lambda: world.runs(holder), "the guaranteed one takes its place")
        until(lambda: "epoch=1" in world.comment(guest) and
              world.shown(guest)["JobState"] == "PENDING", "the guest waits")
        world.call("scancel", holder)
        until(lambda: world.runs(guest) and "epoch=2" in world.comment(guest), "it starts again")
        assert world.shown(guest)["Restarts"] == "1"


def a_job_that_slurm_requeues_is_placed_again():
    # One that is requeued before the scheduler has seen it run counts as placed for that time.
    with cluster("--start", "15s") as world:
        job = world.batch("--tandem=0.5")
        until(lambda: world.runs(job), "it runs")
        world.call("scontrol", "requeue", job)
        until(lambda: re.search("epoch=[2-9]", world.comment(job)) and world.runs(job),
              "it runs again")


def jobs_of_a_node_that_dies_run_elsewhere():
    with cluster(timeout=4) as world:
        job = world.batch("--tandem=0.5")
        until(lambda: world.runs(job), "it runs")
        node = world.node(job)
        slurmd = world.servers[2 + world.names.index(node)]
        slurmd.send_signal(signal.SIGKILL)
        until(lambda: world.runs(job) and world.node(job) != node and
              "epoch=2" in world.comment(job), "it runs on the other node")


def a_scheduler_that_dies_stops_nothing_and_the_next_one_starts_nothing_twice():
    with cluster() as world:
        jobs = [world.batch("--tandem=0.5") for _ in range(3)]
        until(lambda: all(world.runs(job) for job in jobs), "all run")
        world.sched.kill()
        world.sched.wait(timeout=DEADLINE_S)
        late = [world.batch("--tandem=0.5") for _ in range(2)]
        assert all(world.runs(job) for job in jobs)
        world.sched = world.schedule()
        until(lambda: any(world.runs(job) for job in late), "a late one has the place that is left")
        waits = [job for job in late if not world.runs(job)]
        until(lambda: "why: " in world.comment(waits[0]) and "just come" not in
              world.comment(waits[0]), "the other one says why it waits")
        assert all(world.runs(job) and world.shown(job)["Restarts"] == "0" and
                   "epoch=1" in world.comment(job) for job in jobs), world.log()


def a_job_that_waits_for_others_or_for_a_time_takes_no_place():
    with cluster(nodes=1) as world:
        before = world.batch("--job-name=before", script="sleep 1000")
        later = [world.batch("--tandem=1,class=guaranteed", f"--dependency=afterany:{before}"),
                 world.batch("--tandem=1,class=guaranteed", "--begin=now+1hour")]
        until(lambda: world.runs(before), "the job without --tandem runs")
        now = world.batch("--tandem=1,class=guaranteed")
        until(lambda: world.runs(now), "a job that may start now has the place")
        assert all("epoch=0" in world.comment(job) for job in later), world.log()
        world.call("scancel", now)
        world.call("scancel", before)
        until(lambda: world.runs(later[0]), "the other job has ended")
        assert "epoch=0" in world.comment(later[1]), world.log()
        world.call("scancel", later[0])
        fails = world.batch(script="sleep 1; false")
        never = world.batch("--tandem=1,class=guaranteed", f"--dependency=afterok:{fails}")
        until(lambda: world.shown(fails).get("JobState") == "FAILED", "it has failed")
        time.sleep(1)
        now = world.batch("--tandem=1,class=guaranteed")
        until(lambda: world.runs(now), "who waits for its success has no place")
        assert "epoch=0" in world.comment(never), world.log()


def what_runs_survives_that_controller_and_scheduler_start_together():
    with cluster() as world:
        jobs = [world.batch("--tandem=0.5") for _ in range(3)]
        until(lambda: all(world.runs(job) for job in jobs), "all run")
        nodes = world.servers[2:4]
        for server in (world.sched, world.servers[1]):
            server.terminate()
            server.wait(timeout=DEADLINE_S)
        for slurmd in nodes:  # so slurmctld knows no node for a while
            slurmd.send_signal(signal.SIGSTOP)
        world.servers[1] = world.serve("slurmctld", "-D")
        world.servers.pop()
        until(lambda: not world.call("squeue", "-h").returncode, "slurmctld answers again")
        world.sched = world.schedule()
        time.sleep(3)  # several looks at Slurm
        for slurmd in nodes:
            slurmd.send_signal(signal.SIGCONT)
        late = world.batch("--tandem=0.5")
        until(lambda: world.runs(late), "nodes are known again")
        assert all(world.runs(job) and world.shown(job)["Restarts"] == "0" and
                   "epoch=1" in world.comment(job) for job in jobs), world.log()


def slurmctld_may_be_restarted():
    with cluster() as world:
        job = world.batch("--tandem=0.5")
        until(lambda: world.runs(job), "it runs")
        slurmctld = world.servers[1]
        slurmctld.terminate()
        slurmctld.wait(timeout=DEADLINE_S)
        world.servers[1] = world.serve("slurmctld", "-D")
        world.servers.pop()
        late = world.call("true")
        assert not late.returncode
        until(lambda: not world.call("sbatch", "--parsable", "--output=/dev/null", "--tandem=0.5",
                                     "--job-name=late", "--wrap=sleep 1000").returncode,
              "slurmctld answers again")
        until(lambda: world.call("squeue", "-h", "-n", "late", "-o", "%T").stdout.split() ==
              ["RUNNING"], "a late one is placed")
        assert world.runs(job) and "epoch=1" in world.comment(job), world.comment(job)


def a_scheduler_writes_metrics_that_promtool_reads():
    with cluster(nodes=1) as world:
        path = f"{world.directory}/tandem.prom"
        world.sched.kill()
        world.sched.wait(timeout=DEADLINE_S)
        world.sched = world.schedule("--metrics", path)

        def said():
            if not os.path.exists(path):
                return ""
            with open(path) as f:
                return f.read()

        job = world.batch("--tandem=0.5")
        until(lambda: world.runs(job), "it runs")
        until(lambda: "\ntandem_sched_jobs_running 1\n" in said(), "its scheduler counts it")
        text = said()
        for line in ("leads 1", "nodes 1", "gpus_up 1", "jobs_waiting 0", "placements_total 1",
                     "evictions_total 0"):
            assert f"\ntandem_sched_{line}\n" in text, text
        promtool("check", "metrics", input=text)


run_cases([jobs_are_placed_and_share_gpus, an_interactive_job_is_placed,
           a_job_uses_the_gpus_that_it_was_placed_on, a_step_has_the_share_of_its_job,
           a_placed_job_starts_at_once, a_job_that_waits_says_why,
           a_gang_starts_whole_on_one_node, what_cannot_be_placed_is_refused,
           a_job_is_stopped_for_others_and_starts_again,
           a_job_that_slurm_requeues_is_placed_again, jobs_of_a_node_that_dies_run_elsewhere,
           a_scheduler_that_dies_stops_nothing_and_the_next_one_starts_nothing_twice,
           a_job_that_waits_for_others_or_for_a_time_takes_no_place,
           what_runs_survives_that_controller_and_scheduler_start_together,
           slurmctld_may_be_restarted, a_scheduler_writes_metrics_that_promtool_reads], at_once=3)
