"""How long a job in Slurm takes to its first line: from its release by tandem-sched, and from its
submission where Slurm alone counts GPUs, as it holds no job. Two clusters of one node with one GPU
run beside each other and take turns: a job here, a job there, each on an idle GPU. The programs are
those that scripts/build makes."""
import re
import sys
import time

import slurm_cluster

# A job's request, and the line of slurmctld's log with which its time begins.
WAYS = {"release to first line: tandem-sched, --tandem=1":
        ("--tandem=1", r"release hold on JobId={}\b"),
        "submission to first line: Slurm alone, --gres=gpu:1":
        ("--gres=gpu:1", r"_slurm_rpc_submit_batch_job: JobId={}\b")}
SCRIPT = '#!/bin/bash\necho "$EPOCHREALTIME" >{b}/jobs/$SLURM_JOB_ID\n'


def began_s(cluster, line):
    """When slurmctld wrote this line, as time() counts."""
    with open(f"{cluster.directory}/log/slurmctld.log", encoding="utf-8") as f:
        found = re.search(rf"^\[([^]]+)(\.\d+)\] .*{line}", f.read(), re.M)
    if not found:
        raise RuntimeError(f"slurmctld did not write \"{line}\"\n{cluster.logs()}")
    return time.mktime(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")) + float(found[2])


def run_one(cluster, asks, line):
    """Milliseconds until the first line of one job."""
    job = cluster.call("sbatch", "--parsable", "--output=/dev/null", asks,
                       f"{cluster.directory}/etc/job").strip()
    if not job.isdigit():
        raise RuntimeError(f"sbatch took no job: {cluster.logs()}")
    cluster.wait(lambda: not cluster.call("squeue", "-h", "-j", job).strip(),
                 f"job {job} does not end")
    with open(f"{cluster.directory}/jobs/{job}", encoding="utf-8") as f:
        return (float(f.read()) - began_s(cluster, line.format(job))) * 1e3


def prepare(cluster):
    with open(f"{cluster.directory}/etc/job", "w", encoding="utf-8") as f:
        f.write(SCRIPT.format(b=cluster.directory))
    return cluster


def slurm_start(row, jobs):
    """The rows of so many pairs of jobs; row: makes one of samples."""
    missing = slurm_cluster.why_not()
    if missing:
        print(f"slurm-start: skipped: {missing}", file=sys.stderr)
        return
    times = {way: [] for way in WAYS}
    with slurm_cluster.Cluster(1, 1, "t4", []) as shared, \
            slurm_cluster.Cluster(1, 1, "t4") as plain:
        for n in range(jobs + 1):
            for cluster, (way, how) in zip(map(prepare, (shared, plain)), WAYS.items()):
                took_ms = run_one(cluster, *how)
                if n:  # the first one finds cold caches
                    times[way].append(took_ms)
    for way, samples in times.items():
        p90 = sorted(samples)[len(samples) - 1 - len(samples) // 10]
        yield dict(row(way, "ms", samples), p90=p90)
