#!/usr/bin/env python3
"""Every experiment of tandem-sim on a small data set that is made here: its rows are those of
tests/data/sim/experiments.txt. TAP. usage: experiments.py TANDEM-SIM [--write | CASE...]

The data only look like the published ones: the shapes are theirs, the numbers come from formulas.
The rows say nothing about the papers, then; they say when the simulator computes something else.
Who changes that on purpose looks at the difference and runs this with --write.
"""
import gzip
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = f"{ROOT}/tests/data/sim/experiments.txt"
EXPERIMENTS = ["nvshare-table2", "antman-table2", "antman-trace", "dcuda", "dcuda-memory",
               "muxflow-sim", "muxflow-ablation", "muxflow-predictor", "mudi-sim", "mixed",
               "scale", "alibaba"]  # queues takes minutes
# These train with the system's BLAS, whose sums depend on the processor.
TRAINED = {"muxflow-sim", "muxflow-ablation", "muxflow-predictor", "mudi-sim", "mixed"}
NEAR = 0.05
SLOW = {"antman-trace", *TRAINED}
DAY_S = 86400
KINDS = [*(f"ResNet-18 (batch size {n})" for n in (16, 32, 64, 128, 256)),
         *(f"ResNet-50 (batch size {n})" for n in (16, 32, 64, 128)),
         *(f"Transformer (batch size {n})" for n in (16, 32, 64, 128, 256)),
         *(f"LM (batch size {n})" for n in (5, 10, 20, 40, 80)),
         *(f"Recommendation (batch size {n})" for n in (512, 1024, 2048, 4096, 8192)),
         "A3C", "CycleGAN"]
SERVICES = {"resnet50": 8, "inceptionv3": 10, "vgg19": 14, "bert": 13, "densenet201": 16,
            "resnet152": 18}  # milliseconds of a request by itself


class Skip(Exception):
    """What the build lacks."""


def philly(draw):
    yield "job_id,submit_time_s,duration_s,num_gpus,virtual_cluster"
    for i in range(4000):
        submit_s = 20 * DAY_S + (79 * DAY_S) * i / 4000
        duration_s = min(400000, int(60 + math.exp(7 + 2 * draw.gauss(0, 1))))
        gpus = draw.choice([1] * 45 + [2, 4, 8])
        vc = draw.choice(["103959", "11cb48", "6c71a0", "6214e9"])
        yield f"p{i},{submit_s:.0f},{duration_s},{gpus},{vc}"
    yield f"long,{100 * DAY_S},500000,1,6214e9"


def helios(draw):
    yield "job_id,submit_time_s,duration_s,num_gpus,virtual_cluster"
    for i in range(900):
        yield f"h{i},{i * 2000},{60 + int(draw.expovariate(1 / 3000))},{draw.choice([4, 8, 16])},v"


def pods(draw):
    yield "job_id,submit_time_s,duration_s,num_gpus,gpu_milli,qos,cpu_milli,memory_mib"
    for i in range(1100):
        gpus = draw.choice([0, 1, 1, 1, 1, 2, 8])
        milli = draw.choice([250, 460, 1000]) if gpus == 1 else 1000 if gpus else 0
        yield (f"a{i},{i * 1500},{60 + int(draw.expovariate(1 / 2500))},{gpus},{milli},"
               f"{draw.choice(['LS', 'BE'])},{4000 * (1 + gpus)},{8192 * (1 + gpus)}")


def hosts(_):
    yield "node,cpu_milli,memory_mib,num_gpus,gpu_model"
    for i in range(60):
        yield f"n{i},96000,393216,{(0, 2, 4, 8)[i % 4]},T4"


def pairs(draw):
    """Each kind presses by its place in the list, and feels as much as it presses, more or less."""
    yield "gpu_type,job_a,job_b,alone_a,alone_b,together_a,together_b,feasible"
    press = [0.2 + 0.9 * ((7 * k) % 26) / 25 for k in range(len(KINDS))]
    feel = [p * draw.uniform(0.7, 1.3) for p in press]
    for a, kind in enumerate(KINDS):
        for b in range(a, len(KINDS)):
            of_a, of_b = (1 / (1 + feel[x] * press[y]) * draw.uniform(0.97, 1.03)
                          for x, y in ((a, b), (b, a)))
            fits = press[a] + press[b] < 2.1
            yield (f"p100,{kind},{KINDS[b]},{5 + a},{5 + b},{(5 + a) * of_a * fits:.5f},"
                   f"{(5 + b) * of_b * fits:.5f},{int(fits)}")


def services(_):
    yield "model,mig_gpcs,batch_size,num_processes,throughput_per_process_rps,latency_s,feasible"
    for name, ms in SERVICES.items():
        for gpcs in (1, 2, 3, 4, 7):
            for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256):
                took_s = ms / 1000 * (0.4 + 0.6 * 7 / gpcs) * max(1, batch / 12)
                yield f"{name},{gpcs},{batch},1,{batch / took_s:.3f},{took_s:.4f},1"


def recommenders(_):
    yield "model,batch_size,p50_ms"
    for name, ms in (("dien", 6.5), ("mtwnd", 4), ("wnd", 3)):
        for batch in (50, 100, 200):
            yield f"{name},{batch},{ms * batch / 100}"


FILES = {"jobs_philly.csv.gz": philly, "jobs_helios_venus_2vc.csv.gz": helios,
         "jobs_alibaba_gpu2023.csv.gz": pods, "nodes_alibaba_gpu2023.csv": hosts,
         "colocation_gavel.csv": pairs, "infer_parvagpu_a100_mig.csv": services,
         "infer_kairos_t4.csv": recommenders}


def make_data(folder):
    for name, lines in FILES.items():
        open_it = gzip.open if name.endswith(".gz") else open
        with open_it(f"{folder}/{name}", "wt") as f:
            f.writelines(line + "\n" for line in lines(random.Random(1)))


def rows_of(sim, name, data):
    """What the experiment writes: its rows, and its report for people without the rows."""
    with tempfile.TemporaryDirectory(prefix="tandem-sim-") as out:
        done = subprocess.run([sim, "experiment", name, "--quick", "--seeds",
                               "1" if name in SLOW else "3", "--jobs", "1", "--data", data,
                               "--out", out], capture_output=True, text=True, timeout=900)
        if "built without" in done.stderr:
            raise Skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        with open(f"{out}/result.json") as f:
            found = json.load(f)
        with open(f"{out}/verdicts.json") as f:
            claims = json.load(f)
    rows = [" | ".join((name, row["metric"], row["ours"], row["spread"], row["verdict"]))
            for row in found if "from run to run" not in row["note"]]
    return rows + [" | ".join((name, "claim", row["metric"], row["ours"], row["verdict"],
                               row["why"])) for row in claims]


def differ(is_trained, row, other):
    if not is_trained:
        return row != other
    number = r"\d+(?:\.\d+)?"
    if re.sub(number, "#", row) != re.sub(number, "#", other):
        return True
    return any(abs(float(a) - float(b)) > NEAR * max(1, abs(float(a)))
               for a, b in zip(re.findall(number, row), re.findall(number, other)))


def as_kept(sim, name, data):
    with open(ROWS) as f:
        kept = [line.rstrip("\n") for line in f if line.startswith(name + " | ")]
    rows = rows_of(sim, name, data)
    different = [f"{old}\n{new}" for old, new in zip(kept, rows)
                 if differ(name in TRAINED, old, new)]
    assert len(kept) == len(rows) and not different, (
        f"{len(kept)} rows were kept, {len(rows)} found; different (kept, found):\n"
        + "\n".join(different[:10]))


def without_data(sim):
    with tempfile.TemporaryDirectory(prefix="tandem-sim-none-") as nothing:
        for name in EXPERIMENTS:
            done = subprocess.run([sim, "experiment", name, "--quick", "--data", nothing],
                                  capture_output=True, text=True, timeout=900)
            assert (name in ("nvshare-table2", "dcuda-memory")
                    or "built without" in done.stderr
                    or done.returncode == 2 and nothing in done.stderr
                    and "No such file" in done.stderr), (name, done)


def main():
    sim, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="tandem-sim-data-") as data:
        make_data(data)
        if chosen == ["--write"]:
            with open(ROWS, "w") as f:
                f.writelines(row + "\n" for name in EXPERIMENTS for row in rows_of(sim, name, data))
            return
        cases = {f"the_rows_of_{name.replace('-', '_')}_are_as_kept":
                 lambda name=name: as_kept(sim, name, data) for name in EXPERIMENTS}
        cases["a_file_that_is_missing_is_named"] = lambda: without_data(sim)
        print(f"1..{len(cases)}")
        for number, (case, run) in enumerate(cases.items(), 1):
            if chosen and case not in chosen:
                print(f"ok {number} - {case} # SKIP not chosen", flush=True)
                continue
            try:
                run()
                print(f"ok {number} - {case}", flush=True)
            except Skip as why:
                print(f"ok {number} - {case} # SKIP {why}", flush=True)
            except (AssertionError, KeyError, ValueError, subprocess.TimeoutExpired) as problem:
                print(f"not ok {number} - {case}\n# " + str(problem).replace("\n", "\n# "),
                      flush=True)


main()
