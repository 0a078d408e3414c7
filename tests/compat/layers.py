"""The folders keep their order (tools/layers.txt); an include against it is found. TAP on stdout;
argument: the sources."""
import os
import shutil
import subprocess
import sys
import tempfile

SOURCES = sys.argv[1]


def check(root):
    """(exit status, what was printed)"""
    done = subprocess.run([sys.executable, f"{SOURCES}/tools/check-layers", root],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def copy(root):
    """The headers of the tree alone: what an added include is resolved against."""
    for top in ("src", "softgpu", "include", "tools"):
        for folder, _, names in os.walk(f"{SOURCES}/{top}"):
            place = os.path.join(root, os.path.relpath(folder, SOURCES))
            os.makedirs(place, exist_ok=True)
            for name in names:
                if name.endswith(".h") or name == "layers.txt":
                    shutil.copy(os.path.join(folder, name), place)


def is_refused(path, include, said):
    with tempfile.TemporaryDirectory() as root:
        copy(root)
        with open(os.path.join(root, path), "w") as f:
            f.write(f'#include "{include}"\n')
        status, text = check(root)
        return status == 1 and f"{path}: \"{include}\": {said}" in text and text.count("\n") == 1


CASES = {
        "no include is against the order": lambda: check(SOURCES) == (0, ""),
        "a lower folder that includes a higher one is refused": lambda: is_refused(
            "src/base/added.c", "daemon/server/loop/loop.h", "src/base may not use src/daemon"),
        "a folder that includes its neighbour without a line for it is refused": lambda: is_refused(
            "src/cli/added.c", "sim/base/csv.h", "src/cli may not use src/sim"),
        "a subfolder that includes a later one is refused": lambda: is_refused(
            "src/policy/algo/added.c", "policy/policy.h", "algo comes before . in src/policy"),
        "the subfolders of a subfolder have an order, too": lambda: is_refused(
            "src/daemon/model/machine/added.c", "daemon/model/node.h",
            "machine comes before . in src/daemon/model"),
}
print(f"1..{len(CASES)}")
failed = 0
for number, (name, case) in enumerate(CASES.items(), 1):
    good = case()
    failed += not good
    print(f"{'' if good else 'not '}ok {number} - {name}")
    if not good:
        print(check(SOURCES)[1])
sys.exit(failed != 0)
