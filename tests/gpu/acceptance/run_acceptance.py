#!/usr/bin/env python3
"""Runs programs on this machine's GPU alone, together bare and together under tandem, and writes a
report.

usage: gpu-acceptance [--minutes N] [--out DIR] [--only NAME,...] [--capacity SIZE]
                      [--software] [--list]

Each stage's result goes to DIR/report.json at once; another run with the same DIR does not repeat
it. --minutes: begins no stage that might not end in that time. Exit code 0: every stage that began
was right, or could not run here.
"""
import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plain_build  # noqa: E402

ROOT = plain_build.ROOT
HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = 5  # of runs whose difference is the cost of tandem


class Absent(Exception):
    """There is no means for this stage here."""


class Wrong(Exception):
    pass


def figure(name, value, unit, n=1, low=None, high=None):
    return {"name": name, "median": value, "low": low, "high": high, "n": n, "unit": unit}


def spread(name, values, unit):
    return figure(name, round(statistics.median(values), 3), unit, len(values),
                  round(min(values), 3), round(max(values), 3))


class Bench:
    """The built programs, a private directory, and the GPU that they run on."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.bin = f"{options.out}/bin"
        self.environment = dict(os.environ, TANDEM_SOCKET=f"{directory}/tandem/socket",
                                TANDEM_LOCKS=f"{directory}/locks",
                                TANDEM_LIB=f"{self.bin}/libtandem.so",
                                TANDEMD=f"{self.bin}/tandemd")
        self.wrap = []
        if options.software:
            build = os.path.abspath(options.build)
            self.environment.update(SOFTGPU_DIR=f"{directory}/gpu",
                                    SOFTGPU_LIB=f"{build}/softgpu/driver")
            self.wrap = [f"{build}/softgpu/cli/softgpu", "run", "--"]
        self.tiny = options.software

    def driver(self):
        if self.options.software:
            return os.path.abspath(f"{self.options.build}/softgpu/driver/libcuda.so.1")
        out = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
        found = (re.findall(r"libcuda\.so\.1 .*=> (\S+)", out)
                 or glob.glob("/usr/lib*/**/libcuda.so.1", recursive=True))
        if not found:
            raise Absent("no libcuda.so.1: no NVIDIA driver here")
        return found[0]

    def start(self, command, under=None):
        """under: options of tandem run, or None for bare."""
        command = [*self.wrap,
                   *([f"{self.bin}/tandem", "run", *under, "--"] if under is not None else []),
                   *command]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def end(self, process, limit):
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Wrong(f"{process.args[-1]}: not over after {limit} s")
        if process.returncode:
            raise Wrong(f"{' '.join(process.args)[-80:]} ended with {process.returncode}: "
                        f"{err.strip()[-300:]}")
        return out

    def call(self, command, under=None, limit=120):
        return self.end(self.start(command, under), limit)

    def json(self, command, under=None, limit=120):
        return json.loads(self.call(command, under, limit).strip().splitlines()[-1])

    def tandem(self, *arguments):
        return subprocess.run([f"{self.bin}/tandem", *arguments], env=self.environment,
                              capture_output=True, text=True, timeout=60).stdout

    def daemon(self, *options):
        self.tandem("stop", "--force")
        process = subprocess.Popen([*self.wrap, f"{self.bin}/tandemd", *options],
                                   env=self.environment, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not os.path.exists(self.environment["TANDEM_SOCKET"]):
            if process.poll() is not None or time.monotonic() > end:
                raise Wrong("tandemd does not start")
            time.sleep(0.01)
        return process

    def stop(self):
        self.tandem("stop", "--force")

    def capacity(self):
        return [] if self.tiny else ["--set", f"gpu.capacity={self.options.capacity}"]

    def size(self, share):
        """Bytes: a share of what the GPU is treated as."""
        number, unit = re.fullmatch(r"(\d+)([MG]i)",
                                    "62Mi" if self.tiny else self.options.capacity).groups()
        return int(int(number) * {"Mi": 1 << 20, "Gi": 1 << 30}[unit] * share)

    def train(self, share, steps, gpu="20ms"):
        return [f"{self.bin}/train", "--size", str(self.size(share)), "--gpu", gpu, "--cpu", "1ms",
                "--steps", str(steps)]


# -- stages: each returns (answer, [figure]) --


def stage_build(bench):
    plain_build.build(os.environ.get("CC", "cc"), bench.driver(), bench.options.out)
    return "everything compiles with cc alone", []


def stage_doctor(bench):
    if bench.options.software:
        bench.call(["true"])
    done = subprocess.run([*bench.wrap, f"{bench.bin}/tandem", "doctor"], env=bench.environment,
                          capture_output=True, text=True, timeout=60)
    bench.stop()
    return done.stdout.strip().replace("\n", "; "), []


def checked(result):
    if not result["checksum_ok"]:
        raise Wrong(f"a sum is wrong: {result}")
    return result["seconds"]


def stage_alone(bench):
    command, figures = bench.train(0.25, 20), []
    bench.daemon(*bench.capacity())
    for backend in ("plain", "swap"):
        bare, under = [], []
        for _ in range(2 if bench.tiny else PAIRS):
            bare.append(checked(bench.json(command)))
            under.append(checked(bench.json(command, ["--backend", backend])))
        cost = [100 * (u / b - 1) for u, b in zip(under, bare)]
        figures += [spread(f"run time, bare ({backend})", bare, "s"),
                    spread(f"run time, {backend}", under, "s"),
                    spread(f"cost of {backend}", cost, "%")]
    bench.stop()
    return "sums right, bare and under tandem", figures


def stage_pair(bench):
    command = bench.train(0.75, 4 if bench.tiny else 40, "100ms")
    bench.daemon(*bench.capacity())
    alone = checked(bench.json(command, ["--backend", "swap"]))
    began = time.monotonic()
    both = [bench.start(command, ["--backend", "swap", "--name", name]) for name in ("a", "b")]
    for process in both:
        checked(json.loads(bench.end(process, 300).strip().splitlines()[-1]))
    together = time.monotonic() - began
    events = json.loads(bench.tandem("events", "--json") or "[]")
    bench.stop()
    opened = [e for e in events if e["kind"] == "opened"]
    handovers = sum(1 for before, e in zip(opened, opened[1:]) if before["pid"] != e["pid"])
    if not handovers:
        raise Wrong("they never took turns")
    figures = [figure("one, under tandem", round(alone, 3), "s"),
               figure("both together", round(together, 3), "s"),
               figure("hand-overs", handovers, ""),
               figure("both over twice one", round(together / (2 * alone), 3), "ratio")]
    turns = turns_of(events)
    if turns:
        figures += [spread("end of one's work to the other open", [ns / 1e6 for ns, _ in turns],
                           "ms"),
                    spread("bytes that left in that time", [out / 2**20 for _, out in turns],
                           "MiB"),
                    spread("rate of leaving, while others came", [out / ns for ns, out in turns],
                           "GB/s")]
    return f"two of {bench.size(0.75) >> 20} MiB took turns; sums right", figures


def turns_of(events):
    """(ns, bytes out) of each hand-over in which memory left, by the daemon's own events."""
    turns, drained, out = [], None, 0
    for e in events:
        if e["kind"] == "drained":
            drained, out = e["time_ns"], 0
        elif e["kind"] == "shrunk":
            out += e["value_bytes"]
        elif e["kind"] == "opened" and drained and out and e["time_ns"] > drained:
            turns.append((e["time_ns"] - drained, out))
            drained = None
    return turns


def stage_nvcc(bench):
    nvcc = (shutil.which("nvcc")
            or (os.path.exists("/usr/local/cuda/bin/nvcc") and "/usr/local/cuda/bin/nvcc"))
    if not nvcc:
        raise Absent("no nvcc")
    folder = f"{bench.options.out}/nvcc"
    os.makedirs(folder, exist_ok=True)
    names = sorted(os.path.splitext(os.path.basename(p))[0]
                   for p in glob.glob(f"{ROOT}/tests/integration/cudart/*.cu"))
    names = [n for n in names
             if not n.startswith("relocatable")
             and n not in ("refused", "reset", "print", "ipc", "pool_sharing")]
    names = names[:2] if bench.tiny else names
    bench.daemon(*bench.capacity())
    wrong, not_built = [], []
    for name in names:
        options = (["-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"]
                   if bench.tiny
                   else ["-arch=native"])
        done = subprocess.run([nvcc, "-O1", "-w", *options, "-o", f"{folder}/{name}",
                               f"{ROOT}/tests/integration/cudart/{name}.cu"], capture_output=True,
                              text=True)
        if done.returncode:
            not_built.append(name)
            continue
        try:
            if (bench.call([f"{folder}/{name}"], limit=60)
                != bench.call([f"{folder}/{name}"], ["--backend", "swap"], 60)):
                wrong.append(f"{name}: another output")
        except Wrong as problem:
            wrong.append(f"{name}: {problem}")
    bench.stop()
    if wrong:
        raise Wrong("; ".join(wrong))
    return (f"{len(names) - len(not_built)} programs print the same bare and under tandem"
            + (f"; not built: {', '.join(not_built)}" if not_built else ""), [])


def need(module):
    if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
        raise Absent(f"no {module}")


def stage_torch(bench):
    need("torch")
    command = [sys.executable, f"{ROOT}/examples/pytorch/train.py", "--steps", "60"]
    bench.daemon(*bench.capacity())
    bare, under = bench.json(command, limit=240), bench.json(command, ["--backend", "swap"], 240)
    both = [bench.start(command, ["--backend", "swap"]) for _ in range(2)]
    both = [json.loads(bench.end(p, 400).strip().splitlines()[-1]) for p in both]
    bench.stop()
    losses = [r["loss"] for r in (bare, under, *both)]
    if max(losses) - min(losses) > 0.02 * abs(losses[0]) + 0.01:
        raise Wrong(f"losses differ: {losses}")
    return (f"losses agree: {losses}",
            [figure("step, bare", bare["step_ms_median"], "ms"),
             figure("step, under tandem", under["step_ms_median"], "ms"),
             figure("cost", round(100 * (under["step_ms_median"] / bare["step_ms_median"] - 1), 2),
                    "%"), figure("run, bare", bare["seconds"], "s"),
             spread("run, two at once under tandem", [r["seconds"] for r in both], "s"),
             figure("peak memory", round(bare["peak_bytes"] / 2**30, 2), "GiB")])


def stage_inference(bench):
    need("torch")
    serve = [sys.executable, f"{HERE}/serve.py"]
    load = [sys.executable, f"{ROOT}/examples/pytorch/train.py", "--steps", "100000"]
    figures = []
    for mode, under, load_under in (("alone", None, None), ("beside training, bare", None, None),
                                    ("beside training, tandem, online", ["--class", "online"],
                                     ["--class", "besteffort"])):
        if under is not None:
            bench.daemon(*bench.capacity())
        other = bench.start(load, load_under) if mode != "alone" else None
        try:
            if other:
                time.sleep(20)  # it compiles its kernels first
            result = bench.json(serve, under, 120)
        finally:
            if other:
                other.kill()
                other.communicate()
            bench.stop()
        figures += [figure(f"p50, {mode}", result["p50_ms"], "ms", result["n"]),
                    figure(f"p99, {mode}", result["p99_ms"], "ms", result["n"])]
    return "requests of a small model, one after the other", figures


def trainings(bench, told):
    """A guaranteed program that is on the host for a part of each step, and one that always has
    work. The software GPU has no PyTorch, so there it is the example in C."""
    if bench.tiny:
        return ([f"{bench.bin}/train", "--size", "1m", "--gpu", "20ms", "--cpu", "40ms", "--steps",
                 "60", "--times", "on", "--tell", "on" if told else "off"],
                [f"{bench.bin}/train", "--size", "1m", "--gpu", "100ms", "--cpu", "0ms", "--kernel",
                 "500us", "--steps", "1000000"])
    train = [sys.executable, f"{ROOT}/examples/pytorch/train.py"]
    return ([*train, "--steps", "200", "--idle", "0.1", "--times", *(["--tell"] if told else [])],
            [*train, "--width", "512", "--steps", "1000000"])


def run_protected(bench, policy, told):
    """Returns its result beside the other one, and the steps per second of that; None: it does not
    print them."""
    guaranteed, load = trainings(bench, told)
    if policy:
        bench.daemon(*bench.capacity(), "--set", f"policy={policy}")
    began = time.monotonic()
    other = bench.start(load, ["--class", "besteffort"] if policy else None)
    try:
        time.sleep(1 if bench.tiny else 30)  # it compiles its kernels first
        result = bench.json(guaranteed,
                            ["--class", "guaranteed", "--slack", "5%"] if policy else None, 300)
        other.terminate()
        try:
            out, _ = other.communicate(timeout=30)
            rate = json.loads(out.strip().splitlines()[-1])["steps"] / (time.monotonic() - began)
        except (subprocess.TimeoutExpired, ValueError, IndexError):
            rate = None
    finally:
        other.kill()
        other.communicate()
        bench.stop()
    return result, rate


def stage_protect(bench):
    if not bench.tiny:
        need("torch")
    bench.environment["PYTHONPATH"] = f"{ROOT}/python"
    alone, figures = bench.json(trainings(bench, False)[0], limit=300), []
    results = {"alone": (alone, None)}
    for name, policy, told in (("beside the other, bare", None, False), ("antman", "antman", False),
                               ("tandem", "tandem", False), ("tandem, steps told", "tandem", True)):
        results[name] = run_protected(bench, policy, told)
    for name, (result, rate) in results.items():
        # The first third settles in.
        times = sorted(result["step_ms"][len(result["step_ms"]) // 3:])
        figures += [figure(f"step, {name}", times[len(times) // 2], "ms", len(times),
                           times[len(times) // 20], times[len(times) - 1 - len(times) // 20])]
        if rate is not None:
            figures.append(figure(f"the other's steps a second, {name}", round(rate, 2), "1/s"))
    if bench.tiny:
        for result, _ in results.values():
            checked(result)
        return "rehearsed with examples/train: no PyTorch on the software GPU", figures
    losses = [result["loss"] for result, _ in results.values()]
    if max(losses) - min(losses) > 0.02 * abs(losses[0]) + 0.01:
        raise Wrong(f"losses differ: {losses}")
    return ("a guaranteed training beside another; steps' median, 5th and 95th percentile; losses "
            f"agree: {losses}", figures)


def stage_libraries(bench):
    answers = []
    bench.daemon(*bench.capacity())
    for module in ("cupy", "jax"):
        try:
            need(module)
        except Absent as absent:
            answers.append(str(absent))
            continue
        command = [sys.executable, f"{HERE}/sums.py", module]
        bare, under = (bench.call(command, limit=240).split()[-1],
                       bench.call(command, ["--backend", "swap"], 240).split()[-1])
        if bare != under:
            raise Wrong(f"{module}: {bare} bare, {under} under tandem")
        answers.append(f"{module}: {bare} both times")
    bench.stop()
    if all(a.startswith("no ") for a in answers):
        raise Absent("; ".join(answers))
    return "; ".join(answers), []


def stage_managed(bench):
    command = [*bench.train(0.25, 10), "--memory", "managed"]
    both = [bench.start(command) for _ in range(2)]
    return ("sums right",
            [spread("two at once, managed memory, within what is free",
                    [checked(json.loads(bench.end(p, 200).strip().splitlines()[-1])) for p in both],
                    "s")])


# Most important first: name, at most so many seconds, function.
STAGES = [("build", 120, stage_build), ("doctor", 30, stage_doctor), ("alone", 180, stage_alone),
          ("pair", 240, stage_pair), ("torch", 420, stage_torch), ("nvcc", 420, stage_nvcc),
          ("protect", 600, stage_protect), ("inference", 240, stage_inference),
          ("libraries", 180, stage_libraries), ("managed", 60, stage_managed),]


def load(path):
    try:
        with open(path) as f:
            return {row["name"]: row for row in json.load(f)["rows"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save(rows, options):
    ordered = [rows[name] for name, _, _ in STAGES if name in rows]
    with open(f"{options.out}/report.json.new", "w") as f:
        json.dump({"software": options.software, "capacity": options.capacity, "rows": ordered}, f,
                  indent=1)
    os.replace(f"{options.out}/report.json.new", f"{options.out}/report.json")
    with open(f"{options.out}/report.md", "w") as f:
        f.write(report(ordered, options))


def report(rows, options):
    text = ["# Acceptance", ""]
    if options.software:
        text += ["**A software GPU: a model's figures. Nothing here is a measurement of a GPU.**",
                 ""]
    command = ("scripts/gpu-acceptance"
               + (" --software" if options.software else f" --capacity {options.capacity}"))
    text += [f"GPU: {options.gpu}. Command: `{command}`.", ""]
    for row in rows:
        text += [f"## {row['name']}: {row['state']}", "", row["answer"], ""]
        if row["figures"]:
            text += ["| figure | median | least | most | n | unit |", "|---|---|---|---|---|---|"]
            text += ["| {} | {} | {} | {} | {} | {} |".format(*("" if f[k] is None else f[k]
                                                                for k
                                                                in ("name", "median", "low", "high",
                                                                    "n", "unit")))
                     for f in row["figures"]]
            text.append("")
    return "\n".join(text)


def run_stage(bench, name, function):
    began = time.monotonic()
    try:
        answer, figures = function(bench)
        row = {"state": "right", "answer": answer, "figures": figures}
    except Absent as absent:
        row = {"state": "no means here", "answer": str(absent), "figures": []}
    except (Wrong, plain_build.BuildError, subprocess.TimeoutExpired, OSError, ValueError, KeyError,
            IndexError) as problem:
        row = {"state": "wrong", "answer": f"{type(problem).__name__}: {problem}"[:2000],
               "figures": []}
        bench.stop()
    return {"name": name, "seconds": round(time.monotonic() - began, 1), **row}


def gpu_name(options):
    if options.software:
        return "softgpu tiny"
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version",
                               "--format=csv,noheader"], capture_output=True, text=True)
        return done.stdout.strip().splitlines()[0] if done.returncode == 0 else "unknown"
    except (OSError, IndexError):
        return "unknown"


def main():
    parser = argparse.ArgumentParser(prog="gpu-acceptance", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=25, metavar="N")
    parser.add_argument("--out", default="gpu-acceptance-out", metavar="DIR")
    parser.add_argument("--only", metavar="NAME,...")
    parser.add_argument("--capacity", default="16Gi", metavar="SIZE")
    parser.add_argument("--software", action="store_true")
    parser.add_argument("--build", default="build", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+[MG]i", options.capacity):
        sys.exit(f'gpu-acceptance: --capacity "{options.capacity}" is not a size: expected '
                 'something like 16Gi')
    names = [name for name, _, _ in STAGES]
    chosen = options.only.split(",") if options.only else names
    for name in chosen:
        if name not in names:
            sys.exit(f'gpu-acceptance: "{name}" is not a stage: expected some of {",".join(names)}')
    if options.list:
        for name, limit, _ in STAGES:
            print(f"{name:10} at most {limit:3} s")
        return 0
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    options.gpu = gpu_name(options)
    rows = load(f"{options.out}/report.json")
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="tandem-acceptance-") as directory:
        bench = Bench(options, directory)
        try:
            for name, limit, function in STAGES:
                if name not in chosen or name in rows:
                    continue
                if time.monotonic() + limit > end:
                    print(f"{name}: not begun, it may take {limit} s", flush=True)
                    continue
                rows[name] = run_stage(bench, name, function)
                save(rows, options)
                print(f"{name}: {rows[name]['state']} ({rows[name]['seconds']} s): "
                      f"{rows[name]['answer'][:160]}", flush=True)
        finally:
            if options.software:
                subprocess.run([bench.wrap[0], "stop"], env=bench.environment, capture_output=True)
    return 1 if any(rows[n]["state"] == "wrong" for n in chosen if n in rows) else 0


sys.exit(main())
