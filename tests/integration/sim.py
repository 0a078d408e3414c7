#!/usr/bin/env python3
"""tandem-sim's command line: same seed, same bytes; bad lines are named; missing things are
reported. TAP. usage: sim.py TANDEM-SIM FIT-MODEL (the programs' paths)"""
import csv
import gzip
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = f"{ROOT}/tests/data/sim"
SIM = os.path.abspath(sys.argv[1])
FIT_MODEL = os.path.abspath(sys.argv[2])
POLICIES = ["tandem", "antman", "fifo", "gandiva", "preempt"]
RUN = ["run", "--trace", f"{DATA}/jobs.csv", "--cluster", f"{DATA}/cluster.csv", "--policy",
       "tandem", "--compare", "antman,fifo,gandiva,preempt"]


def call(*arguments, timeout=180):
    return subprocess.run([SIM, *arguments], capture_output=True, text=True, check=False,
                          timeout=timeout)


def files_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(f"{folder}/{name}", "rb") as f:
            found[name] = f.read()
    return found


def same_seed_same_bytes(folder):
    outputs = []
    for k in range(2):
        done = call(*RUN, "--seed", "7", "--guaranteed", "50%", "--out", f"{folder}/{k}")
        assert done.returncode == 0, done.stderr
        outputs.append((done.stdout, files_of(f"{folder}/{k}")))
    assert outputs[0] == outputs[1]
    names = set(outputs[0][1])
    assert (names
            == {"summary.csv", "summary.json", "report.html",
                *(f"jobs-{p}.csv" for p in POLICIES)}), names


def files_are_what_they_say(folder):
    done = call(*RUN, "--out", f"{folder}/out")
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/out/summary.json") as f:
        summary = json.load(f)
    assert [p["policy"] for p in summary["policies"]] == POLICIES
    assert all(p["done"] == 12 and p["unfinished"] == 0 for p in summary["policies"]), summary
    mean = {p["policy"]: p["jct_mean_s"] for p in summary["policies"]}
    # Four short jobs in a burst are not all put on the one idle GPU. tandem stops the long ones for
    # the short ones, which pays only where there are many of these; else it costs little.
    assert mean["antman"] < mean["fifo"] < mean["preempt"], mean
    assert mean["tandem"] < 1.1 * mean["fifo"], mean
    with open(f"{folder}/out/report.html") as f:
        page = f.read()
    assert (page.count("<svg") == 3 and page.count("<svg") == page.count("</svg>")
            and "<script" not in page and f"{DATA}/cluster.csv" in page
            and f"{DATA}/jobs.csv" in page
            and "http" not in page)
    with open(f"{folder}/out/jobs-fifo.csv") as f:
        assert len(f.readlines()) == 13


def a_bad_line_is_named_and_skipped_only_when_told(folder):
    trace = f"{folder}/bad.csv"
    with open(trace, "w") as f:
        f.write("submit_time_s,duration_s,num_gpus\n0,10,1\n1,ten,1\n2,10,1\n")
    done = call("run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv")
    assert (done.returncode == 2
            and f'{trace}:3: duration_s is "ten": expected a number' in done.stderr
            and not done.stdout), done
    done = call("run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv", "--skip-bad")
    assert done.returncode == 0 and "left out 1 line of" in done.stderr, done


def write(path, text, mode="w"):
    with open(path, mode) as f:
        f.write(text)
    return path


def who_loses_jobs_is_the_best_at_nothing(folder):
    # 640 GPUs; AntMan and tandem have gangs of at most 512, and fail the job that asks for 600.
    cluster = write(f"{folder}/cluster.csv",
                    "node,num_gpus\n" + "".join(f"n{i},16\n" for i in range(40)))
    trace = write(f"{folder}/jobs.csv",
                  "job_id,submit_time_s,duration_s,num_gpus\nhuge,0,9000,600\n"
                  + "".join(f"j{i},{i},100,1\n" for i in range(1, 61)))
    done = call("run", "--trace", trace, "--cluster", cluster, "--policy", "tandem", "--compare",
                "gandiva,fifo", "--out", f"{folder}/out")
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/out/summary.json") as f:
        summary = json.load(f)
    tandem, gandiva, fifo = summary["policies"]
    assert ((tandem["failed"], gandiva["failed"], fifo["failed"]) == (1, 0, 0)
            and summary.get("baseline") == "fifo"), summary
    assert ({p["counted"] for p in summary["policies"]} == {60} and fifo["makespan_s"] < 300
            and fifo["simulated_s"] >= 9000), summary
    for text in ("tandem left jobs undone: 1 FAILED, 0 not finished.",
                 "are of the 60 of 61 jobs that every policy has done.",
                 "tandem is not better than fifo: it leaves more jobs undone."):
        assert (text in done.stdout
                and any(text in said for said in summary["summary"])), (text, done.stdout)
    with open(f"{folder}/out/report.html") as f:
        page = f.read()
    assert "tandem is not better than fifo" in page and "times as fast" not in page
    rows = [re.findall(r"<td([^>]*)>", row) for row in page.split("<tr>")[2:]]
    assert (rows and not any("best" in cells[1] for cells in rows)
            and any("best" in cells[3] for cells in rows)), rows
    assert any("loss" in cells[1] for cells in rows)
    with open(f"{folder}/out/summary.csv") as f:
        assert "tandem,failed,,1\n" in f.readlines()


def the_headline_is_against_fifo(folder):
    done = call(*RUN)
    assert "Compared with fifo: under tandem a job is complete " in done.stdout, done.stdout
    done = call(*RUN, "--compare", "gandiva,antman")
    assert "Compared with gandiva: under tandem a job is complete " in done.stdout, done.stdout


def what_no_policy_could_place_is_named_by_file_and_line(folder):
    trace = write(f"{folder}/jobs.csv",
                  "job_id,submit_time_s,duration_s,num_gpus,memory_gib\n"
                  "a,5,10,1,1\nfat,0,10,1,17\nb,1,10,1,16\nwide,2,10,7,1\n")
    for policy in POLICIES:
        done = call("run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv", "--policy", policy)
        assert done.returncode == 2 and not done.stdout, done
        assert (f'{trace}:3: job "fat" asks for more memory than a GPU of the cluster has: 1 of 6 '
                'GPUs, 17 of 16 GiB on each'
                in done.stderr), done
    done = call("run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv", "--skip-bad", "--out",
                folder)
    assert (done.returncode == 0 and "left out 2 lines of" in done.stderr
            and re.search(r"^jobs +2 ", done.stdout, re.M)), done
    with open(f"{folder}/report.html") as f:
        assert "2 asked for more than the cluster has" in f.read()


def what_has_no_effect_is_said(folder):
    trace = write(f"{folder}/jobs.csv",
                  "submit_time_s,duration_s,num_gpus,gpu_milli,class,gpu_model,cpu_milli,"
                  "memory_mib,batch_size\n0,10,1,500,online,a100,4000,1,8\n1,10,1,1000,,,,,\n")
    cluster = write(f"{folder}/cluster.csv",
                    "node,num_gpus,gpu_model,cpu_milli,gpu_memory_gib,rack\n"
                    "c,0,,1,,x\na,1,v100,1,16,x\nb,1,a100,1,40,x\n")
    done = call("run", "--trace", trace, "--cluster", cluster, "--out", folder)
    notes = ["columns of the trace that are not used: gpu_model",
             "gpu_milli is not used: who asks for part of a GPU counts as a job of a whole one (1 "
             "of 2 jobs)", "cpu_milli is not used: every node has",
             "memory_mib is not used: every node has", "batch_size is not used (1 of 2 jobs)",
             "class online counts as guaranteed, and nobody's latency is looked at (1 of 2 jobs)",
             "columns of the cluster that are not used: rack",
             "gpu_model is not used: all GPUs are as fast",
             "gpu_memory_gib: every GPU counts as one of 16 GiB, the least (1 of 2 nodes have "
             "more)", "cpu_milli and memory_mib of nodes are not used"]
    with open(f"{folder}/report.html") as f:
        page = f.read()
    with open(f"{folder}/summary.json") as f:
        summary = json.load(f)
    assert (done.returncode == 0
            and len(done.stderr.splitlines()) == len(notes)
            == len(summary["not_used"])), done.stderr
    for note in notes:
        assert (done.stderr.count(note) == 1 and f"<li>Not used: {note}" in page
                and any(n.startswith(note) for n in summary["not_used"])), (note, done.stderr)


def what_was_drawn_and_laid_on_top_of_each_other_is_said(folder):
    trace = write(f"{folder}/jobs.csv",
                  "trace,submit_time_s,duration_s,num_gpus,tenant\n"
                  + "".join(f"t{i % 2},{i},10,1,u{i % 10}\n" for i in range(40))
                  + "t0,5,,1,u0\n")
    done = call("run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv", "--guaranteed", "50%",
                "--out", folder)
    with open(f"{folder}/jobs-fifo.csv") as f:
        guaranteed = sum(int(row["guaranteed"]) for row in csv.DictReader(f))
    notes = ["column trace is not used: the 2 traces that it names are run at once",
             "jobs without a duration are left out (1 of 41 jobs)",
             f"by --guaranteed 50 % of all tenants drawn are guaranteed, which are {guaranteed} of "
             f"40 jobs ({guaranteed / 0.4:.1f} %)"]
    with open(f"{folder}/summary.json") as f:
        summary = json.load(f)
    assert done.returncode == 0 and 0 < guaranteed < 40, done
    for note in notes:
        assert (note in done.stderr
                and any(note in n for n in summary["not_used"])), (note, done.stderr)
    cluster = write(f"{folder}/cluster.csv", "node,num_gpus\na,4\nb,17\n")
    done = call("run", "--trace", trace, "--cluster", cluster)
    assert (done.returncode == 2
            and f'{cluster}:3: node "b" has 17 GPUs: expected 16 at most' in done.stderr), done


def any_bytes_in_a_path_and_in_a_name(folder):
    trace = write(os.fsencode(folder) + b"/h\xfcgel.csv",
                  b"\xef\xbb\xbfjob_id,submit_time_s,duration_s,num_gpus\n"
                  b'"say ""a, b""",0,0,1\n', "wb")
    done = subprocess.run([SIM, "run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv",
                           "--out", folder], capture_output=True, check=False, timeout=180)
    assert done.returncode == 0, done
    with open(f"{folder}/summary.json", encoding="utf-8") as f:
        summary = json.load(f)  # no NaN, no bytes that are no UTF-8
    assert (summary["trace"] == f"{folder}/h\ufffdgel.csv"
            and b"nan" not in done.stdout), (summary, done.stdout)
    with open(f"{folder}/jobs-fifo.csv", newline="") as f:
        assert list(csv.reader(f))[1][0] == 'say "a, b"'
    with open(f"{folder}/report.html", encoding="utf-8") as f:
        assert "nan" not in f.read()
    for name in ("summary.csv", "summary.json"):
        with open(f"{folder}/{name}", encoding="utf-8") as f:
            assert not re.search(r"\bnan\b", f.read(), re.I)


def requests_are_read_and_what_they_ask_is_said(folder):
    done = call("requests", "--requests", f"{DATA}/requests.csv", "--out", folder)
    assert done.returncode == 0 and not done.stderr, done
    with open(f"{DATA}/requests.csv") as f:
        expected = {}
        for row in csv.DictReader(f):
            expected.setdefault(row["service"], []).append(row)
    with open(f"{folder}/requests.csv") as f:
        rows = {row["service"]: row for row in csv.DictReader(f)}
    assert ({name: len(of) for name, of in expected.items()}
            == {name: int(row["requests"]) for name, row in rows.items()}), rows
    for name, of in expected.items():
        assert (abs(float(rows[name]["input_tokens"])
                    - sum(int(r["input_tokens"]) for r in of) / len(of))
                < 1e-6
                and abs(float(rows[name]["output_tokens"])
                        - sum(int(r["output_tokens"]) for r in of) / len(of)) < 1e-6
                and float(rows[name]["p99_s"]) >= 0.02
                and name in done.stdout)
    with open(f"{folder}/load.csv") as f:
        assert (sum(int(row["requests"]) for row in csv.DictReader(f))
                == sum(map(len, expected.values())))
    gaps = write(f"{folder}/gaps.csv", "inter_arrival_s\n0\n0.001\nx\n0.001\n")
    done = call("requests", "--requests", gaps)
    assert (done.returncode == 2
            and f'{gaps}:4: inter_arrival_s is "x": expected a number' in done.stderr), done
    done = call("requests", "--requests", gaps, "--skip-bad", "--objective", "25ms")
    assert (done.returncode == 0 and "left out 1 line of" in done.stderr
            and re.search(r"^\(unnamed\) +3 .*objective missed alone$", done.stdout, re.M)), done
    for arguments, text in (([], "--requests FILE is needed"),
                            (["--requests", gaps, "--batch", "0"], '--batch: "0"'),
                            (["--requests", gaps, "--window", "1ms"], "--window 1s or more"),
                            (["--requests", f"{DATA}/cluster.csv"],
                             "there is no column arrival_s or inter_arrival_s")):
        done = call("requests", *arguments)
        assert done.returncode == 2 and text in done.stderr and not done.stdout, done


def an_experiments_folder_is_tried_before(_):
    done = call("experiment", "nvshare-table2", "--out", "/dev/null/x")
    assert (done.returncode == 2 and "/dev/null/x: Not a directory" in done.stderr
            and not done.stdout
            and "nvshare-table2" not in done.stderr), done


def long_trace(folder):
    trace = f"{folder}/long.csv"
    with open(trace, "w") as f:
        f.write("submit_time_s,duration_s,num_gpus\n")
        for i in range(400000):
            f.write(f"{i * 20},{600 + i % 977},{1 + i % 2}\n")
    return trace


def a_signal_leaves_what_is_done(folder):
    # The trace takes far longer than the signal: the first policy is stopped in its progress, and
    # its files are complete.
    trace = long_trace(folder)
    master, slave = pty.openpty()
    sim = subprocess.Popen([SIM, "run", "--trace", trace, "--cluster", f"{DATA}/cluster.csv",
                            "--policy", "gandiva", "--compare", "fifo,antman,tandem", "--out",
                            f"{folder}/out"], stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    shown = b""
    deadline = time.monotonic() + 60
    while b"gandiva" not in shown:  # the bar is there: it runs
        assert time.monotonic() < deadline and select.select([master], [], [], 60)[0], shown
        shown += os.read(master, 4096)
    sim.send_signal(signal.SIGTERM)  # as timeout does: one to the process, and one to its group
    sim.send_signal(signal.SIGTERM)
    sim.send_signal(signal.SIGINT)
    stdout, _ = sim.communicate(timeout=180)
    while True:
        try:
            more = os.read(master, 4096)
        except OSError:
            break
        if not more:
            break
        shown += more
    os.close(master)
    assert sim.returncode == 130, (sim.returncode, shown)
    assert re.search(rb"\rgandiva +[#.]{30} +\d+ %", shown), shown[:300]
    assert b"stopped by a signal: the results cover the time until then" in shown, shown[-300:]
    with open(f"{folder}/out/summary.json") as f:
        summary = json.load(f)
    first = summary["policies"][0]
    assert ([p["policy"] for p in summary["policies"]] == ["gandiva"] and first["stopped"]
            and first["unfinished"] > 0), summary
    stopped = re.search(r"^STOPPED: gandiva was stopped at (\d+) s of simulated time", stdout, re.M)
    assert (stopped and abs(int(stopped[1]) - first["simulated_s"]) <= 1
            and "STOPPED: not run at all: fifo, antman, tandem." in stdout), stdout
    with open(f"{folder}/out/report.html") as f:
        page = f.read()
    assert ("<b>STOPPED: gandiva was stopped at" in page and "gandiva (stopped)" in page
            and any("STOPPED" in said for said in summary["summary"]))
    with open(f"{folder}/out/summary.csv") as f:
        assert "gandiva,stopped,,1\n" in f.readlines()
    assert "jobs not finished" in stdout and os.path.getsize(f"{folder}/out/report.html") > 1000
    with open(f"{folder}/out/jobs-gandiva.csv") as f:
        assert len(f.readlines()) == 400001


def options_in_help_are_on_the_page(_):
    done = call("--help")
    options = set(re.findall(r"--([a-z][a-z-]*)", done.stdout))
    with open(f"{ROOT}/docs/man/tandem-sim.1") as f:
        page = f.read()
    missing = [o for o in sorted(options) if not re.search(rf"^\.It Fl -{o}(?![a-z-])", page, re.M)]
    assert done.returncode == 0 and len(options) > 10 and not missing, missing


def experiments_write_rows(folder):
    done = call("experiment", "nvshare-table2", "--out", folder)
    assert done.returncode == 0, done.stderr
    with open(f"{folder}/result.json") as f:
        rows = json.load(f)
    assert all(set(row)
               == {"experiment", "metric", "paper", "ours", "spread", "interval", "verdict", "note",
                   "counts_for"}
               for row in rows)
    verdicts = [row["verdict"] for row in rows
                if row["metric"].count(", ") == 1 and "speed-up" not in row["metric"]
                and "(Fig. 3)" not in row["metric"]]
    assert (verdicts.count("calibrated") == 4 and verdicts.count("reproduced") == 18
            and verdicts.count("by construction") == 2), verdicts
    with open(f"{folder}/report.md") as f:
        page = f.read()
    assert "| nvshare-table2 | 19 | | | 3 | 4 |" in page and "INCOMPLETE" not in page, page[:600]
    done = call("experiment", "all", "--quick", "--out", folder, timeout=720)
    needing = ("these experiments need --data DIR and were not run: antman-table2, antman-trace, "
               "dcuda, muxflow-sim, muxflow-ablation, muxflow-predictor, mudi-sim, mixed, queues, "
               "scale, alibaba")
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == f"tandem-sim: {needing}", done
    with open(f"{folder}/result.json") as f:
        assert {row["experiment"] for row in json.load(f)} == {"nvshare-table2", "dcuda-memory"}
    for name in ("report.md", "report.html"):
        with open(f"{folder}/{name}") as f:
            assert f"INCOMPLETE: {needing}. These are the rows that were done." in f.read(), name
    # Nothing is better by chance: said of paired orders.
    # ThreadSanitizer takes sixteen times as long.
    done = call("experiment", "dcuda-memory", "--quick", "--out", folder, timeout=720)
    with open(f"{folder}/result.json") as f:
        own = [row["verdict"] for row in json.load(f) if row["metric"].startswith("tandem:")]
    assert (done.returncode == 0 and own
            and set(own) <= {"better", "no difference shown", "loss"}), own
    # DCUDA in a kinder world is no bound of DCUDA, and the sentences repeat what the rows say.
    with open(f"{folder}/result.json") as f:
        rows = json.load(f)
    assert not [row for row in rows if row["verdict"] == "bounded"], rows
    with open(f"{folder}/report.md") as f:
        words = f.read()
    without = sorted(float(row["ours"].split()[0]) for row in rows
                     if row["metric"].startswith("applications that find no GPU with room, cores")
                     and row["metric"].count(",") == 1)
    assert (len(without) == 3
            and f"{without[0]:.0f} to {without[-1]:.0f} of the 35 applications" in words), without
    done = call("experiment", "antman-trace")
    assert done.returncode == 2 and "antman-trace needs --data DIR" in done.stderr, done


def a_gzipped_trace_is_the_same_trace(folder):
    with open(f"{DATA}/jobs.csv", "rb") as f, gzip.open(f"{folder}/jobs.csv.gz", "wb") as packed:
        packed.write(f.read())
    done = call("run", "--trace", f"{folder}/jobs.csv.gz", "--cluster", f"{DATA}/cluster.csv")
    if "built without zlib" in done.stderr:
        assert done.returncode == 2, done
        return
    assert (done.returncode == 0
            and done.stdout
            == call("run", "--trace", f"{DATA}/jobs.csv", "--cluster",
                    f"{DATA}/cluster.csv").stdout), done


def a_full_disk_is_said_and_leaves_no_half_file(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    assert call(*RUN, "--seed", "1", "--out", folder).returncode == 0
    before = files_of(folder)
    assert (len(before["report.html"]) > 4096
            > max(len(text) for name, text in before.items() if name != "report.html"))
    # SIGXFSZ stays ignored, so that a write beyond the limit fails as on a full disk.
    done = subprocess.run([SIM, *RUN, "--seed", "2", "--out", folder], capture_output=True,
                          text=True, timeout=180, preexec_fn=limit, restore_signals=False)
    assert (done.returncode == 2
            and done.stderr == f"tandem-sim: {folder}/report.html: File too large\n"), done
    after = files_of(folder)
    assert (set(after) == set(before) and after["report.html"] == before["report.html"]
            and after["summary.json"] != before["summary.json"])


def what_cannot_be_printed_is_said(_):
    for arguments in (RUN, ["--help"], ["--version"], ["experiment", "--list"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([SIM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=180)
        assert (done.returncode == 2
                and done.stderr
                == "tandem-sim: its output could not be written completely: No space left on "
                "device\n"), (arguments, done)


def a_report_that_fit_model_cannot_print_is_said(_):
    with open("/dev/full", "w") as full:
        done = subprocess.run([FIT_MODEL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=180)
    assert (done.returncode == 2
            and done.stderr
            == "fit-model: its output could not be written completely: No space left on "
            "device\n"), done


def letters_and_the_end_of_options(_):
    for word, letter in (("--help", "-h"), ("--version", "-V")):
        done = call(word)
        assert done.returncode == 0 and done.stdout and call(letter).stdout == done.stdout, word
    assert call("run", "-h").stdout == call("--help").stdout
    for words in (["run", "--trace"], ["run", "--cluster"], [*RUN, "--out"],
                  ["experiment", "--data"], ["experiment", "-j"]):
        done = call(*words, "--", "x")
        assert (done.returncode == 2 and f'"{words[-1]}" needs a value: "--" ' in done.stderr
                and not done.stdout), (words, done)


def wrong_usage_is_told(_):
    for arguments, text in (([], "usage:"), (["fly"], '"fly" is not a verb'),
                            (["run"], "are needed"),
                            ([*RUN, "--policy", "best"],
                             '"best" is not a policy of the cluster: expected one of fifo, '
                             'preempt, gandiva, antman, tandem'),
                            ([*RUN, "--seed", "x"], '--seed: "x" is not valid'),
                            ([*RUN, "--restart", "soon"], '--restart: "soon" is not valid'),
                            ([*RUN, "--fast"], '"--fast" is not an option'),
                            ([*RUN, "-xy"], '"-x" is not an option'),
                            ([*RUN, "--skip-bad=1"], '"--skip-bad=1" takes no value'),
                            ([*RUN, "--seed"], '"--seed" needs a value'),
                            (["experiment", "--seeds", "99", "scale"], '--seeds: "99"'),
                            ([*RUN, "--gpu", "k80"], '"k80" has no effect without --profiles'),
                            ([*RUN, "--contention", "none"], '"none" is not a contention model'),
                            (["run", "--trace", "/nonexistent", "--cluster", "x"],
                             "/nonexistent: No such file"),
                            (["experiment"], "the name of an experiment is needed"),
                            (["experiment", "antman-tables"], "is not an experiment"),
                            (["experiment", "mixed"], "mixed needs --data DIR")):
        done = call(*arguments)
        assert done.returncode == 2 and text in done.stderr, (arguments, done)


def main():
    cases = [same_seed_same_bytes, files_are_what_they_say,
             a_bad_line_is_named_and_skipped_only_when_told, who_loses_jobs_is_the_best_at_nothing,
             the_headline_is_against_fifo, what_no_policy_could_place_is_named_by_file_and_line,
             what_has_no_effect_is_said, what_was_drawn_and_laid_on_top_of_each_other_is_said,
             any_bytes_in_a_path_and_in_a_name, requests_are_read_and_what_they_ask_is_said,
             an_experiments_folder_is_tried_before, a_signal_leaves_what_is_done,
             options_in_help_are_on_the_page, experiments_write_rows,
             a_gzipped_trace_is_the_same_trace, a_full_disk_is_said_and_leaves_no_half_file,
             what_cannot_be_printed_is_said, a_report_that_fit_model_cannot_print_is_said,
             letters_and_the_end_of_options, wrong_usage_is_told]
    print(f"1..{len(cases)}")
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory(prefix="tandem-sim-") as folder:
            try:
                case(folder)
                print(f"ok {number} - {case.__name__}", flush=True)
            except (AssertionError, KeyError, ValueError, subprocess.TimeoutExpired) as problem:
                print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "),
                      flush=True)


main()
