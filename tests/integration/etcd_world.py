"""A real etcd for tests."""
import base64
import json
import os
import shutil
import socket
import subprocess
import urllib.request

from world import Skip, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "/tandem/v1/"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def encode(text):
    return base64.b64encode(text.encode()).decode()


def find_etcd():
    found = shutil.which("etcd") or f"{ROOT}/build-etcd/usr/bin/etcd"
    if not os.path.exists(found):
        raise Skip("etcd is not here: scripts/test fetches Debian's")
    return found


class Etcd:
    """An etcd in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.peer = f"http://127.0.0.1:{free_port()}"
        self.start()

    def start(self):
        with open(f"{self.folder}/etcd.log", "a") as log:
            self.process = subprocess.Popen(
                [find_etcd(), "--data-dir", f"{self.folder}/etcd", "--name", "a",
                 "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                 "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                 "--initial-cluster", f"a={self.peer}", "--unsafe-no-fsync"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.answers, "etcd answers")

    def answers(self):
        try:
            return self.call("kv/range", key=encode("x")) is not None
        except OSError:
            return False

    def call(self, path, **body):
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)

    def put(self, key, value):
        self.call("kv/put", key=encode(PREFIX + key), value=encode(json.dumps(value)))

    def get(self, key):
        text = self.text(key)
        return json.loads(text) if text else None

    def text(self, key):
        rows = self.call("kv/range", key=encode(PREFIX + key)).get("kvs", [])
        return base64.b64decode(rows[0]["value"]).decode() if rows else None

    def delete(self, key):
        self.call("kv/deleterange", key=encode(PREFIX + key))

    def compact(self):
        """Forgets all revisions but the present one."""
        revision = self.call("kv/range", key=encode("x"))["header"]["revision"]
        self.call("kv/compaction", revision=revision, physical=True)

    def kill(self):
        self.process.kill()
        self.process.wait()
