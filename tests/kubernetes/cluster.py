"""A Kubernetes cluster of one node in a private folder: etcd, the API server, controllers,
scheduler, containerd and kubelet, as Debian's source package has them. It needs root, and a mount
namespace of its own, because some paths of a kubelet cannot be chosen."""
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time

DEADLINE_S = 120
IMAGE, PAUSE = "localhost/tandem-test:1", "localhost/pause:1"
# A network of containers that have none: each has an address that nobody reaches.
CNI = """#!/bin/sh
cat >/dev/null
[ "$CNI_COMMAND" = ADD ] || exit 0
cat <<JSON
{"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "$CNI_NETNS"}],
 "ips": [{"version": "4", "address": "10.99.0.2/32", "interface": 0}]}
JSON
"""


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def until(condition, what):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.2)


def add_file(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def write_image(path, tree, names):
    """A folder as an image of one layer, in Docker's format."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        layer.add(tree, arcname=".")
    layer = buffer.getvalue()
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux",
                         "config": {"Cmd": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]},
                         "rootfs": {"type": "layers",
                                    "diff_ids": [f"sha256:{digest}"]}}).encode()
    its_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": its_name, "RepoTags": names, "Layers": [f"{digest}.tar"]}]
    with tarfile.open(path, "w") as archive:
        add_file(archive, its_name, config)
        add_file(archive, f"{digest}.tar", layer)
        add_file(archive, "manifest.json", json.dumps(manifest).encode())


class Cluster:
    def __init__(self, programs):
        self.bin, self.debian = f"{programs}/bin", f"{programs}/debian"

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="tandem-k8s-", dir="/tmp")
        self.processes = {}
        self.etcd_port, self.peer_port, self.port, self.kubelet_port = free_ports(4)
        self.server = f"https://127.0.0.1:{self.port}"
        try:
            self.begin()
        except BaseException:
            self.__exit__(RuntimeError)
            raise
        return self

    # -- files --

    def path(self, name):
        return f"{self.directory}/{name}"

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(self.path(name), mode)
        return self.path(name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.directory)

    def config_for(self, user):
        """A kubeconfig, which is JSON here."""
        return self.write(f"config/{user}", {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.server,
                                                   "certificate-authority": self.path("tls.crt")}}],
            "users": [{"name": user, "user": {"token": f"token-{user}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": user}}]})

    # -- processes --

    def spawn(self, name, *command, **environment):
        log = open(self.path(f"{name}.log"), "ab")
        self.processes[name] = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, env=dict(
                os.environ, PATH=f"{self.debian}/usr/bin:{self.debian}/usr/sbin:"
                                 + os.environ["PATH"], **environment))
        log.close()

    def stop(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name)
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name):
        with open(self.path(f"{name}.log"), errors="replace") as f:
            return f.read()

    # -- begin --

    def begin(self):
        os.makedirs("/var/lib/kubelet", exist_ok=True)
        os.makedirs(self.path("kubelet"))
        subprocess.run(["mount", "--bind", self.path("kubelet"), "/var/lib/kubelet"], check=True)
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
                     "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "tls.key",
                     "-out", "tls.crt")
        self.openssl("genrsa", "-out", "accounts.key", "2048")
        self.write("tokens", "token-admin,admin,1,system:masters\n"
                   "token-node,node,2,system:masters\n")
        for user in ("admin", "node"):
            self.config_for(user)
        self.begin_server()
        self.begin_containerd()
        self.begin_kubelet()
        until(lambda: self.node_is_ready(), "the node is ready")

    def begin_server(self):
        self.spawn("etcd", "etcd", "--data-dir", self.path("etcd"), "--listen-client-urls",
                   f"http://127.0.0.1:{self.etcd_port}", "--advertise-client-urls",
                   f"http://127.0.0.1:{self.etcd_port}", "--listen-peer-urls",
                   f"http://127.0.0.1:{self.peer_port}", "--unsafe-no-fsync")
        self.spawn(
            "apiserver", f"{self.bin}/kube-apiserver", "--etcd-servers",
            f"http://127.0.0.1:{self.etcd_port}", "--secure-port", self.port, "--bind-address",
            "127.0.0.1", "--tls-cert-file", self.path("tls.crt"), "--tls-private-key-file",
            self.path("tls.key"), "--token-auth-file", self.path("tokens"),
            "--authorization-mode", "RBAC", "--service-account-issuer", "https://tandem.test",
            "--service-account-key-file", self.path("accounts.key"),
            "--service-account-signing-key-file", self.path("accounts.key"),
            "--service-cluster-ip-range", "10.98.0.0/24", "--cert-dir", self.path("certs"),
            "--allow-privileged=true")
        until(lambda: self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0,
              "the API server is ready")
        common = ["--kubeconfig", self.path("config/admin"), "--leader-elect=false"]
        self.spawn("controllers", f"{self.bin}/kube-controller-manager", *common, "--port=0",
                   "--secure-port=0", "--service-account-private-key-file",
                   self.path("accounts.key"), "--root-ca-file", self.path("tls.crt"))
        self.spawn("scheduler", f"{self.bin}/kube-scheduler", *common, "--port=0",
                   "--secure-port=0")

    def begin_containerd(self):
        for plugin in ("loopback", "private"):
            self.write(f"cni/bin/{plugin}", CNI, 0o755)
        self.write("cni/conf/1.conf", {"cniVersion": "0.4.0", "name": "private",
                                       "type": "private"})
        self.write("containerd.toml", f"""version = 2
root = "{self.directory}/containerd/root"
state = "{self.directory}/containerd/state"
[grpc]
  address = "{self.directory}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{self.directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{self.directory}/cni/bin"
    conf_dir = "{self.directory}/cni/conf"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{self.debian}/usr/sbin/runc"
""")
        self.spawn("containerd", "containerd", "-c", self.path("containerd.toml"))
        tree = self.path("image")
        os.makedirs(f"{tree}/bin")
        shutil.copy("/bin/busybox", f"{tree}/bin/busybox")
        for applet in ("sh", "sleep", "cat", "env", "sync"):
            os.symlink("busybox", f"{tree}/bin/{applet}")
        write_image(self.path("image.tar"), tree, [IMAGE, PAUSE])
        until(lambda: self.ctr("version").returncode == 0, "containerd answers")
        done = self.ctr("images", "import", "--snapshotter", "native", self.path("image.tar"))
        assert not done.returncode, done

    def ctr(self, *arguments):
        return subprocess.run([f"{self.debian}/usr/bin/ctr", "-a", self.path("containerd.sock"),
                               "-n", "k8s.io", *arguments], capture_output=True, text=True)

    def begin_kubelet(self):
        config = self.write("kubelet.config", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "port": self.kubelet_port, "address": "127.0.0.1", "healthzPort": 0,
            "readOnlyPort": 0, "cgroupDriver": "cgroupfs", "failSwapOn": False,
            "enforceNodeAllocatable": [], "makeIPTablesUtilChains": False,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "cgroupRoot": "/tandem-k8s",
            "evictionHard": {"memory.available": "1Mi"}, "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "2s", "syncFrequency": "5s"})
        for controller in os.listdir("/sys/fs/cgroup"):
            if os.path.isdir(f"/sys/fs/cgroup/{controller}"):
                os.makedirs(f"/sys/fs/cgroup/{controller}/tandem-k8s", exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            with open(f"/sys/fs/cgroup/cpuset/{name}") as f:
                value = f.read()
            with open(f"/sys/fs/cgroup/cpuset/tandem-k8s/{name}", "w") as f:
                f.write(value)
        self.spawn("kubelet", f"{self.bin}/kubelet", "--config", config, "--kubeconfig",
                   self.path("config/node"), "--container-runtime", "remote",
                   "--container-runtime-endpoint", f"unix://{self.directory}/containerd.sock",
                   "--root-dir", "/var/lib/kubelet", "--hostname-override", "node1",
                   "--cert-dir", self.path("kubelet-certs"), "--node-ip", "127.0.0.1",
                   "--pod-infra-container-image", PAUSE)

    # -- the API --

    def kubectl(self, *arguments, check=True, text=None):
        for name, process in self.processes.items():
            assert process.poll() is None, f"{name} has ended:\n{self.log(name)[-2000:]}"
        done = subprocess.run(
            [f"{self.bin}/kubectl", "--kubeconfig", self.path("config/admin"), *arguments],
            capture_output=True, text=True, input=text, timeout=DEADLINE_S)
        assert not check or done.returncode == 0, done
        return done

    def get(self, *arguments):
        return json.loads(self.kubectl("get", "-o", "json", *arguments).stdout)

    def apply(self, *things, check=True, options=()):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
        return self.kubectl("apply", "-f", "-", *options, check=check, text=text)

    def node(self):
        nodes = self.get("nodes")["items"]
        return nodes[0] if nodes else None

    def node_is_ready(self):
        assert self.processes["kubelet"].poll() is None, self.log("kubelet")[-3000:]
        node = self.node()
        return node and not node["spec"].get("taints") and any(
            c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])

    def pod(self, name):
        return self.get("pod", name)

    def phase(self, name):
        return self.pod(name)["status"].get("phase")

    def events_of(self, name):
        return [event["message"] for event in self.get(
            "events", "--field-selector", f"involvedObject.name={name}")["items"]]

    # -- the end --

    def __exit__(self, kind, *_):
        if kind:
            for name in self.processes:
                print(f"# {name}: " + self.log(name)[-1500:].replace("\n", "\n# "))
        for name in ("kubelet", "containerd"):
            if name == "containerd" and name in self.processes:
                for task in self.ctr("tasks", "ls", "-q").stdout.split():
                    self.ctr("tasks", "kill", "-s", "SIGKILL", task)
                    self.ctr("tasks", "rm", "-f", task)
            if name in self.processes:
                self.stop(name)
        for name in list(self.processes):
            self.stop(name)
        self.remove_cgroups()
        with open("/proc/mounts") as f:
            mounts = [line.split()[1] for line in f]
        for mount in sorted(mounts, reverse=True):
            if mount.startswith((self.directory, "/var/lib/kubelet")):
                subprocess.run(["umount", "-l", mount], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def remove_cgroups():
        for controller in os.listdir("/sys/fs/cgroup"):
            for where, folders, _ in os.walk(f"/sys/fs/cgroup/{controller}/tandem-k8s",
                                             topdown=False):
                try:
                    os.rmdir(where)
                except OSError:
                    pass
