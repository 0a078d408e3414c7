"""tandem doctor names programs into which libtandem.so is loaded, and those into which it is not.
TAP on stdout; arguments: tandem, the folder of the sources, the compiler."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

TANDEM, SOURCES, CC = sys.argv[1:4]
SOFTGPU = os.environ["TANDEM_TEST_SOFTGPU"]  # the folder of its libcuda.so.1


class Skip(Exception):
    pass


def said(path, **extra):
    """(result, text) of each line about programs."""
    done = subprocess.run([TANDEM, "doctor", "--json", path], capture_output=True, text=True,
                          timeout=30,
                          env=dict(os.environ, TANDEM_SOCKET=f"{FOLDER}/socket",
                                   TANDEM_LOCKS=f"{FOLDER}/locks", **extra))
    rows = [row for row in json.loads(done.stdout) if row["check"] == "program"]
    assert rows, done
    assert done.returncode == 1 or all(row["result"] == "ok" for row in rows), done
    return [(row["result"], row["text"]) for row in rows]


def built(name, *options):
    path = f"{FOLDER}/{name}"
    done = subprocess.run([CC, *options, "-o", path, f"{SOURCES}/hello.c"], capture_output=True,
                          text=True)
    if done.returncode:
        raise Skip(f"{CC} {' '.join(options)} does not build here")
    return path


def is_said(path, result, text, **extra):
    (found, told), = said(path, **extra)
    assert found == result and text in told and path in told, (found, told)


def a_dynamic_program_is_fine():
    is_said(built("dynamic"), "ok", "dynamically linked")


def a_static_program_is_named():
    is_said(built("static", "-static"), "failed", "static, tandem cannot reach it")


def a_static_position_independent_program_is_named():
    is_said(built("static_pie", "-static-pie"), "failed", "static, tandem cannot reach it")


def a_program_of_32_bits_is_named():
    path = built("narrow")
    with open(path, "r+b") as f:
        f.seek(4)
        f.write(b"\1")
        f.seek(18)
        f.write(struct.pack("<H", 3))
    is_said(path, "failed", "another kind of processor")


def a_setuid_program_is_named():
    path = built("raised")
    os.chmod(path, 0o4755)
    is_said(path, "failed", "setuid")


def a_script_is_as_good_as_what_runs_it():
    for runner, result in ((built("runs"), "ok"), (built("runs_static", "-static"), "failed")):
        path = f"{FOLDER}/script"
        with open(path, "w") as f:
            f.write(f"#! {runner} -x\n")
        first, second = said(path)
        assert first[0] == "ok" and runner in first[1], first
        assert second[0] == result and second[1].startswith(runner + ":"), second


def a_program_with_nvidias_runtime_in_it_is_named_under_softgpu():
    """nvcc's programs are recognised by the section that registers their kernels, and by their
    needs."""
    marked = ["-include", f"{FOLDER}/kernels.h"]
    with open(f"{FOLDER}/kernels.h", "w") as f:
        f.write('__attribute__((section(".nvFatBinSegment"), used)) static int kernels = 1;\n')
    with open(f"{FOLDER}/empty.c", "w") as f:
        f.write("int empty;\n")
    subprocess.run([CC, "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o",
                    f"{FOLDER}/libcudart.so.13", f"{FOLDER}/empty.c"], check=True)
    inside = built("inside", *marked)
    beside = built("beside", *marked, "-Wl,--no-as-needed", f"{FOLDER}/libcudart.so.13")
    stripped = built("stripped", *marked, "-s")
    for path, result, text in ((inside, "failed", "-cudart shared"),
                               (stripped, "failed", "-cudart shared"),
                               (beside, "ok", "dynamically linked"),
                               (built("dynamic"), "ok", "dynamically linked")):
        is_said(path, result, text, LD_LIBRARY_PATH=SOFTGPU)
    is_said(inside, "ok", "dynamically linked", LD_LIBRARY_PATH="")
    # whatever is wrong with the file, nothing breaks
    whole = open(inside, "rb").read()
    for at in (40, 58, 60, 62):  # e_shoff, e_shentsize, e_shnum, e_shstrndx
        with open(f"{FOLDER}/bent", "wb") as f:
            f.write(whole[:at] + b"\xff\xff" + whole[at + 2:])
        os.chmod(f"{FOLDER}/bent", 0o755)
        said(f"{FOLDER}/bent", LD_LIBRARY_PATH=SOFTGPU)
    with open(f"{FOLDER}/bent", "wb") as f:
        f.write(whole[:len(whole) // 2])
    said(f"{FOLDER}/bent", LD_LIBRARY_PATH=SOFTGPU)


def what_is_neither_or_not_there_is_said():
    with open(f"{FOLDER}/text", "w") as f:
        f.write("hello\n")
    is_said(f"{FOLDER}/text", "failed", "neither")
    is_said(f"{FOLDER}/none", "failed", "No such file")


CASES = [
    a_dynamic_program_is_fine,
    a_static_program_is_named,
    a_static_position_independent_program_is_named,
    a_program_of_32_bits_is_named,
    a_setuid_program_is_named,
    a_script_is_as_good_as_what_runs_it,
    a_program_with_nvidias_runtime_in_it_is_named_under_softgpu,
    what_is_neither_or_not_there_is_said,
]

FOLDER = tempfile.mkdtemp(prefix="tandem-doctor-")
print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}")
    except Skip as why:
        print(f"ok {number} - {case.__name__} # SKIP {why}")
    except (AssertionError, ValueError, subprocess.TimeoutExpired) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "))
shutil.rmtree(FOLDER)
