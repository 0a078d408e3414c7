"""Runs a TAP program on a private software GPU. usage: run.py BUILD PROGRAM NAME [OPTION OF softgpu start]..."""
import os
import subprocess
import sys
import tempfile

build, program, options = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[4:]
softgpu = f"{build}/softgpu/cli/softgpu"

with tempfile.TemporaryDirectory(prefix="softgpu-") as directory:
    environment = dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu", SOFTGPU_LIB=f"{build}/softgpu/driver", SOFTGPU=softgpu)
    subprocess.run([softgpu, "start", *options], env=environment, check=True, timeout=30)
    try:
        status = subprocess.run([softgpu, "run", "--", program], env=environment).returncode
    finally:
        subprocess.run([softgpu, "stop"], env=environment, timeout=30)
sys.exit(status)
