"""libcudart.so.13's binary interface against NVIDIA's headers, where they exist: structs, numbers,
names of errors, and the parameters of every function.

TAP on stdout. usage: abi.py COMPILER SOURCE-ROOT LIBRARY
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

COMPILER, ROOT, LIBRARY = sys.argv[1:4]
OURS = os.path.join(ROOT, "softgpu/cudart")
PLACES = [os.path.join(p, "include")
          for p
          in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/usr")
          if p]
THEIRS = next((p for p in PLACES if os.path.exists(os.path.join(p, "cuda_runtime_api.h"))), None)
# 8 bytes that are no pointer by their spelling.
WIDE = {"size_t", "unsigned long long", "unsigned long", "long long", "uint64_t", "CUdeviceptr",
        "CUcontext", "CUstream", "CUevent", "CUfunction", "CUmodule", "CUhostFn",
        "CUstreamCallback", "cudaAsyncCallback", "cudaLogsCallbackHandle", "cudaLogsCallback_t",
        "cudaGraphConditionalHandle"}
# Structs by value, by either name.
BY_VALUE = {"CUmemLocation": "cudaMemLocation", "CUipcMemHandle": "cudaIpcMemHandle_t",
            "CUipcEventHandle": "cudaIpcEventHandle_t"}
STRUCTS = {"dim3", "cudaExtent", "cudaPitchedPtr", "cudaMemLocation", "cudaIpcMemHandle_t",
           "cudaIpcEventHandle_t"}


def read(name):
    with open(os.path.join(OURS, name)) as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


def compiles(text):
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "abi.c")
        with open(source, "w") as f:
            f.write(text)
        done = subprocess.run([COMPILER, "-fsyntax-only", "-I", THEIRS, source],
                              capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def print_of(headers, lines):
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "abi.c")
        with open(source, "w") as f:
            f.write("#include <stddef.h>\n#include <stdio.h>\n" + headers + "int main(void)\n{\n"
                    + lines
                    + "}\n")
        subprocess.run([COMPILER, "-I", THEIRS, "-I", ROOT, "-I", f"{ROOT}/src", "-o",
                        f"{work}/abi", source], check=True)
        return subprocess.run([f"{work}/abi"], capture_output=True, text=True,
                              check=True).stdout.splitlines()


def fields(body):
    """Names of a struct's own fields. Unions and structs within it count by their first name,
    without their members."""
    body = re.sub(r"union \{.*\n\t\}(\s*\w*);", r"int\1;", body, flags=re.S)
    for declaration in body.split(";"):
        names = re.sub(r"\(\*(\w+)\)\(.*\)", r"\1", declaration).split(",")
        for name in names:
            found = re.search(r"(\w+)\s*(\[\d+\])?\s*$", name.strip())
            if found and found.group(1) not in ("int", "unsigned"):
                yield found.group(1)


def structs_lie_as_in_the_header():
    text, lines = read("abi.h"), ""
    found = re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.S | re.M)
    assert len(found) > 20, found
    for name, body in found:
        lines += f'printf("{name} %zu\\n", sizeof(struct {name}));\n'
        lines += "".join(f'printf("{name}.{f} %zu\\n", offsetof(struct {name}, {f}));\n'
                         for f in fields(body))
    ours, theirs = (print_of('#include "softgpu/cudart/abi.h"\n', lines),
                    print_of("#include <cuda_runtime_api.h>\n", lines))
    return [f"ours: {a}; theirs: {b}" for a, b in zip(ours, theirs) if a != b]


def constants_are_those_of_the_header():
    pairs = re.findall(r"\b(cuda\w+) = (-?\d+)\b", read("abi.h"))
    assert len(pairs) > 40, pairs
    return compiles("#include <cuda_runtime_api.h>\n"
                    + "".join(f'_Static_assert({name} == {value}, "{name}");\n' for name,
                              value in pairs)).splitlines()


def every_error_has_its_name_and_a_text():
    ours = {name: int(number) for name,
            number in re.findall(r'^X\((\w+), (\d+),\s+"[^"]+"\)$', read("errors.def"), re.M)}
    out = subprocess.run([COMPILER, "-E", "-P", "-I", THEIRS, "-x", "c", "-"],
                         input="#include <driver_types.h>\n", capture_output=True, text=True,
                         check=True)
    body = re.search(r"enum\s+cudaError\s*\{(.*?)\}", out.stdout, re.S).group(1)
    theirs = {name: int(number) for name, number in re.findall(r"(\w+)\s*=\s*(\d+)", body)}
    assert len(theirs) > 100
    return [f"{name} is {ours.get(name)}, not {theirs.get(name)}"
            for name in sorted(set(ours) | set(theirs))
            if ours.get(name) != theirs.get(name)]


def kind_of(parameter):
    """The calling convention's view: 8 for pointers and other wide integers, 4 for int and enum, or
    a struct's name."""
    text = re.sub(r"\b(const|struct|enum|volatile)\b", " ", parameter)
    if "*" in text or "[" in text:
        return "8"
    words = text.split()
    base = (" ".join(words[:-1]) if len(words) > 1 and words[-1] not in ("int", "long")
            else " ".join(words))
    base = BY_VALUE.get(base, base)
    if base in STRUCTS:
        return base
    return "8" if base in WIDE or base.endswith("_t") and base != "cudaError_t" else "4"


def kinds(parameters):
    parameters = " ".join(parameters.split())
    return [] if parameters in ("", "void") else [kind_of(p) for p in parameters.split(",")]


def prototypes_in(text):
    return {name: kinds(p) for name,
            p in re.findall(r"\b((?:__)?cuda[A-Z]\w*)\s*\(([^(){};]*)\)\s*(?=[;{])", text)}


def functions_take_what_the_header_says():
    header = subprocess.run([COMPILER, "-E", "-P", "-I", THEIRS, "-x", "c", "-"],
                            input="#include <cuda_runtime_api.h>\n", capture_output=True, text=True,
                            check=True)
    theirs, ours = prototypes_in(re.sub(r"__attribute__\(\([^)]*\)\)", "", header.stdout)), {}
    for path in glob.glob(f"{OURS}/**/*.c", recursive=True):
        out = subprocess.run([COMPILER, "-E", "-P", "-D_GNU_SOURCE", "-I", ROOT, "-I",
                              f"{ROOT}/src", path], capture_output=True, text=True,
                             check=True).stdout
        declared = re.findall(r'__attribute__\(\(visibility\("default"\)\)\)([^{;]*)\{', out)
        if not path.endswith("refused.c"):
            ours.update(prototypes_in("".join(d + ";" for d in declared)))
    compared = [(name, ours[name], theirs[re.sub(r"_pt[sd][sz]$", "", name)]) for name in ours
                if re.sub(r"_pt[sd][sz]$", "", name) in theirs]
    assert len(compared) > 300, len(compared)
    return [f"{name}: ours {a}, theirs {b}" for name, a, b in compared if a != b]


def the_library_exports_its_table_and_nothing_else():
    table = {name
             for name
             in re.findall(r"^(?:OWN|FORWARD|FORWARD_PTSZ|REFUSED)\((\w+)", read("symbols.def"),
                           re.M)}
    out = subprocess.run(["readelf", "-W", "--dyn-syms", LIBRARY], capture_output=True, text=True,
                         check=True).stdout
    exported = {n for kind, index,
                n in re.findall(r"(FUNC|OBJECT) +GLOBAL +\w+ +(\w+) +(\S+)", out)
                if index not in ("UND", "ABS")}
    return [f"{name}: only in {'the library' if name in exported else 'the table'}"
            for name in sorted(exported ^ {f"{n}@@libcudart.so.13" for n in table})]


CASES = [structs_lie_as_in_the_header, constants_are_those_of_the_header,
         every_error_has_its_name_and_a_text, functions_take_what_the_header_says,
         the_library_exports_its_table_and_nothing_else]
print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    if not THEIRS and "header" in case.__name__ or not THEIRS and "error" in case.__name__:
        print(f"ok {number} - {case.__name__} # SKIP NVIDIA's headers are not here")
        continue
    problems = case()
    if problems:
        print(f"not ok {number} - {case.__name__}\n# " + "\n# ".join(problems[:40]))
    else:
        print(f"ok {number} - {case.__name__}")
