#!/usr/bin/env python3
"""--tandem in a real Slurm: munge, slurmctld and slurmd in a private folder, with the software GPU.
TAP. usage: slurm.py BUILD [CASE]..."""
import json
import os

from slurm_world import Slurm, why_not
from world import (DEADLINE_S, LARGE, SMALL, SOFTGPU, TRAIN, LIBRARY, TANDEM, Skip, run_cases,
                   until)

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
        seen = f"{world.directory}/seen"
        job = world.call(
            SOFTGPU, "run", "--", "sbatch", "--parsable", "--tandem=0.5", "--output=/dev/null",
            f"--wrap=setsid {TRAIN} --size 8m --gpu 10ms --cpu 5ms --steps 1000000 & "
            f"until [ -e {seen} ]; do sleep 0.1; done; exit 0").stdout.strip()
        until(lambda: world.jobs(), "tandemd sees it")
        open(seen, "w").close()
        until(lambda: not world.state(job), "the job has ended")
        until(lambda: not world.jobs(), "and nothing of it is left")


def jobs_run_on_without_the_plugin():
    with slurm() as world:
        process = world.begin("--tandem=0.5", TRAIN, "--size", "8m", "--gpu", "10ms", "--cpu",
                              "5ms", "--steps", "60")
        until(lambda: world.events("attached"), "tandemd has seen the job")
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
