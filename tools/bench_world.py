"""The worlds in which benchmarks run: a daemon of their own, and the driver that does nothing or a
software GPU."""
import json
import os
import shutil
import subprocess
import tempfile
import time

import endings

BUILD = os.path.abspath(os.environ.get("TANDEM_BENCH_BUILD", "build-bench"))
LIBRARY = f"{BUILD}/src/preload/libtandem.so"


def null_driver():
    """A folder in which libcuda.so.1 is the driver that does nothing."""
    link = f"{BUILD}/bench/libcuda.so.1"
    if not os.path.lexists(link):
        os.symlink("libnullcuda.so.1", link)
    return f"{BUILD}/bench"


class World:
    """A private daemon's socket, and the driver that does nothing or, with options, a software GPU.
    """

    def __init__(self, *options):
        self.directory = tempfile.mkdtemp(prefix="tandem-bench-")
        self.environment = dict(os.environ, TANDEM_SOCKET=f"{self.directory}/t/socket",
                                TANDEM_LOCKS=f"{self.directory}/locks", TANDEM_LIB=LIBRARY,
                                TANDEMD=f"{BUILD}/src/daemon/tandemd")
        self.tandem, self.softgpu = f"{BUILD}/src/cli/tandem", None
        if options:
            self.softgpu = f"{BUILD}/softgpu/cli/softgpu"
            self.environment |= {"SOFTGPU_DIR": f"{self.directory}/gpu",
                                 "SOFTGPU_LIB": f"{BUILD}/softgpu/driver"}
            with endings.beginning(self):
                self.call(self.softgpu, "start", *options)
        else:
            self.environment["LD_LIBRARY_PATH"] = null_driver()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for command in ([self.tandem, "stop", "--force"], [self.softgpu, "stop"]):
            if command[0]:
                subprocess.run(command, env=self.environment, check=False, capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, *command):
        return subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def set(self, *options):
        """Starts the daemon, too."""
        self.call(self.tandem, "run", "--", "true")
        self.call(self.tandem, "set", *options)

    def start(self, *command, under_tandem=()):
        """under_tandem: options of tandem run; None: bare."""
        full = [self.softgpu, "run", "--"] if self.softgpu else []
        full += [] if under_tandem is None else [self.tandem, "run", *under_tandem, "--"]
        full += command
        return subprocess.Popen(full, env=self.environment, stdout=subprocess.PIPE, text=True)


class Duties:
    """Programs with duties on a private software GPU, each with always more kernels to submit."""

    def __init__(self, kernel, *duties):
        self.directory = tempfile.mkdtemp(prefix="tandem-bench-")
        self.environment = dict(os.environ, TANDEM_SOCKET=f"{self.directory}/t/socket",
                                TANDEM_LOCKS=f"{self.directory}/locks", TANDEM_LIB=LIBRARY,
                                TANDEMD=f"{BUILD}/src/daemon/tandemd",
                                SOFTGPU_DIR=f"{self.directory}/gpu",
                                SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        self.tandem, self.softgpu = f"{BUILD}/src/cli/tandem", f"{BUILD}/softgpu/cli/softgpu"
        self.programs = []
        with endings.beginning(self):
            subprocess.run([self.softgpu, "start"], env=self.environment, check=True,
                           capture_output=True)
            for duty in duties:
                self.programs.append(
                        subprocess.Popen([self.softgpu, "run", "--", self.tandem, "run",
                                          *(["--duty", duty] if duty else []), "--",
                                          f"{BUILD}/examples/train", "--size", "64k",
                                                       "--gpu", "600s", "--cpu", "0", "--kernel",
                                          kernel, "--steps", "1"], env=self.environment,
                                         stdout=subprocess.DEVNULL))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()
        for command in ([self.tandem, "stop", "--force"], [self.softgpu, "stop"]):
            subprocess.run(command, env=self.environment, check=False, capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def show(self, *command):
        return json.loads(subprocess.run(command, env=self.environment, check=True,
                                         stdout=subprocess.PIPE, text=True).stdout)

    def set(self, job, duty):
        subprocess.run([self.tandem, "set", job, f"duty={duty}"], env=self.environment, check=True,
                       capture_output=True)

    def look(self):
        """Time on the model's clock; the GPU's busy time; each program's own, by its meter."""
        gpu = self.show(self.softgpu, "status", "--json")["gpus"][0]
        jobs = sorted(self.show(self.tandem, "ps", "--json"), key=lambda job: job["pid"])
        return [gpu["elapsed_ns"], gpu["busy_ns"], *(job["gpu_time_ns"] for job in jobs)]

    def shares(self, times, seconds=0.5):
        """After three seconds, so many spans of time: in percent of each, what the GPU was busy and
        what each meter says."""
        time.sleep(3)
        looks = [self.look()]
        for _ in range(times):
            time.sleep(seconds)
            looks.append(self.look())
        return [[100 * (b - a) / (after[0] - before[0]) for a, b in zip(before[1:], after[1:])]
                for before, after in zip(looks, looks[1:])]
