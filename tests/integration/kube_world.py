"""An API server of Kubernetes with what a scheduler asks of one: pods, nodes, bindings, evictions,
events, leases, and watches with versions, bookmarks and 410. Beside it a kubelet and a controller
that do what real ones do."""
import collections
import copy
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import urllib.parse

from world import BUILD, DEADLINE_S, Skip

SCHED = f"{BUILD}/src/kubernetes/sched/tandem-kube-sched"
GPU = "tandem.dev/gpu"
TOKEN = "the-token"


class Refusal(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def status(self):
        return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code,
                "reason": self.reason, "message": self.message}


def merge(into, patch):
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


class Cluster:
    """The objects, with all that was asked."""

    def __init__(self, *options, minor=30, tls=False):
        self.options, self.minor, self.tls = options, minor, tls
        self.lock = threading.Condition()
        self.version, self.forgotten = 1000, 0
        self.objects = {"pods": {}, "nodes": {}, "leases": {}}  # resource -> key -> object
        self.changes = []  # (version, resource, type, object)
        self.asked, self.events, self.broken = collections.Counter(), [], []
        self.budget = None  # how many evictions a PodDisruptionBudget still allows
        self.grace = True  # an evicted pod is gone at once; False: end() ends it
        self.token, self.uid, self.refused = TOKEN, 0, 0
        self.drop, self.page, self.away = 0, 500, False
        self.scheds = []

    # -- life --

    def __enter__(self):
        if not os.path.exists(SCHED):
            raise Skip("tandem-kube-sched was not built: libcurl or jansson is missing")
        self.directory = tempfile.mkdtemp(prefix="tandem-kube-")
        self.server = Server(("127.0.0.1", 0), handler_of(self))
        if self.tls:
            self.begin_tls()
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        with open(f"{self.directory}/token", "w") as f:
            f.write(self.token + "\n")
        return self

    def __exit__(self, kind, *_):
        for sched in self.scheds:
            sched.kill()
            sched.wait(timeout=DEADLINE_S)
        self.away = True
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            self.lock.notify_all()
        if kind:
            print("# " + self.log().replace("\n", "\n# "))
            print("# " + json.dumps(self.events[-20:]))
        shutil.rmtree(self.directory, ignore_errors=True)
        assert kind or not self.broken, self.broken

    def begin_tls(self):
        if not shutil.which("openssl"):
            raise Skip("openssl is missing")
        key, certificate = f"{self.directory}/key.pem", f"{self.directory}/ca.crt"
        done = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
             certificate, "-days", "2", "-subj", "/CN=kubernetes", "-addext",
             "subjectAltName=IP:127.0.0.1"], capture_output=True, text=True, timeout=DEADLINE_S)
        assert not done.returncode, done
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def schedule(self, *options, name="one", **environment):
        with open(f"{self.directory}/{name}.log", "a") as log:
            sched = subprocess.Popen(
                [SCHED, *self.where(), "--name", name, "--period", "20ms", "--lease", "2s",
                 "--restart", "1s", *self.options, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, **environment))
        self.scheds.append(sched)
        return sched

    def where(self):
        port = self.server.server_address[1]
        return ["--server", f"{'https' if self.tls else 'http'}://127.0.0.1:{port}",
                "--token-file", f"{self.directory}/token",
                *(["--ca-file", f"{self.directory}/ca.crt"] if self.tls else [])]

    def log(self, name=None):
        text = ""
        for file in sorted(os.listdir(self.directory)):
            if file.endswith(".log") and name in (None, file[:-4]):
                with open(f"{self.directory}/{file}") as f:
                    text += f.read()
        return text

    # -- objects --

    def change(self, resource, type_, item):
        """With the lock held."""
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.changes.append((self.version, resource, type_, copy.deepcopy(item)))
        self.lock.notify_all()

    def node(self, name, gpus=1, cpu="8", memory="32Gi", **more):
        slices = "1k" if gpus == 10 else str(100 * gpus)  # as the server writes it
        amounts = {GPU: slices, "cpu": cpu, "memory": memory, "pods": "110"}
        item = {"metadata": {"name": name, "uid": f"node-{name}", "labels": {}},
                "spec": {}, "status": {"capacity": dict(amounts), "allocatable": amounts,
                                       "conditions": [{"type": "Ready", "status": "True"}]}}
        merge(item, more)
        with self.lock:
            known = name in self.objects["nodes"]
            self.objects["nodes"][name] = item
            self.change("nodes", "MODIFIED" if known else "ADDED", item)

    def patch_node(self, name, **patch):
        with self.lock:
            item = self.objects["nodes"][name]
            merge(item, patch)
            self.change("nodes", "MODIFIED", item)

    def lose_node(self, name):
        with self.lock:
            self.change("nodes", "DELETED", self.objects["nodes"].pop(name))

    def pod(self, name, slices=50, space="default", owner="ReplicaSet", scheduler="tandem",
            class_=None, **more):
        with self.lock:
            self.uid += 1
            uid = f"{self.uid:08x}-1111-2222-3333-444444444444"
            item = {"metadata": {"name": name, "namespace": space, "uid": uid, "annotations": {},
                                 "managedFields": [{"manager": "kubectl"}]},
                    "spec": {"schedulerName": scheduler, "containers": [
                        {"name": "main", "image": "x", "resources": {
                            "requests": {GPU: str(slices), "cpu": "500m", "memory": "1Gi"},
                            "limits": {GPU: str(slices)}}}]},
                    "status": {"phase": "Pending"}}
            if owner:
                item["metadata"]["ownerReferences"] = [
                    {"kind": owner, "name": name, "uid": f"owner-{name}", "controller": True}]
            if class_:
                item["metadata"]["annotations"]["tandem.dev/class"] = class_
            merge(item, copy.deepcopy(more))
            self.objects["pods"][space, name] = item
            self.change("pods", "ADDED", item)
        return name

    def end(self, name, space="default"):
        """The pod's programs end, or the kubelet has ended them."""
        with self.lock:
            item = self.objects["pods"].pop((space, name))
            item["status"]["phase"] = "Succeeded"
            self.change("pods", "DELETED", item)

    def get(self, name, space="default"):
        with self.lock:
            return copy.deepcopy(self.objects["pods"].get((space, name)))

    def where_is(self, name, space="default"):
        item = self.get(name, space)
        return item and item["spec"].get("nodeName")

    def notes(self, name, space="default"):
        return self.get(name, space)["metadata"]["annotations"]

    def said(self, name, reason=None):
        with self.lock:
            return [e["message"] for e in self.events if e["involvedObject"]["name"] == name
                    and reason in (None, e["reason"])]

    def lease(self):
        with self.lock:
            lease = self.objects["leases"].get("tandem-kube-sched")
            return lease and lease["spec"]["holderIdentity"]

    def forget(self):
        """Compaction: no watch can go on from here."""
        with self.lock:
            self.version += 10
            self.forgotten = self.version
            self.drop += 1
            self.lock.notify_all()

    # -- requests --

    def check_bound(self, item):
        """The kubelet refuses a pod for which it has not the slices, and the pod fails."""
        node = self.objects["nodes"].get(item["spec"]["nodeName"])
        used, on_gpu = 0, collections.Counter()
        for other in self.objects["pods"].values():
            if other["spec"].get("nodeName") != item["spec"]["nodeName"]:
                continue
            slices = sum(int(c["resources"]["limits"][GPU]) for c in other["spec"]["containers"])
            used += slices
            gpus = other["metadata"]["annotations"].get("tandem.dev/gpu-index")
            for gpu in gpus.split(",") if gpus else []:
                on_gpu[gpu] += slices // len(gpus.split(","))
        most = node and node["status"]["allocatable"][GPU].replace("1k", "1000")
        if not node or used > int(most) or any(count > 100 for count in on_gpu.values()):
            self.broken.append((item["metadata"]["name"], used, dict(on_gpu)))

    def bind(self, space, name, body):
        item = self.find(space, name)
        if item["spec"].get("nodeName"):
            raise Refusal(409, "Conflict", f"pod {name} is already assigned to node "
                          + item["spec"]["nodeName"])
        if body["metadata"]["uid"] != item["metadata"]["uid"]:
            raise Refusal(409, "Conflict", "the UID in the precondition is another one")
        item["spec"]["nodeName"] = body["target"]["name"]
        merge(item["metadata"]["annotations"], body["metadata"]["annotations"])
        self.check_bound(item)
        self.change("pods", "MODIFIED", item)
        return 201, {"kind": "Status", "status": "Success", "code": 201}

    def evict(self, space, name, body):
        versions = ["policy/v1"] if self.minor >= 25 else ["policy/v1beta1"]
        if body["apiVersion"] not in versions:
            raise Refusal(400, "BadRequest", f"no kind Eviction in {body['apiVersion']}")
        item = self.find(space, name)
        if body["deleteOptions"]["preconditions"]["uid"] != item["metadata"]["uid"]:
            raise Refusal(409, "Conflict", "the UID in the precondition is another one")
        if self.budget is not None:
            if not self.budget:
                self.refused += 1
                raise Refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the "
                              "pod's disruption budget.")
            self.budget -= 1
        item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.change("pods", "MODIFIED", item)
        if self.grace:
            self.change("pods", "DELETED", self.objects["pods"].pop((space, name)))
        return 201, {"kind": "Status", "status": "Success", "code": 201}

    def find(self, space, name):
        item = self.objects["pods"].get((space, name))
        if not item:
            raise Refusal(404, "NotFound", f'pods "{name}" not found')
        return item

    def put_lease(self, body, is_new):
        name = body["metadata"]["name"]
        known = self.objects["leases"].get(name)
        if is_new and known:
            raise Refusal(409, "AlreadyExists", f'leases "{name}" already exists')
        if not is_new and not known:
            raise Refusal(404, "NotFound", f'leases "{name}" not found')
        if not is_new and body["metadata"]["resourceVersion"] != (
                known["metadata"]["resourceVersion"]):
            raise Refusal(409, "Conflict", "the object has been modified")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", body["spec"]["renewTime"])
        assert body["spec"]["leaseDurationSeconds"] > 0
        self.objects["leases"][name] = body
        self.change("leases", "MODIFIED", body)
        return 201 if is_new else 200, body

    def answer(self, method, path, query, body):
        """With the lock held. Returns a status and an object."""
        part = path.strip("/").split("/")
        if path == "/apis/policy":
            versions = ["v1"] if self.minor >= 25 else ["v1beta1"]
            return 200, {"kind": "APIGroup", "versions": [{"version": v} for v in versions]}
        if "coordination.k8s.io" in part:
            if method != "GET":
                return self.put_lease(body, method == "POST")
            if part[-1] not in self.objects["leases"]:
                raise Refusal(404, "NotFound", "no such lease")
            return 200, self.objects["leases"][part[-1]]
        if method == "GET" and part[-1] in ("pods", "nodes") and "namespaces" not in part:
            return 200, self.list(part[-1], query)
        space = part[3]
        if method == "POST" and part[-1] == "events":
            assert body["metadata"]["namespace"] == body["involvedObject"]["namespace"] == space
            self.events.append(body)
            return 201, body
        if method == "POST" and part[-1] == "binding":
            return self.bind(space, part[5], body)
        if method == "POST" and part[-1] == "eviction":
            return self.evict(space, part[5], body)
        item = self.find(space, part[5])
        if method == "PATCH":
            if part[-1] != "status" or set(body) != {"metadata"}:
                raise Refusal(403, "Forbidden", "its role lets it patch the status alone")
            merge(item, body)
            self.change("pods", "MODIFIED", item)
        return 200, item

    def list(self, resource, query):
        items = sorted(self.objects[resource].values(), key=lambda i: i["metadata"]["name"])
        begin = int(query.get("continue", ["0"])[0])
        page = items[begin:begin + min(self.page, int(query.get("limit", ["500"])[0]))]
        metadata = {"resourceVersion": str(self.version)}
        if begin + len(page) < len(items):
            metadata["continue"] = str(begin + len(page))
        return {"kind": "List", "metadata": metadata, "items": page or None}

    def watch(self, resource, query, send):
        """Sends lines until the watch is to end."""
        at, drop = int(query["resourceVersion"][0]), self.drop
        assert query["allowWatchBookmarks"] == ["1"] or query["allowWatchBookmarks"] == ["true"]
        while True:
            with self.lock:
                if at < self.forgotten:
                    send({"type": "ERROR", "object": Refusal(
                        410, "Expired", "too old resource version").status()})
                    return
                while not self.away and drop == self.drop and (
                        not self.changes or self.changes[-1][0] <= at):
                    if not self.lock.wait(0.5):
                        break
                if self.away or drop != self.drop:
                    return
                new = [c for c in self.changes if c[0] > at]
                at = max(at, self.version)
            for version, what, type_, item in new:
                if what == resource:
                    send({"type": type_, "object": item})
            send({"type": "BOOKMARK", "object": {
                "kind": resource, "metadata": {"resourceVersion": str(at)}}})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Schedulers are killed in the middle of requests."""


def handler_of(cluster):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def setup(self):
            super().setup()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def reply(self, status, item):
            data = json.dumps(item).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self, resource, query):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()

            def send(item):
                data = json.dumps(item).encode() + b"\n"
                for piece in (data[:7], data[7:]):  # chunks end anywhere
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            cluster.watch(resource, query, send)
            self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

        def serve(self):
            url = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(url.query)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if cluster.away:
                self.close_connection = True
                return
            with cluster.lock:
                verb = "WATCH" if "watch" in query else self.command
                cluster.asked[verb, re.sub(r"/namespaces/.*/", "/", url.path)] += 1
                token = cluster.token
            try:
                if self.headers.get("Authorization") != f"Bearer {token}":
                    raise Refusal(401, "Unauthorized", "Unauthorized")
                if "watch" in query:
                    self.stream(url.path.split("/")[-1], query)
                    return
                with cluster.lock:
                    status, item = cluster.answer(self.command, url.path, query,
                                                  json.loads(body) if body else None)
                    item = copy.deepcopy(item)
                self.reply(status, item)
            except Refusal as refusal:
                self.reply(refusal.code, refusal.status())
            except OSError:
                self.close_connection = True
            except Exception as problem:  # the test says what the server met
                cluster.broken.append((self.command, self.path, repr(problem)))
                self.reply(500, Refusal(500, "InternalError", repr(problem)).status())

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve
    return Handler


def stop(sched):
    sched.send_signal(signal.SIGTERM)
    assert sched.wait(timeout=DEADLINE_S) == 0
