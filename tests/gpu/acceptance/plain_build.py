"""Builds tandem with the C compiler alone, for machines without Meson. Each folder below src is one
part, with all of its subfolders."""
import concurrent.futures
import os
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
FLAGS = ["-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE", '-DTANDEM_VERSION="0.1.0"',
         '-DTD_LIBDIR="lib"', "-fvisibility=hidden", "-ffp-contract=off", "-fPIC", "-I", ROOT, "-I",
         f"{ROOT}/src"]
LIBRARIES = ["base", "proto"]
PARTS = {  # program: folders of src, all files in and below each
    "tandem": ["cli", "view", "gpu", "cuda", "onnx", *LIBRARIES],
    "tandemd": ["daemon", "policy", "match", "gpu", "profile", *LIBRARIES],
    "libtandem.so": ["preload", "cuda", *LIBRARIES],
}


class BuildError(Exception):
    pass


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{command[0]}: " + "\n".join(done.stderr.strip().splitlines()[:5]))
    return done.stdout


def sources(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(f"{ROOT}/src/{folder}")
                  for name in names if name.endswith(".c"))


def compile_all(compiler, files, out, extra=()):
    def one(path):
        target = f"{out}/{os.path.relpath(path, ROOT).replace('/', '_')}.o"
        run([compiler, *FLAGS, *extra, "-c", path, "-o", target])
        return target

    os.makedirs(out, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, files))


def build_part(compiler, name, folders, out):
    objects = []
    for folder in folders:
        # Libraries that are loaded into other programs must not need a newer C library than those
        # programs.
        extra = ["-include", f"{ROOT}/src/preload/base/old_glibc.h"] if folder == "preload" else []
        objects += compile_all(compiler, sources(folder), f"{out}/objects/{name}", extra)
    link = [compiler, *objects, "-o", f"{out}/bin/{name}", "-lpthread", "-ldl", "-lm"]
    if name.endswith(".so"):
        link += ["-shared", f"-Wl,-soname,{name}", "-Wl,-Bsymbolic",
                 f"-Wl,--version-script={ROOT}/src/preload/load/exports.map"]
    run(link)


def build_train(compiler, driver, out):
    """Linked against whichever driver is here: only its name is kept."""
    header = f"{out}/objects/train_ptx.h"
    run(["python3", f"{ROOT}/tools/embed-text", "train_ptx", f"{ROOT}/examples/train/train.ptx",
         header])
    objects = compile_all(compiler, [f"{ROOT}/examples/train/train.c", *sources("base")],
                          f"{out}/objects/train", ["-I", f"{out}/objects"])
    run([compiler, *objects, "-o", f"{out}/bin/train", driver, "-Wl,--allow-shlib-undefined",
         "-lpthread", "-lm"])


def build(compiler, driver, out):
    os.makedirs(f"{out}/bin", exist_ok=True)
    os.makedirs(f"{out}/objects", exist_ok=True)
    for name, folders in PARTS.items():
        build_part(compiler, name, folders, out)
    build_train(compiler, driver, out)
