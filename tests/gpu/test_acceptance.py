"""The acceptance kit on the software GPU: it builds with cc alone, keeps finished stages, and names
what it ran on. TAP; argument: the build."""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KIT = [sys.executable, f"{ROOT}/tests/gpu/acceptance/run_acceptance.py"]


def kit(out, *options):
    return subprocess.run([*KIT, "--software", "--build", BUILD, "--out", out, *options],
                          capture_output=True, text=True, timeout=600)


def two_that_do_not_fit_take_turns_and_nothing_is_done_twice():
    done = kit(OUT, "--only", "build,doctor,pair")
    assert done.returncode == 0, done
    with open(f"{OUT}/report.json") as f:
        report = json.load(f)
    rows = {row["name"]: row for row in report["rows"]}
    assert (report["software"] and {row["state"] for row in rows.values()} == {"right"}
            and set(rows) == {"build", "doctor", "pair"}), report
    figures = {f["name"]: f["median"] for f in rows["pair"]["figures"]}
    assert figures["hand-overs"] > 0 and figures["bytes that left in that time"] > 0, figures
    with open(f"{OUT}/report.md") as f:
        assert "Nothing here is a measurement of a GPU" in f.read()
    again = kit(OUT, "--only", "build,doctor,pair")
    assert again.returncode == 0 and not again.stdout, again


def a_guaranteed_training_keeps_its_steps_beside_another():
    """With what the case before it has built."""
    done = kit(OUT, "--only", "build,protect")
    assert done.returncode == 0, done
    with open(f"{OUT}/report.json") as f:
        row = {row["name"]: row for row in json.load(f)["rows"]}["protect"]
    figures = {f["name"]: f["median"] for f in row["figures"]}
    assert row["state"] == "right" and "rehearsed" in row["answer"], row
    # Bare it shares by time slices, and its part on the GPU takes twice as long. How close it comes
    # to alone depends on the machine's other load.
    assert (figures["step, tandem"] < figures["step, beside the other, bare"]
            and figures["step, antman"] < figures["step, beside the other, bare"]), figures
    assert len(figures) == 5, figures


def what_is_not_a_stage_is_refused():
    with tempfile.TemporaryDirectory(prefix="tandem-acceptance-") as out:
        done = kit(out, "--only", "everything")
        assert done.returncode and '"everything"' in done.stderr, done
        done = kit(out, "--capacity", "lots")
        assert done.returncode and '"lots"' in done.stderr, done


CASES = [two_that_do_not_fit_take_turns_and_nothing_is_done_twice,
         a_guaranteed_training_keeps_its_steps_beside_another, what_is_not_a_stage_is_refused]
print(f"1..{len(CASES)}")
with tempfile.TemporaryDirectory(prefix="tandem-acceptance-") as OUT:
    for number, case in enumerate(CASES, 1):
        try:
            case()
            print(f"ok {number} - {case.__name__}", flush=True)
        except (AssertionError, subprocess.TimeoutExpired, KeyError) as problem:
            print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "),
                  flush=True)
