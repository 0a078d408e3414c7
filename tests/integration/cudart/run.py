"""Programs that nvcc builds with -cudart shared, on a private software GPU. TAP on stdout; without
nvcc all are skipped.

usage: run.py BUILD [NAME]...

The first lines of a program may have instructions: `// flags: ...` for nvcc, `// also: ...` for
more flags in a second build, `// with: OTHER.cu` for a second part, `// shared: OTHER.cu` for
PROGRAM_part.so, `// softgpu: ...` for softgpu start.
"""
import concurrent.futures
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

BUILD, CHOSEN = os.path.abspath(sys.argv[1]), sys.argv[2:]
HERE = os.path.dirname(os.path.abspath(__file__))
SOFTGPU, CUDART = f"{BUILD}/softgpu/cli/softgpu", f"{BUILD}/softgpu/cudart/libcudart.so.13"
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
# PTX for any model, as it is: the build compiles none of it for a GPU.
VERSION = subprocess.run([NVCC, "--version"], capture_output=True).stdout if NVCC else b""
FLAGS = ["-cudart", "shared", "-std=c++17"]
DEADLINE_S = 360
# nvcc's output, by a hash of all its inputs. Without it nvcc takes most of this test's time.
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "tandem-nvcc")
CACHE_DAYS = 30  # what nobody has used for so long goes
COMPILE_S = 1200  # a program of Thrust or CUB, beside other work
SKIPPED = 77
# Programs whose needs the software GPU's driver may still refuse; no other program may be skipped.
MAY_SKIP = {"clusters", "pool_sharing", "surface", "texture"}


def directive(source, key, default):
    with open(source) as f:
        found = re.search(rf"^// {key}: (.*)$", f.read(600), re.M)
    return found.group(1).split() if found else default


class Gpus:
    """One server for all programs that want the same GPUs, started with the first."""

    def __init__(self, directory):
        self.directory, self.running = directory, {}

    def environment(self, options):
        key = " ".join(options)
        if key not in self.running:
            there = dict(os.environ, SOFTGPU_DIR=f"{self.directory}/gpu{len(self.running)}",
                         SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
            there.pop("LD_LIBRARY_PATH", None)
            subprocess.run([SOFTGPU, "start", *options], env=there, check=True, timeout=DEADLINE_S)
            self.running[key] = there
        return self.running[key]

    def stop(self):
        for environment in self.running.values():
            subprocess.run([SOFTGPU, "stop"], env=environment, timeout=DEADLINE_S)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def cached_path(sources, flags):
    """Where the program built of these is kept; every header beside them counts."""
    parts = [VERSION, repr(FLAGS + flags).encode(),
             *(read(os.path.join(HERE, name)) for name in sources),
             *map(read, sorted(glob.glob(f"{HERE}/*.cuh") + glob.glob(f"{HERE}/*.h")))]
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return os.path.join(CACHE, whole.hexdigest())


def keep(program, path):
    """A cache that cannot be written is none."""
    try:
        os.makedirs(CACHE, exist_ok=True)
        shutil.copy2(program, f"{path}.{os.getpid()}")
        os.replace(f"{path}.{os.getpid()}", path)
    except OSError:
        pass


def forget_old():
    for path in glob.glob(f"{CACHE}/*"):
        try:
            if os.stat(path).st_mtime < time.time() - CACHE_DAYS * 86400:
                os.remove(path)
        except OSError:
            pass


def compile_to(output, sources, flags, directory):
    """What nvcc says if it fails."""
    kept = cached_path(sources, flags)
    try:
        shutil.copy2(kept, output)
        os.utime(kept)
        return ""
    except OSError:
        pass
    command = [NVCC, *FLAGS, *flags, "-o", output, *[os.path.join(HERE, name) for name in sources]]
    # nvcc's files beside the program are named after the source, so each build needs a folder of
    # its own.
    with tempfile.TemporaryDirectory(dir=directory) as work:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=COMPILE_S)
    if done.returncode:
        return done.stdout + done.stderr
    keep(output, kept)
    return ""


def build(source, more, program, directory):
    flags, shared = ([*directive(source, "flags", ["-arch=compute_75"]), *more],
                     directive(source, "shared", []))
    problem = compile_to(program, [source, *directive(source, "with", [])], flags, directory)
    if shared and not problem:
        problem = compile_to(f"{program}_part.so", shared,
                             [*flags, "-shared", "-Xcompiler", "-fPIC"], directory)
    return problem


def variants(sources):
    """(name, source, more flags) of every program to be built."""
    for source in sources:
        name, also = os.path.basename(source)[:-3], directive(source, "also", [])
        yield name, source, []
        if also:
            yield ("_".join([name,
                             *(re.sub("^-.*=", "", word) for word in also
                               if not word.startswith("--"))]), source, also)


def run(source, program, gpus):
    """(passed, why it was skipped, what it said)"""
    options = directive(source, "softgpu", [])
    try:
        done = subprocess.run([SOFTGPU, "run", "--", program], env=gpus.environment(options),
                              capture_output=True, text=True, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        return False, None, "hangs"
    said = (done.stdout + done.stderr).strip()
    if done.returncode == SKIPPED:
        return False, said, said
    return done.returncode == 0 and done.stdout == "ok\n", None, f"exit {done.returncode}: {said}"


def report(number, name, passed, skip, said):
    if skip and name in MAY_SKIP:
        print(f"ok {number} - {name} # SKIP {skip.splitlines()[-1]}", flush=True)
    elif passed:
        print(f"ok {number} - {name}", flush=True)
    else:
        print(f"not ok {number} - {name}\n# " + said.replace("\n", "\n# "), flush=True)


def main():
    sources = [s for s in sorted(glob.glob(f"{HERE}/*.cu")) if not s.endswith("_part.cu")]
    if CHOSEN:
        sources = [s for s in sources if os.path.basename(s)[:-3] in CHOSEN]
    if not NVCC:
        print("1..0 # SKIP nvcc is not here")
        return
    forget_old()
    programs = list(variants(sources))
    print(f"1..{len(programs)}")
    with (tempfile.TemporaryDirectory(prefix="cudart-") as directory,
          concurrent.futures.ThreadPoolExecutor(2) as pool):
        gpus = Gpus(directory)
        builds = [pool.submit(build, source, more, os.path.join(directory, name), directory)
                  for name, source, more in programs]
        try:
            for number, ((name, source, _), built) in enumerate(zip(programs, builds), 1):
                problem = built.result()
                passed, skip, said = ((False, None, problem) if problem
                                      else run(source, os.path.join(directory, name), gpus))
                report(number, name, passed, skip, said)
        finally:
            gpus.stop()


if __name__ == "__main__":
    main()
