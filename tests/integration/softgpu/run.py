"""Runs a TAP program on a private software GPU.

usage: run.py BUILD PROGRAM NAME [OPTION OF softgpu start]... [case:NAME]...
"""
import os
import subprocess
import sys
import tempfile

build, program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# All, unless some are named.
cases = [a.removeprefix("case:") for a in sys.argv[4:] if a.startswith("case:")]
options = [a for a in sys.argv[4:] if not a.startswith("case:")]
softgpu = f"{build}/softgpu/cli/softgpu"

# In a build with a sanitizer the driver is watched too. A kernel and the host may access pinned
# memory at once, which is the program's business. The driver keeps the objects of handles for the
# life of the process, so that late use is refused: leaks are not checked.
for sanitizer, more in (("TSAN_OPTIONS",
                         f"suppressions={os.path.dirname(os.path.abspath(__file__))}/tsan.supp"),
                        ("ASAN_OPTIONS", "detect_leaks=0")):
    os.environ[sanitizer] = ":".join(filter(None, [os.environ.get(sanitizer), more]))

with tempfile.TemporaryDirectory(prefix="softgpu-") as directory:
    environment = dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu",
                       SOFTGPU_LIB=f"{build}/softgpu/driver", SOFTGPU=softgpu)
    subprocess.run([softgpu, "start", *options], env=environment, check=True, timeout=180)
    try:
        status = subprocess.run([softgpu, "run", "--", program, *cases], env=environment).returncode
    finally:
        subprocess.run([softgpu, "stop"], env=environment, timeout=180)
sys.exit(status)
