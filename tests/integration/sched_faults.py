#!/usr/bin/env python3
"""tandem-sched when something goes away or is in the way: schedulers, nodes, people. All cases
share one Slurm. TAP. usage: sched_faults.py BUILD [CASE]..."""
import os
import signal
import time

from sched_world import cluster
from world import DEADLINE_S, TANDEM, TRAIN, SOFTGPU, run_cases, until

LONG = f"{TRAIN} --size 8m --gpu 10ms --cpu 5ms --steps 100000"
world = None


def away():
    world.sched.kill()
    world.sched.wait(timeout=DEADLINE_S)


def back():
    world.sched = world.schedule()


def waits(job):
    return world.shown(job).get("JobState") == "PENDING"


def cancel(*jobs):
    world.call("scancel", *jobs)
    until(lambda: not world.call("squeue", "-h", "-j", ",".join(jobs)).stdout, "they have ended")


def started(job):
    """How often its script has begun."""
    try:
        with open(f"{world.directory}/began.{job}") as f:
            return len(f.readlines())
    except FileNotFoundError:
        return 0


def batch(*options, script="sleep 1000"):
    return world.batch(*options, script=f"echo >> {world.directory}/began.$SLURM_JOB_ID; {script}")


def a_job_released_by_hand_without_a_scheduler_does_not_start():
    away()
    job = batch("--tandem=0.5")
    assert not world.call("scontrol", "release", job).returncode
    until(lambda: world.shown(job).get("Restarts") == "1" and waits(job), "it is queued again")
    assert not started(job) and "Priority=0" in world.call(
        "scontrol", "show", "job", job).stdout, world.shown(job)
    plain = world.call("sbatch", "--parsable", "--output=/dev/null",
                       "--export=ALL,_SLURM_SPANK_OPTION_tandem_tandem=0.5",
                       f"--wrap=echo >> {world.directory}/began.$SLURM_JOB_ID").stdout.strip()
    until(lambda: world.shown(plain).get("JobState") == "FAILED", "who goes round it fails")
    assert not started(plain)
    back()
    until(lambda: world.runs(job) and started(job), "the scheduler places it")
    cancel(job)


def a_job_queued_again_without_a_scheduler_waits_for_a_placement():
    job = batch("--tandem=0.5")
    until(lambda: started(job), "it runs")
    away()
    world.call("scontrol", "requeue", job)
    until(lambda: waits(job), "it is queued again")
    world.call("scontrol", "update", f"JobId={job}", "StartTime=now+2")
    until(lambda: world.shown(job).get("Restarts") == "2" and waits(job), "it is refused")
    assert started(job) == 1
    back()
    until(lambda: world.runs(job) and started(job) == 2, "the scheduler places it")
    cancel(job)


def slurmctld_that_does_not_answer_is_waited_for():
    job = batch("--tandem=0.5", script="sleep 1; srun true; sleep 1000")
    until(lambda: started(job), "it runs")
    slurmctld = world.servers[1]
    slurmctld.send_signal(signal.SIGSTOP)
    late = world.start("sbatch", "--parsable", "--output=/dev/null", "--tandem=0.5",
                       f"--wrap=echo >> {world.directory}/began.$SLURM_JOB_ID; sleep 1000")
    time.sleep(1)
    slurmctld.send_signal(signal.SIGCONT)
    number = late.communicate(timeout=DEADLINE_S)[0].strip()
    until(lambda: started(number), "it runs, too")
    assert started(job) == 1 and world.runs(job)
    cancel(job, number)


def a_drained_node_keeps_its_jobs_and_gets_no_more():
    world.call("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test")
    first = batch("--tandem=0.3")
    until(lambda: started(first), "it runs")
    assert world.node(first) == "node1"
    world.call("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=test")
    until(lambda: "DRAIN" in world.call("sinfo", "-h", "-n", "node1", "-o", "%T").stdout.upper(),
          "it is drained")
    time.sleep(0.5)  # two looks of the scheduler
    more = [batch("--tandem=0.3"), batch("--tandem=1,class=guaranteed")]
    until(lambda: all("why: " in world.comment(job) and "just come" not in world.comment(job)
                      for job in more), "they wait")
    time.sleep(2)
    assert all(waits(job) for job in more) and world.runs(first) and started(first) == 1
    world.call("scontrol", "update", "NodeName=node1,node2", "State=RESUME")
    until(lambda: all(started(job) for job in more), "they run")
    cancel(first, *more)


def an_evicted_job_is_queued_again_with_the_reason():
    job = world.call(SOFTGPU, "run", "--", "sbatch", "--parsable", "--output=/dev/null",
                     "--tandem=0.5", f"--wrap=echo >> {world.directory}/began.$SLURM_JOB_ID; "
                     f"{LONG}").stdout.strip()
    until(lambda: any(row["job"] == f"slurm.{job}" for row in world.jobs()), "it uses its GPU")
    world.call("scontrol", "update", "NodeName=node1,node2", "State=DRAIN", "Reason=test")
    done = world.call(TANDEM, "evict", f"slurm.{job}")
    assert not done.returncode, done
    until(lambda: waits(job), "it waits again")
    until(lambda: "its node ended it: it was evicted" in world.comment(job),
          "the comment says why")
    world.call("scontrol", "update", "NodeName=node1,node2", "State=RESUME")
    until(lambda: started(job) == 2 and "epoch=2" in world.comment(job), "it runs again")
    cancel(job)


CASES = [a_job_released_by_hand_without_a_scheduler_does_not_start,
         a_job_queued_again_without_a_scheduler_waits_for_a_placement,
         slurmctld_that_does_not_answer_is_waited_for,
         a_drained_node_keeps_its_jobs_and_gets_no_more,
         an_evicted_job_is_queued_again_with_the_reason]

if __name__ == "__main__":
    with cluster("--start", "10s", timeout=6, plugin="optional") as world:
        run_cases(CASES)
