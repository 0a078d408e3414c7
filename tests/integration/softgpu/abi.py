"""Our own declarations of NVIDIA's binary interface against NVIDIA's headers, where they exist:
every constant and every struct size that a _Static_assert names. TAP on stdout. usage: abi.py
COMPILER SOURCE-ROOT"""
import os
import re
import subprocess
import sys
import tempfile

COMPILER, ROOT = sys.argv[1], sys.argv[2]
INCLUDE = [os.path.join(p, "include")
           for p
           in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/usr")
           if p]
CASES = [("cuda.h", "driver",
          ["src/cuda/types.h", "softgpu/driver/graph/graph_abi.h",
           "softgpu/driver/memory/pool_abi.h"]), ("nvml.h", "nvml", ["src/gpu/nvml_abi.h"]),]
# Names that these headers lack, or spell otherwise.
OURS = {"NVML_CLOCK_N", "NVML_DEVICE_NAME_V2_BUFFER_SIZE"}


def declarations(path):
    """Pairs of an expression in their terms and its value in ours."""
    with open(os.path.join(ROOT, path)) as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    for name, value in re.findall(r"\bX\((\w+), (\d+),", text):
        yield name, value
    for name, value in re.findall(r"\b((?:CU|CUDA|NVML)_[A-Z0-9_]+) = (-?\d+|0x[0-9a-f]+)\b", text):
        yield name, value
    for value, name in re.findall(r"_Static_assert\(\s*sizeof\(\w+\) == (\d+),\s*\"(\w+) of", text):
        yield f"sizeof({name})", value


def compare(header, paths):
    directory = next((d for d in INCLUDE if os.path.exists(os.path.join(d, header))), None)
    if not directory:
        return None
    pairs = [(name, value) for path in paths for name,
             value in declarations(path) if name not in OURS]
    assert len(pairs) > 10, pairs
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "abi.c")
        with open(source, "w") as f:
            f.write(f"#include <{header}>\n")
            f.writelines(f'_Static_assert((long long)({name}) == {value}, "{name} is not '
                         f'{value}");\n'
                         for name, value in pairs)
        done = subprocess.run([COMPILER, "-fsyntax-only", "-I", directory, source],
                              capture_output=True, text=True)
    return done.stderr if done.returncode else ""


print(f"1..{len(CASES)}")
for number, (header, name, paths) in enumerate(CASES, 1):
    problem = compare(header, paths)
    label = f"the_{name}s_constants_and_structs_are_those_of_its_header"
    if problem is None:
        print(f"ok {number} - {label} # SKIP {header} is not here")
    elif problem:
        print(f"not ok {number} - {label}\n# " + problem.replace("\n", "\n# "))
    else:
        print(f"ok {number} - {label}")
