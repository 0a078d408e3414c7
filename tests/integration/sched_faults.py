#!/usr/bin/env python3
"""tandem-sched when something goes away or is in the way: schedulers, nodes, people. All cases
share one Slurm. TAP. usage: sched_faults.py BUILD [CASE]..."""
import json
import os
import signal
import time

from sched_world import SCHED, cluster
from world import DEADLINE_S, SOFTGPU, TANDEM, TRAIN, Skip, run_cases, until

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


def a_jobs_events_are_asked_for_as_its_user():
    """Others, who may name their jobs as they like, must not make it start again."""
    asked, script = f"{world.directory}/asked", f"{world.directory}/asks"
    before = f"{world.directory}/etc/plugstack.conf"
    for path, text, mode in ((asked, "", 0o666),
                             (script, f"#!/bin/sh\necho $1 $(id -u) >> {asked}\n"
                              f"exec {TANDEM} \"$@\"\n", 0o755)):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
    os.chmod(world.directory, 0o711)
    with open(before) as f:
        line = f.read()
    world.write("plugstack.conf", line.replace(f"tandem={TANDEM}", f"tandem={script}"))
    try:
        done = world.call("sbatch", "--parsable", "--uid=65534", "--gid=65534", "--chdir=/",
                          "--output=/dev/null", "--tandem=0.5", "--wrap=true")
        assert not done.returncode, done
        until(lambda: world.shown(done.stdout.strip()).get("JobState") in ("COMPLETED", "FAILED"),
              "it has ended")
    finally:
        world.write("plugstack.conf", line)
    with open(asked) as f:
        assert "events 65534" in f.read().splitlines(), done


def leads(name):
    """Whether the scheduler of this log led last."""
    lines = [line for line in world.log(name).splitlines() if "leads" in line]
    return bool(lines) and "leads as" in lines[-1]


def another_scheduler_takes_over_and_starts_nothing_twice():
    away()
    world.etcd.delete("leader")
    both = {name: world.schedule("--name", name, log=name) for name in ("one", "two")}
    until(lambda: any(leads(name) for name in both), "one leads")
    first = next(name for name in both if leads(name))
    second = next(name for name in both if name != first)
    jobs = [batch("--tandem=0.5") for _ in range(3)]
    until(lambda: all(started(job) for job in jobs), "all run")
    both[first].kill()
    both[first].wait(timeout=DEADLINE_S)
    died = time.monotonic()
    late = batch("--tandem=0.5")
    until(lambda: started(late), "the other one places it")
    assert time.monotonic() - died < 60 and leads(second), world.log(second)
    assert [started(job) for job in jobs] == [1, 1, 1], world.log(second)
    both[second].terminate()
    both[second].wait(timeout=DEADLINE_S)
    back()
    cancel(late, *jobs)


def etcd_may_be_restarted_and_compacted():
    job = batch("--tandem=0.5")
    until(lambda: started(job), "it runs")
    world.etcd.kill()
    late = batch("--tandem=0.5")
    time.sleep(4)  # longer than the lease
    assert world.runs(job) and not started(late)
    world.etcd.start()
    until(lambda: started(late), "it is placed when etcd is back")
    world.etcd.compact()
    later = batch("--tandem=0.5")
    until(lambda: started(later), "and after a compaction")
    assert (started(job), started(late)) == (1, 1), world.log()
    cancel(job, late, later)


def status_shows_leader_nodes_quotas_and_why_jobs_wait():
    jobs = [batch("--tandem=1,class=guaranteed", "-A", "lab"), batch("--tandem=0.5")]
    until(lambda: all(started(job) for job in jobs), "they run")
    large = batch("--tandem=2")
    until(lambda: "than any node" in world.status("--json"), "the file follows")
    known = json.loads(world.status("--json"))
    assert len(known["leaders"]) == 1 and known["leaders"][0]["revision"] > 0, known
    assert sorted((n["name"], n["gpus"], n["state"]) for n in known["nodes"]) == [
        ("node1", 1, "up"), ("node2", 1, "up")], known
    assert {"name": "lab", "used": 1, "quota": 1} in known["tenants"], known
    rows = {job["id"]: job for job in known["jobs"]}
    assert rows[jobs[0]]["phase"] == "runs" and rows[jobs[0]]["kind"] == "held", rows
    assert rows[jobs[1]]["kind"] == "guest" and rows[jobs[1]]["places"].endswith(":0"), rows
    assert rows[large]["phase"] == "waits" and "than any node" in rows[large]["why"], rows
    assert "than any node" in world.status() and "LEADER" in world.status(), world.status()
    done = world.call(SCHED, "status", "--etcd", world.etcd.url)
    assert not done.returncode and large in done.stdout and not done.stderr, done
    done = world.call(SCHED, "status", "--status", "/nowhere")
    assert done.returncode == 1 and "no tandem-sched has led here" in done.stderr, done
    cancel(large, *jobs)


def a_job_runs_only_where_slurm_would_let_it():
    places = {"node1": [("-p", "first"), ("-C", "on_node1"), ("-x", "node2")],
              "node2": [("-C", "on_node2"), ("-x", "node1"), ("-C", "on_node2|on_node2")]}
    jobs = [(node, batch("--tandem=0.1", *options))
            for node, each in places.items() for options in each]
    for node, job in jobs:
        until(lambda: started(job), "it runs")
        assert world.node(job) == node, world.shown(job)
    cancel(*(job for _, job in jobs))
    # One that has no node waits, and holds nobody up.
    nowhere = batch("--tandem=1,class=guaranteed", "-p", "first", "-x", "node1")
    full = [batch("--tandem=1,class=guaranteed", "-p", "first") for _ in range(2)]
    other = batch("--tandem=1,class=guaranteed", "-C", "on_node2")
    until(lambda: started(other) and sum(map(started, full)) == 1, "those that may run, run")
    until(lambda: "it may not run on any of the nodes that are up" in world.comment(nowhere),
          "it says why")
    until(lambda: any("no GPU has room" in world.comment(job) for job in full), "and the other")
    world.call("scontrol", "update", f"JobId={nowhere}", "ExcNodeList=", "Partition=main")
    cancel(*full, other)
    until(lambda: started(nowhere), "its user lets it run elsewhere")
    cancel(nowhere)
    for wish, words in (("[on_node1*1&on_node2*1]", "brackets"),
                        ("on_node1&on_node2|on_node2", "not by both")):
        done = world.call("sbatch", "--tandem=0.5", "-C", wish, "--wrap=true")
        assert done.returncode and words in done.stderr, done


def record_of(node, accepts):
    gpu = {"index": 0, "total_bytes": 100, "room_bytes": 100, "accepts": accepts}
    world.etcd.put(f"node/{node}", {"node": node, "answers": True, "gpus": [gpu], "jobs": []})


def a_node_that_its_daemon_judges_full_gets_no_besteffort_jobs():
    for node in ("node1", "node2"):
        record_of(node, False)
    time.sleep(1.5)  # records are told once a second at least
    guest, holder = batch("--tandem=0.5"), batch("--tandem=1,class=guaranteed")
    until(lambda: started(holder), "a guaranteed job runs")
    assert not started(guest) and waits(guest)
    world.etcd.compact()
    record_of("node1", True)
    record_of("node2", True)
    until(lambda: started(guest), "the other one runs when it may")
    for node in ("node1", "node2"):
        world.etcd.delete(f"node/{node}")
    cancel(guest, holder)


def a_guest_that_is_upgraded_has_its_class_on_the_node():
    away()
    agents = [world.agent(node) for node in ("node1", "node2")]
    world.sched = world.schedule("--policy", "antman", "--name", "antman")
    holder = batch("--tandem=1,class=guaranteed", "-A", "lab")
    until(lambda: started(holder), "the first one runs")
    assert "guest" not in world.comment(holder)
    job = world.call(SOFTGPU, "run", "--", "sbatch", "--parsable", "--output=/dev/null", "-A",
                     "lab", "--tandem=1,class=guaranteed", f"--wrap={LONG}").stdout.strip()
    until(lambda: world.jobs(), "it runs as a guest")
    assert world.jobs()[0]["class"] == "besteffort" and "guest" in world.comment(job)
    world.call("scancel", holder)
    until(lambda: world.jobs()[0]["class"] == "guaranteed", "it has guaranteed resources")
    until(lambda: "guest" not in world.comment(job), "its comment says so")
    assert "epoch=1" in world.comment(job), world.comment(job)
    for agent in agents:
        agent.terminate()
        agent.wait(timeout=DEADLINE_S)
    away()
    back()
    cancel(job)


CASES = [a_job_released_by_hand_without_a_scheduler_does_not_start,
         a_job_queued_again_without_a_scheduler_waits_for_a_placement,
         slurmctld_that_does_not_answer_is_waited_for,
         a_drained_node_keeps_its_jobs_and_gets_no_more,
         an_evicted_job_is_queued_again_with_the_reason,
         a_jobs_events_are_asked_for_as_its_user,
         another_scheduler_takes_over_and_starts_nothing_twice,
         etcd_may_be_restarted_and_compacted,
         status_shows_leader_nodes_quotas_and_why_jobs_wait,
         a_job_runs_only_where_slurm_would_let_it,
         a_node_that_its_daemon_judges_full_gets_no_besteffort_jobs,
         a_guest_that_is_upgraded_has_its_class_on_the_node]

if __name__ == "__main__":
    try:
        opened = cluster("--quota", "lab=1", "--start", "10s", timeout=6, plugin="optional",
                         etcd=True)
    except Skip as why:
        print(f"1..0 # SKIP {why}")
    else:
        with opened as world:
            run_cases(CASES)
