#!/usr/bin/env python3
"""Builds the probes with plain cc and runs them, most important first.

usage: gpu-probe [--only NAME,...] [--minutes N] [--out DIR] [--quick] [--list]

Each probe has its own time limit. A probe that crashes, hangs or prints malformed output is named,
and the next one runs. Answers go to DIR/report.json at once; another run with the same DIR does not
repeat them. --minutes: begins no probe that might not end in that time. Exit code 0: every probe
that began has answered.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# (name, seconds that it may take, number of the question in the design's list), most important
# first.
PROBES = [("chunks", 40, 1), ("host_numa", 20, 2), ("copies", 30, 3), ("unmapped", 20, 4),
          ("costs", 20, 5), ("capture", 20, 6), ("free_returns", 30, 7), ("slices", 30, 8),
          ("context_cost", 40, 9), ("lookup", 10, 10), ("nvml", 30, 11), ("mps", 45, 12),
          ("green", 20, 13), ("checkpoint", 50, 14), ("ipc", 20, 15), ("managed", 30, 16),
          ("priorities", 20, 17), ("clocks", 40, 18), ("interference", 35, 19), ("xid", 15, 20),
          ("signals", 40, 21), ("membarrier", 5, 22), ("limits", 20, 23), ("visible", 10, 24),
          ("graph_places", 10, 25), ("beyond", 15, 26), ("runtime", 55, 10),
          ("launch_memory", 15, 32), ("sync_memops", 5, 33), ("torch", 40, 34),]


def build(name, folder, compiler):
    """The program's path, or the compiler's complaint."""
    program = os.path.join(folder, name)
    sources = [f"{HERE}/{name}.c", f"{HERE}/probe.c"]
    command = [compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-I",
               os.path.join(HERE, "..", "..", "..", "src"), "-o", program, *sources, "-ldl",
               "-lpthread", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    return (program, None) if done.returncode == 0 else (None, done.stderr.strip().splitlines()[:1])


def question_of(name):
    with open(f"{HERE}/{name}.c") as f:
        found = re.search(r'probe_question\[\] =\s*((?:"[^"]*"\s*)+);', f.read())
    return "".join(re.findall(r'"([^"]*)"', found.group(1))) if found else ""


def check_row(line, name):
    row = json.loads(line)
    if (not isinstance(row, dict) or row.get("name") != name
        or not isinstance(row.get("answer"), str)
        or not isinstance(row.get("figures"), list)):
        raise ValueError("not a row")
    return row


def ask(command, name, limit, quick):
    """One row, always: the probe's own, or what became of it."""
    row = {"name": name,
           "question": question_of(name) if os.path.exists(f"{HERE}/{name}.c") else "",
           "figures": [], "driver": 0, "gpu": "", "software": False}
    began = time.monotonic()
    environment = dict(os.environ, PROBE_PTX=f"{HERE}/kernels.ptx")
    process = subprocess.Popen([*command, *(["--quick"] if quick else [])], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
                               env=environment, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=limit)
        lines = [line for line in out.splitlines() if line.strip()]
        if process.returncode < 0:
            row.update(failed=True,
                       answer=f"the probe crashed: {signal.Signals(-process.returncode).name}")
        elif process.returncode or len(lines) != 1:
            row.update(failed=True,
                       answer=f"the probe ended with {process.returncode} and {len(lines)} rows "
                       "instead of one")
        else:
            row = check_row(lines[0], name)
    except subprocess.TimeoutExpired:
        row.update(failed=True, answer=f"the probe hung: no answer within {limit} s")
    except ValueError:
        row.update(failed=True, answer="the probe's row is not one: " + lines[0][:80])
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # whatever it has started
        except ProcessLookupError:
            pass
        process.communicate()
    row["seconds"] = round(time.monotonic() - began, 2)
    return row


def load(path):
    try:
        with open(path) as f:
            return {row["name"]: row for row in json.load(f)["rows"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save(rows, out):
    ordered = [rows[name] for name, _, _ in PROBES if name in rows]
    temporary = f"{out}/report.json.new"
    with open(temporary, "w") as f:
        json.dump({"rows": ordered}, f, indent=1)
    os.replace(temporary, f"{out}/report.json")
    with open(f"{out}/report.md", "w") as f:
        f.write(report(ordered))


def report(rows):
    gpus = sorted({row["gpu"] for row in rows if row.get("gpu")})
    text = ["# What the probes found", ""]
    if any(row.get("software") for row in rows):
        text += ["**A software GPU: a model's answers. Nothing here is a measurement of a GPU.**",
                 ""]
    driver = max((row.get("driver", 0) for row in rows), default=0)
    text += [f"GPU: {', '.join(gpus) or 'none'}; driver's CUDA version: "
             f"{driver // 1000}.{driver % 1000 // 10}. Command: `scripts/gpu-probe`.", ""]
    numbers = {name: number for name, _, number in PROBES}
    for row in rows:
        text += [f"## {numbers.get(row['name'], '?')}. {row['name']}", "", row["question"], "",
                 row["answer"].strip(), ""]
        if row["figures"]:
            text += ["| figure | median | p5 | p95 | n | unit |", "|---|---|---|---|---|---|"]
            text += ["| {name} | {median:g} | {p5:g} | {p95:g} | {n} | {unit} |".format(**figure)
                     for figure in row["figures"]]
            text.append("")
    return "\n".join(text)


def is_answered(row):
    """Where there is no GPU, nothing was learnt: it is asked again elsewhere."""
    return bool(row) and not row.get("failed") and not row["answer"].startswith("no GPU")


def main():
    parser = argparse.ArgumentParser(prog="gpu-probe", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME,...")
    parser.add_argument("--minutes", type=float, default=12, metavar="N")
    parser.add_argument("--out", default="gpu-probe-out", metavar="DIR")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = PROBES
    if options.only:
        names = options.only.split(",")
        for name in names:
            if name not in [p[0] for p in PROBES]:
                sys.exit(f'gpu-probe: "{name}" is not a probe: expected some of '
                         f'{",".join(p[0] for p in PROBES)}')
        chosen = [p for p in PROBES if p[0] in names]
    if options.list:
        for name, limit, number in chosen:
            print(f"{number:2}  {name:14} at most {limit:3} s  {question_of(name)}")
        print(f"at most {sum(p[1] for p in chosen) / 60:.1f} minutes in all")
        return 0
    os.makedirs(f"{options.out}/bin", exist_ok=True)
    compiler = os.environ.get("CC", "cc")
    rows = load(f"{options.out}/report.json")
    deadline = time.monotonic() + 60 * options.minutes
    failed = 0
    for name, limit, _ in chosen:
        if is_answered(rows.get(name)):
            print(f"{name}: answered before", flush=True)
            continue
        if time.monotonic() + (limit / 8 if options.quick else limit) > deadline:
            print(f"{name}: not begun: it might take {limit} s and the time is nearly over",
                  flush=True)
            continue
        program, complaint = build(name, f"{options.out}/bin", compiler)
        if program:
            rows[name] = ask([program], name, limit, options.quick)
        else:
            rows[name] = {"name": name, "question": question_of(name),
                          "answer": f"does not build: {complaint}", "figures": [], "driver": 0,
                          "gpu": "", "software": False, "failed": True, "seconds": 0}
        failed += bool(rows[name].get("failed"))
        save(rows, options.out)
        print(f"{name}: {rows[name]['answer'].strip()[:160]}", flush=True)
    print(f"{options.out}/report.md and report.json: {sum(map(is_answered, rows.values()))} of "
          f"{len(PROBES)} questions answered")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
