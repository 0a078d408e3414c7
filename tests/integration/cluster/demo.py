#!/usr/bin/env python3
"""scripts/demo cluster with few jobs: a Slurm of four nodes, both ways, and the simulator. TAP.
usage: demo.py BUILD [CASE]..."""
import json
import os
import re
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from slurm_world import why_not  # noqa: E402
from world import BUILD, LIBRARY, SOFTGPU, TANDEM, TANDEMD, Skip, run_cases  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SIMULATOR = f"{BUILD}/src/sim/tandem-sim"


def run(folder, *options):
    """Runs the demo on what scripts/build would make of this build."""
    for program, name in ((SOFTGPU, "bin/softgpu"), (TANDEM, "bin/tandem"),
                          (TANDEMD, "bin/tandemd"), (SIMULATOR, "bin/tandem-sim"),
                          (LIBRARY, "lib/libtandem.so"), (f"{BUILD}/examples", "examples"),
                          (f"{BUILD}/src/slurm", "src/slurm")):
        os.makedirs(os.path.dirname(f"{folder}/build/{name}"), exist_ok=True)
        os.symlink(program, f"{folder}/build/{name}")
    return subprocess.run(
        [f"{ROOT}/tools/run-cluster", *options], capture_output=True, text=True, timeout=400,
        cwd=folder, env=dict(os.environ, TANDEM_DEMO_BUILD=f"{folder}/build"))


def most_at_once(jobs):
    """The most jobs of one node that run at the same time."""
    return max(sum(b["start_s"] <= a["start_s"] < b["end_s"] and b["nodes"] == a["nodes"]
                   for b in jobs) for a in jobs)


def jobs_run_both_ways_and_in_the_simulator():
    missing = why_not() or (None if os.path.exists(f"{BUILD}/src/slurm/tandem-sched")
                            else "tandem-sched was not built")
    if missing:
        raise Skip(missing)
    with tempfile.TemporaryDirectory(prefix="tandem-demo-") as d:
        done = run(d, "--quick", "--jobs", "10", "--json", f"{d}/figures.json", "--data",
                   f"{d}/figures.dat")
        assert done.returncode == 0 and "a model in software, not a GPU" in done.stdout, done
        with open(f"{d}/figures.json") as f:
            ways = json.load(f)["ways"]
        assert [way["way"] for way in ways] == ["exclusive", "tandem"], ways
        for way in ways:
            assert len(way["jobs"]) == 10, way
            for job in way["jobs"]:
                assert job["arrival_s"] < job["start_s"] < job["end_s"], job
                assert all(re.fullmatch("node[1-4]", node) for node in job["nodes"]), job
            # Kernels take what the model says, however busy the machine is; those in flight when a
            # job is stopped are run again.
            used = way["figures"]["used_gpu_s"] / way["simulated"]["figures"]["used_gpu_s"]
            assert way["void"] or 0.8 < used < 1.2, (used, way)
        assert most_at_once(ways[0]["jobs"]) <= 2 and not ways[0]["figures"]["stops"], ways[0]
        with open(f"{d}/demo-out/cluster.html") as f:
            page = f.read()
        drawn = [ElementTree.fromstring(svg) for svg in re.findall("<svg.*?</svg>", page, re.S)]
        assert len(drawn) == 3 and all(svg.findall("{*}polyline") for svg in drawn), page[:2000]
        with open(f"{d}/figures.dat") as f:
            assert "wait_mean_s " in f.read()


def bad_options_are_quoted():
    with tempfile.TemporaryDirectory(prefix="tandem-demo-") as d:
        done = run(d, "--jobs", "61")
        assert done.returncode == 2 and '"61": expected 1 to 60' in done.stderr, done


run_cases([jobs_run_both_ways_and_in_the_simulator, bad_options_are_quoted])
