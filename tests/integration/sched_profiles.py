#!/usr/bin/env python3
"""tandem-sched places by what is known of programs: DCUDA's, MuxFlow's and Mudi's rules in a real
Slurm; profiles go from the database of a node through etcd. TAP.
usage: sched_profiles.py BUILD [CASE]..."""
import json
import os

from exchange import PROFILE, write_speeds
from mudi import LAYERS, profile
from sched_world import SCHED, cluster
from world import SOFTGPU, TANDEM, Skip, run_cases, until


def gpu_name(world):
    done = world.call(SOFTGPU, "run", "--", TANDEM, "gpu", "--json")
    return json.loads(done.stdout)[0]["name"]


def on(world, job):
    """The GPU of a job, such as node1:0."""
    words = [word for word in world.comment(job).split() if word.startswith("on=")]
    return words[0][3:] if words else None


def place(world, name, *options):
    job = world.batch(*options, "-J", name)
    until(lambda: world.runs(job), f"{name} runs")
    return job


def dcuda_starts_where_the_demand_is_least():
    with cluster("--policy", "dcuda", nodes=1, gpus=2) as world:
        first = place(world, "a", "--tandem=0.5")
        second = place(world, "b", "--tandem=0.25")
        assert on(world, first) != on(world, second)
        third = place(world, "c", "--tandem=0.2")
        assert on(world, third) == on(world, second), "beside 0.25, not 0.5"
        assert on(world, place(world, "d", "--tandem=0.1")) == on(world, second), "0.45"
        assert on(world, place(world, "e", "--tandem=0.1")) == on(world, first), "0.55"
        holder = place(world, "f", "--tandem=1,class=guaranteed")
        assert " guest" not in world.comment(holder), world.comment(holder)


def muxflow_matches_by_speeds_from_the_database_of_a_node():
    if not os.path.exists(PROFILE):
        raise Skip("tandem-profile is built where SQLite and BLAS are")
    with cluster("--policy", "muxflow", "--match", "1s", nodes=1, gpus=2, etcd=True) as world:
        profiles = write_speeds(world, gpu_name(world))
        services = {on(world, place(world, name, "--tandem=1,class=online")): name
                    for name in ("busy", "quiet")}
        heavy = world.batch("--tandem=0.5", "-J", "heavy")
        until(lambda: "no node has a profile of its program" in world.comment(heavy),
              "it says what it lacks")
        world.agent("node1", "--profiles", profiles)
        until(lambda: world.runs(heavy), "its profile has come")
        assert services[on(world, heavy)] == "quiet", world.log()
        light = place(world, "light", "--tandem=0.5")
        assert services[on(world, light)] == "busy", world.log()
        late = world.batch("--tandem=0.5", "-J", "light")
        until(lambda: "the next matching" in world.comment(late), "it says what it waits for")
        world.call("scancel", heavy)
        until(lambda: world.runs(late) and services[on(world, late)] == "quiet", "it is matched")


def muxflow_sends_a_job_where_it_is_faster():
    if not os.path.exists(PROFILE):
        raise Skip("tandem-profile is built where SQLite and BLAS are")
    with cluster("--policy", "muxflow", "--match", "4s", nodes=1, gpus=2, etcd=True) as world:
        world.agent("node1", "--profiles", write_speeds(world, gpu_name(world)))
        services = {}
        for _ in range(2):
            job = place(world, "busy", "--tandem=1,class=online")
            services[on(world, job)] = job
        heavy = place(world, "heavy", "--tandem=0.5")
        before = on(world, heavy)
        (other,) = set(services) - {before}
        world.call("scancel", services[other])
        place(world, "quiet", "--tandem=1,class=online")
        until(lambda: world.runs(heavy) and on(world, heavy) == other, "it was sent there")
        assert world.shown(heavy)["Restarts"] == "1" and "epoch=2" in world.comment(heavy)
        assert "requeued: it was stopped to go where it is faster" in world.log()


def mudi_selects_the_flattest_service():
    with cluster("--policy", "mudi", nodes=1, gpus=2, etcd=True) as world:
        folder = f"{world.directory}/profiles"
        os.mkdir(folder)
        world.agent("node1", "--profiles", folder)
        services = {on(world, place(world, name, "--tandem=1,class=online")): name
                    for name in ("steep", "flat")}
        train = world.batch("--tandem=0.5", "-J", "train")
        until(lambda: "no node has a profile" in world.comment(train), "it says what it lacks")
        # Its layers are known last, so that it does not go where the first profile is.
        for name, data in (("steep.profile", profile(gpu_name(world), steep=50)),
                           ("flat.profile", profile(gpu_name(world))),
                           ("bad.profile", b"nonsense"), ("train.layers", LAYERS.encode())):
            with open(f"{folder}/.new", "wb") as f:
                f.write(data)
            os.rename(f"{folder}/.new", f"{folder}/{name}")
        until(lambda: world.runs(train), "all is known")
        assert services[on(world, train)] == "flat", world.log()
        other = place(world, "train", "--tandem=0.5")
        assert services[on(world, other)] == "steep", world.log()
        assert '"bad.profile" is not published' in world.log("agent.node1")


def what_there_is_no_profile_for_is_refused():
    with cluster(nodes=1) as world:
        for policy in ("muxflow", "mudi"):
            done = world.call(SCHED, "--policy", policy)
            assert done.returncode == 125, done
            assert "there are none: they come by --etcd" in done.stderr, done
        done = world.call(SCHED, "--policy", "gslice")
        assert done.returncode == 125 and 'tandem, antman, dcuda' in done.stderr, done


if __name__ == "__main__":
    run_cases([dcuda_starts_where_the_demand_is_least,
               muxflow_matches_by_speeds_from_the_database_of_a_node,
               muxflow_sends_a_job_where_it_is_faster,
               mudi_selects_the_flattest_service, what_there_is_no_profile_for_is_refused],
              at_once=3)
