"""A private software GPU with a daemon that starts MPS on it."""
import json
import os
import subprocess
import threading

from world import BUILD, DEADLINE_S, SOFTGPU, TANDEM, World, until

CLIENT = f"{BUILD}/tests/integration/softgpu/mps_client"
HALF = 20  # blocks that fill half of a t4


def end(process):
    """Killed in the middle of its work, a client would hang MPS for all."""
    process.terminate()
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


class MpsWorld(World):
    def __init__(self, *options, **environment):
        super().__init__("--model", "t4", *options)
        self.more, self.clients = environment, []

    def __enter__(self):
        super().__enter__()
        for name in [n for n in self.environment if n.startswith("CUDA_")]:
            del self.environment[name]
        self.environment.update(self.more)
        return self

    def __exit__(self, kind, *rest):
        for client in self.clients:
            client.kill()
            client.wait(DEADLINE_S)
        self.tandem("set", "mps=off")
        until(lambda: not self.control() or self.mps()[0] in ("", "foreign"), "MPS has ended")
        super().__exit__(kind, *rest)

    def tandem(self, *arguments, **environment):
        return self.call(SOFTGPU, "run", "--", TANDEM, *arguments, **environment)

    def mps(self, gpu=0):
        """State and text of a GPU's MPS. Both are empty until the daemon has seen the GPU."""
        rows = json.loads(self.tandem("gpu", "--json").stdout)
        return (rows[gpu]["mps"], rows[gpu]["mps_text"]) if gpu < len(rows) else ("", "")

    def is_ready(self):
        return self.mps()[0] == "ready"

    def turn_on(self):
        assert self.tandem("run", "--", "true").returncode == 0
        assert self.tandem("set", "mps=on").returncode == 0
        until(self.is_ready, "MPS is ready")

    def directory_of(self, gpu=0):
        return f"{self.directory}/t/mps/{gpu}"

    def control(self, directory=None):
        """The pid of the control daemon there, or 0."""
        try:
            with open(f"{directory or self.directory_of()}/nvidia-cuda-mps-control.pid") as f:
                return int(f.read() or 0)
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def environment_of_a_job(self, *options, **environment):
        done = self.tandem("run", *options, "--", "env", **environment)
        assert done.returncode == 0, done
        return (dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line),
                done.stderr)

    def client(self, *options):
        client = subprocess.Popen([SOFTGPU, "run", "--", TANDEM, "run", *options, "--", CLIENT],
                                  env=self.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, bufsize=1)
        self.clients.append(client)
        assert answer(client) == [0]
        assert ask(client, "context") == [0]
        return client


def answer(client):
    """Where MPS hangs the client would never answer, so it is ended then."""
    deadline = threading.Timer(DEADLINE_S, client.kill)
    deadline.daemon = True
    deadline.start()
    words = client.stdout.readline().split()
    deadline.cancel()
    assert words, f"the program ended: {client.wait()}"
    return [int(word) for word in words]


def ask(client, line):
    client.stdin.write(line + "\n")
    return answer(client)
