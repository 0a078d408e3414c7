"""A private software GPU with a daemon, for run-mudi."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import endings

BUILD = os.path.abspath(os.environ.get("TANDEM_DEMO_BUILD", "build"))
BIN, EXAMPLES = f"{BUILD}/bin", f"{BUILD}/examples"


class Machine:
    """Notes the moments in which this machine was late: latencies of then are its own, not the
    model's."""

    STEP_S, LATE_S, AFTER_S = 0.002, 0.004, 0.1

    def __init__(self):
        self.stalls, self.ends = [], False
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()

    def watch(self):
        while not self.ends:
            before = time.monotonic()
            time.sleep(self.STEP_S)
            after = time.monotonic()
            if after - before > self.STEP_S + self.LATE_S:
                self.stalls.append((before, after))

    def was_late(self, begin, end):
        return any(a < end and begin < b + self.AFTER_S for a, b in self.stalls)


class Node:
    def __init__(self, policy, mps=True, profiles=None):
        self.policy, self.mps, self.profiles = policy, mps, profiles
        self.directory = tempfile.mkdtemp(prefix="tandem-mudi-node-")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
        self.environment.update(TANDEM_SOCKET=f"{self.directory}/t/socket",
                                TANDEM_LOCKS=f"{self.directory}/locks",
                                SOFTGPU_DIR=f"{self.directory}/gpu")
        self.processes = []

    def __enter__(self):
        with endings.beginning(self):
            self.call(f"{BIN}/softgpu", "start", "--model", "h100")
            options = [f"policy={self.policy}", f"mps={'on' if self.mps else 'off'}"]
            if self.profiles:
                # Each run begins with what the campaign has learnt, and no more.
                options += [f"profiles={self.profiles}", "profiles.learn=off"]
            self.start([f"{BIN}/softgpu", "run", "--", f"{BIN}/tandemd",
                        *(word for o in options for word in ("--set", o))])
            self.wait(lambda: os.path.exists(self.environment["TANDEM_SOCKET"]), "the daemon")
            if self.mps:
                self.wait(lambda: self.gpu()["mps"] == "ready", "MPS")
        return self

    def __exit__(self, *_):
        for process in self.processes[:0:-1]:
            process.kill()
            process.communicate()
        if self.mps:
            self.tandem("set", "mps=off")
            end = time.monotonic() + 5
            while self.gpu()["mps"] and time.monotonic() < end:
                time.sleep(0.02)
        self.tandem("stop", "--force")
        self.processes[0].communicate()
        self.call(f"{BIN}/softgpu", "stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              check=False).stdout

    def tandem(self, *arguments):
        return self.call(f"{BIN}/tandem", *arguments)

    def gpu(self):
        rows = json.loads(self.tandem("gpu", "--json") or "[]")
        return rows[0] if rows else {"mps": ""}

    def jobs(self):
        return json.loads(self.tandem("ps", "--json") or "[]")

    def set(self, *arguments):
        self.tandem("set", *arguments)

    def lagged(self):
        return json.loads(self.call(f"{BIN}/softgpu", "status", "--json"))["gpus"][0]["lagged"]

    def wait(self, condition, what):
        end = time.monotonic() + 30
        while not condition():
            if time.monotonic() > end or any(p.poll() for p in self.processes):
                sys.exit(f"mudi: {self.policy}: {what} does not come")
            time.sleep(0.02)

    @staticmethod
    def port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def start(self, command, **more):
        self.processes.append(subprocess.Popen(command, env=dict(self.environment, **more),
                                               text=True, stdout=subprocess.PIPE,
                                               stderr=subprocess.DEVNULL))
        return self.processes[-1]

    def program(self, share, options, command):
        more = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(share)} if share else {}
        return self.start([f"{BIN}/softgpu", "run", "--", f"{BIN}/tandem", "run", *options, "--",
                           *command], **more)

    def service(self, name, share, command, shadows=False):
        """Its URL. shadows: its share may change."""
        options = ["--class", "online", "--name", name] + ["--shadow"] * shadows
        return self.program(share, options, command).stdout.readline().strip()

    def training(self, name, layers, share, command):
        self.program(share, ["--name", name, "--layers", layers], command)

    def load(self, url, *options):
        return subprocess.Popen([f"{EXAMPLES}/load", "--url", url, *options],
                                env=self.environment, stdout=subprocess.PIPE, text=True)

    def kernels(self):
        try:
            with open(f"{self.directory}/count", "rb") as f:
                return int.from_bytes(f.read(8), "little")
        except FileNotFoundError:
            return 0
