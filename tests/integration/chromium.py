"""Drives Debian's Chromium by the DevTools protocol, with what Python brings along."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0"]
PATIENCE_S = 60
KEY_CODES = {"Enter": 13, "PageDown": 34, "ArrowDown": 40}


def find():
    """The program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class WebSocket:
    """RFC 6455, the client's side: whole texts, one at a time."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=PATIENCE_S)
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                             "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             f"Sec-WebSocket-Key: {key}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise AssertionError(f"no websocket: {head!r}")

    def more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise AssertionError("the browser has ended")
        self.buffer += data

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        head = bytes([0x81])
        if length < 126:
            head += bytes([0x80 | length])
        elif length < 1 << 16:
            head += struct.pack("!BH", 0x80 | 126, length)
        else:
            head += struct.pack("!BQ", 0x80 | 127, length)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def receive(self):
        whole = b""
        while True:
            first, second = self.take(2)
            length = second & 127
            if length == 126:
                length, = struct.unpack("!H", self.take(2))
            elif length == 127:
                length, = struct.unpack("!Q", self.take(8))
            data = self.take(length)
            if first & 15 in (0, 1):
                whole += data
                if first & 128:
                    return whole.decode()


class Browser:
    """A browser with one page. Its folder is empty before and gone afterwards."""

    def __init__(self, width=1440, height=900, dark=False):
        self.folder = tempfile.mkdtemp(prefix="tandem-chromium-")
        # The browser's crash reporter and caches stay in the folder, too.
        environment = dict(os.environ, HOME=self.folder, XDG_CONFIG_HOME=self.folder,
                           XDG_CACHE_HOME=self.folder)
        environment.pop("LD_PRELOAD", None)
        self.process = subprocess.Popen(
            [find(), *FLAGS, f"--user-data-dir={self.folder}/data",
             f"--window-size={width},{height}", "about:blank"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        self.number = 0
        self.problems = []
        port = self.port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S) as f:
            page = next(p for p in json.load(f) if p["type"] == "page")
        self.web = WebSocket("127.0.0.1", port, page["webSocketDebuggerUrl"].split(str(port), 1)[1])
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def port(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with open(f"{self.folder}/data/DevToolsActivePort", encoding="ascii") as f:
                    lines = f.read().split()
                if lines:
                    return int(lines[0])
            except FileNotFoundError:
                pass
            time.sleep(0.02)
        raise AssertionError("Chromium does not start")

    def call(self, method, **params):
        self.number += 1
        self.web.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.web.receive())
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.note(answer)

    def note(self, event):
        """What a page complains of: errors, and what the policy of contents has refused."""
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.problems.append(details.get("exception", details).get("description", str(details)))
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            entry = event["params"]["entry"]
            self.problems.append(f"{entry['text']} {entry.get('url', '')}")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def ask(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in answer, (expression, answer)
        return answer["result"].get("value")

    def press(self, key):
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        # Without the code of the key the browser does nothing with it by itself.
        code = KEY_CODES.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text,
                  windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(timeout=10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
