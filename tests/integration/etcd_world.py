"""A real etcd for tests."""
import base64
import json
import os
import shutil
import subprocess
import sys
import urllib.request

from world import Skip, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tools")
from slurm_conf import free_ports  # noqa: E402

PREFIX = "/tandem/v1/"


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
        self.choose_ports()
        self.start(is_first=True)

    def choose_ports(self):
        self.url, self.peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))

    def start(self, is_first=False):
        """Starts it, again if another program holds one of its ports."""
        def answers():
            if self.process.poll() is not None:
                if is_first:
                    shutil.rmtree(f"{self.folder}/etcd", ignore_errors=True)
                    self.choose_ports()
                self.spawn()
            return self.answers()

        self.spawn()
        until(answers, "etcd answers")

    def spawn(self):
        with open(f"{self.folder}/etcd.log", "a") as log:
            self.process = subprocess.Popen(
                [find_etcd(), "--data-dir", f"{self.folder}/etcd", "--name", "a",
                 "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                 "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                 "--initial-cluster", f"a={self.peer}", "--unsafe-no-fsync"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

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
        text, made = self.made(key)
        return text if made else None

    def made(self, key):
        """The value and the revision that made the key; "" and 0: there is none."""
        rows = self.call("kv/range", key=encode(PREFIX + key)).get("kvs", [])
        row = rows[0] if rows else {"create_revision": 0}
        return base64.b64decode(row.get("value", "")).decode(), int(row["create_revision"])

    def delete(self, key):
        self.call("kv/deleterange", key=encode(PREFIX + key))

    def compact(self):
        """Forgets all revisions but the present one."""
        revision = self.call("kv/range", key=encode("x"))["header"]["revision"]
        self.call("kv/compaction", revision=revision, physical=True)

    def kill(self):
        self.process.kill()
        self.process.wait()
