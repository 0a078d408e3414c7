"""The probe kit without a GPU: its runner, each probe's arguments and row, a whole run with no GPU
and a whole run on the software GPU. TAP on stdout; arguments: the build, the compiler."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD, CC = os.path.abspath(sys.argv[1]), sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("run_probes", f"{HERE}/probe/run_probes.py")
kit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kit)
NAMES = [name for name, _, _ in kit.PROBES]


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="tandem-probe-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def fake(folder, script):
    path = f"{folder}/fake"
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + script + "\n")
    os.chmod(path, 0o755)
    return [path]


def run_kit(out, *options, wrap=(), **extra):
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run([*wrap, sys.executable, f"{HERE}/probe/run_probes.py", "--quick", "--out",
                           out, *options], env=dict(environment, CC=CC, **extra),
                          capture_output=True, text=True, timeout=280)
    return done


def a_probe_that_crashes_hangs_or_says_nonsense_is_named():
    good = '{"name": "chunks", "question": "q", "answer": "a", "figures": []}'
    with Folder() as folder:
        for script, expected in (("kill -SEGV $$", "crashed: SIGSEGV"), ("sleep 60", "hung"),
                                 ("echo hello", "row is not one"),
                                 (f"echo '{good}'; echo '{good}'", "2 rows"),
                                 ("exit 3", "ended with 3"), ("echo '[1]'", None),
                                 ("true", "0 rows")):
            try:
                row = kit.ask(fake(folder, script), "chunks", 0.5, False)
            except AttributeError as problem:
                raise AssertionError(script) from problem
            assert row["failed"] and (expected is None or expected in row["answer"]), (script, row)
        row = kit.ask(fake(folder, f"echo '{good}'"), "chunks", 5, False)
        assert row["answer"] == "a" and not row.get("failed"), row


def what_a_hanging_probe_has_started_ends_with_it():
    with Folder() as folder:
        kit.ask(fake(folder, f"sleep 77.{os.getpid()} & wait"), "chunks", 0.3, False)
        end = time.monotonic() + 10
        while (subprocess.run(["pgrep", "-f", f"sleep 77.{os.getpid()}"],
                              capture_output=True).returncode
               == 0):
            assert time.monotonic() < end, "its child lives on"


def an_answer_is_not_asked_for_again_and_a_failure_is():
    with Folder() as folder:
        rows = {"membarrier": {"name": "membarrier", "question": "q", "answer": "kept",
                               "figures": []},
                "limits": {"name": "limits", "question": "q", "answer": "hung", "figures": [],
                           "failed": True}}
        kit.save(rows, folder)
        done = run_kit(folder, "--only", "membarrier,limits")
        assert (done.returncode == 0
                and "membarrier: answered before" in done.stdout), done.stdout + done.stderr
        kept = kit.load(f"{folder}/report.json")
        assert kept["membarrier"]["answer"] == "kept" and not kept["limits"].get("failed"), kept


def a_report_that_is_broken_is_begun_anew():
    with Folder() as folder:
        for text in ("", "[]", '{"rows": 3}', "{"):
            with open(f"{folder}/report.json", "w") as f:
                f.write(text)
            assert kit.load(f"{folder}/report.json") == {}, text


def nothing_is_begun_that_might_not_end_in_time():
    with Folder() as folder:
        done = run_kit(folder, "--minutes", "0")
        assert done.returncode == 0 and done.stdout.count("not begun") == len(NAMES), done.stdout


def unknown_names_are_quoted_and_the_list_is_complete():
    with Folder() as folder:
        done = run_kit(folder, "--only", "chunks,chonks")
        assert done.returncode == 1 and '"chonks"' in done.stderr, done
        done = run_kit(folder, "--list")
        assert all(name in done.stdout for name in NAMES), done.stdout
        assert sum(limit for _, limit, _ in kit.PROBES) <= 13 * 60
        assert {number for _, _, number in kit.PROBES} == {*range(1, 27), 32, 33, 34}
        files = {f[:-2] for f in os.listdir(f"{HERE}/probe") if f.endswith(".c")} - {"probe"}
        assert files == set(NAMES), files ^ set(NAMES)


def each_probe_refuses_options_that_it_does_not_know():
    with Folder() as folder:
        for name in NAMES:
            program, complaint = kit.build(name, folder, CC)
            assert program, (name, complaint)
            done = subprocess.run([program, "--quack"], capture_output=True, text=True, timeout=10)
            assert done.returncode == 2 and '"--quack"' in done.stderr, (name, done)
            done = subprocess.run([program, "--question"], capture_output=True, text=True,
                                  timeout=10)
            assert done.stdout.strip() == kit.question_of(name) != "", (name, done.stdout)


def without_a_gpu_every_question_is_answered():
    if os.path.exists("/dev/nvidiactl"):
        return
    with Folder() as folder:
        done = run_kit(folder)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = kit.load(f"{folder}/report.json")
        assert (set(rows) == set(NAMES)
                and all("no GPU" in r["answer"] or "not asked" in r["answer"]
                        or r["name"] == "membarrier"
                        for r in rows.values())), rows
        with open(f"{folder}/report.md") as f:
            assert "GPU: none" in f.read()
        again = run_kit(folder, "--only", "chunks")  # elsewhere there may be one
        assert ("answered before" not in again.stdout
                and "chunks: no GPU" in again.stdout), again.stdout


def on_the_software_gpu_the_kit_runs_to_its_end():
    softgpu = f"{BUILD}/softgpu/cli/softgpu"
    with Folder() as folder:
        environment = {"SOFTGPU_DIR": f"{folder}/gpu", "SOFTGPU_LIB": f"{BUILD}/softgpu/driver"}
        subprocess.run([softgpu, "start"], env=dict(os.environ, **environment), check=True,
                       capture_output=True)
        try:
            done = run_kit(f"{folder}/out", wrap=[softgpu, "run", "--"], **environment)
        finally:
            subprocess.run([softgpu, "stop"], env=dict(os.environ, **environment),
                           capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = kit.load(f"{folder}/out/report.json")
        assert set(rows) == set(NAMES), set(NAMES) - set(rows)
        for name in ("chunks", "copies", "costs", "unmapped", "free_returns"):
            assert (rows[name]["software"]
                    and "not supported" not in rows[name]["answer"]), rows[name]
        assert ("ILLEGAL_ADDRESS" in rows["unmapped"]["answer"]
                and "unharmed" in rows["unmapped"]["answer"]), rows["unmapped"]
        assert ("small, to its end: copy taken, asynchronous copy, rows, set, captured copy, copy "
                "node."
                in rows["beyond"]["answer"]), rows["beyond"]
        assert (rows["beyond"]["figures"][0]["median"] == 48
                and rows["beyond"]["answer"].count("INVALID_VALUE") == 8), rows["beyond"]
        assert (rows["launch_memory"]["answer"].startswith("skipped: a software GPU")
                and "512 KiB: CUDA_SUCCESS"
                in rows["launch_memory"]["answer"]), rows["launch_memory"]
        assert rows["sync_memops"]["answer"].startswith("memory of cuMemAlloc: CUDA_SUCCESS; by "
                                                        "cuMemCreate: "
                                                        "CUDA_SUCCESS"), rows["sync_memops"]
        assert rows["torch"]["answer"].startswith(("skipped: python3", "torch ")), rows["torch"]
        with open(f"{folder}/out/report.md") as f:
            assert "**A software GPU" in f.read()


CASES = [
    a_probe_that_crashes_hangs_or_says_nonsense_is_named,
    what_a_hanging_probe_has_started_ends_with_it,
    an_answer_is_not_asked_for_again_and_a_failure_is,
    a_report_that_is_broken_is_begun_anew,
    nothing_is_begun_that_might_not_end_in_time,
    unknown_names_are_quoted_and_the_list_is_complete,
    each_probe_refuses_options_that_it_does_not_know,
    without_a_gpu_every_question_is_answered,
    on_the_software_gpu_the_kit_runs_to_its_end,
]

print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}", flush=True)
    except (AssertionError, subprocess.SubprocessError, json.JSONDecodeError) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "),
              flush=True)
