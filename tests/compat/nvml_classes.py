"""Every function of NVML has a class in tools/nvml-classes.txt, and a hook if it hands out GPUs or
processes. TAP on stdout; arguments: the sources, NVML libraries, headers. Installed libraries of
NVIDIA's are checked too."""
import ctypes.util
import os
import re
import subprocess
import sys
import tempfile

SOURCES = sys.argv[1]
CLASSES = f"{SOURCES}/tools/nvml-classes.txt"


def read_classes(path):
    """{name: class}"""
    meanings, found = set(), {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            meaning, row = (re.fullmatch(r"(\w+) = .+\n", line),
                            re.fullmatch(r"(\w+) [\w-]+: ([\w ]+)\n", line))
            if meaning:
                meanings.add(meaning[1])
            elif row:
                assert row[1] in meanings, f"line {number}: {row[1]} has no meaning"
                for name in row[2].split():
                    assert name not in found, f"line {number}: {name} is there twice"
                    found[name] = row[1]
            else:
                assert line.startswith("#") or not line.strip(), f"line {number}: {line}"
    return found


def names_of(path):
    """What a library exports, a header declares, or our own list of functions has."""
    if path.endswith((".h", ".def")):
        with open(path) as f:
            return set(re.findall(r"\b(nvml[A-Z]\w*)(?:\s*\(|,)",
                                  re.sub(r"/\*.*?\*/|//[^\n]*|^#.*?$", "", f.read(),
                                         flags=re.S | re.M)))
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                            check=True).stdout
    return set(re.findall(r" [TW] (nvml\w+)", listed))


def unclassed(path, classes):
    return sorted(names_of(path) - set(classes))


def installed():
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    headers = [f"{home}/include/nvml.h" for home in homes if home] + ["/usr/include/nvml.h"]
    folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64"]
    libraries = ([f"{folder}/libnvidia-ml.so.1" for folder in folders]
                 if ctypes.util.find_library("nvidia-ml")
                 else [])
    return [path for path in headers + libraries if os.path.exists(path)]


def every_function_that_is_known_here_has_a_class():
    classes = read_classes(CLASSES)
    for path in [f"{SOURCES}/src/gpu/nvml_functions.def", *sys.argv[2:], *installed()]:
        assert names_of(path), f"{path}: nothing found"
        assert not unclassed(path, classes), (
            f"{path}: no class: {' '.join(unclassed(path, classes))}")


def what_hands_out_gpus_or_processes_has_a_hook_and_nothing_else_has():
    views = {name for name, of in read_classes(CLASSES).items() if of == "VIEW"}
    with open(f"{SOURCES}/src/preload/hooks/nvml_hooks.def") as f:
        hooks = set(re.findall(r"NVML_HOOK\((\w+)\)", f.read()))
    hooks.discard("name")
    assert hooks == views, hooks ^ views


def a_new_function_is_refused_by_name():
    with tempfile.TemporaryDirectory(prefix="tandem-nvml-") as folder:
        with open(f"{folder}/nvml.h", "w") as f:
            f.write("nvmlReturn_t DECLDIR nvmlDeviceGetBrandNew(nvmlDevice_t device, unsigned "
                    "*count);\nnvmlReturn_t nvmlInit_v2(void);\n")
        assert unclassed(f"{folder}/nvml.h", read_classes(CLASSES)) == ["nvmlDeviceGetBrandNew"]


CASES = [every_function_that_is_known_here_has_a_class,
         what_hands_out_gpus_or_processes_has_a_hook_and_nothing_else_has,
         a_new_function_is_refused_by_name]
print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}")
    except AssertionError as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "))
