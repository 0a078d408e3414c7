"""What the cases in a real Kubernetes have in common: the cluster, the node's GPUs, and pods."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/integration")
from world import BUILD, LIBRARY, SOFTGPU, TANDEM, World  # noqa: E402

from cluster import IMAGE, Cluster, until  # noqa: E402

PLUGIN = f"{BUILD}/src/kubernetes/tandem-device-plugin"
ADMISSION = f"{BUILD}/src/kubernetes/admission/tandem-admission"
SCHED = f"{BUILD}/src/kubernetes/sched/tandem-kube-sched"
PROGRAMS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                        "tandem/kubernetes")
LONG = ["--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "1000000"]
worlds, cluster = [World("--gpus", "1")], Cluster(PROGRAMS)  # the node has the GPUs of the last


def say(*lines):
    for line in lines:
        print(f"# {line}", flush=True)


def world():
    return worlds[-1]


def pod(name, gpu, *arguments, **annotations):
    """A pod of an image that knows nothing of tandem. What NVIDIA's runtime would bring along, the
    driver, it has from the node, and so it has the test's program."""
    folder = world().environment["SOFTGPU_DIR"]
    paths = {"lib": ("/usr/lib", "/lib"), "lib64": ("/usr/lib64", "/lib64"),
             "driver": (f"{BUILD}/softgpu/driver", "/driver"),
             "train": (f"{BUILD}/examples", "/train"),
             "gpu": (folder, folder)}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {f"tandem.dev/{key}": value for key, value
                                                   in annotations.items()}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "dnsPolicy": "Default",
            "containers": [{
                "name": "train", "image": IMAGE, "imagePullPolicy": "Never",
                "command": ["/train/train", *(arguments or LONG)],
                "env": [{"name": "LD_LIBRARY_PATH", "value": "/driver"},
                        {"name": "SOFTGPU_DIR", "value": folder}],
                "resources": {"limits": {"tandem.dev/gpu": gpu}},
                "volumeMounts": [{"name": volume, "mountPath": inside}
                                 for volume, (_, inside) in paths.items()]}],
            "volumes": [{"name": volume, "hostPath": {"path": outside}}
                        for volume, (outside, _) in paths.items()]}}


def offer_gpus(*options):
    """Starts tandemd, as the chart does, where the cluster has the quotas, and the plugin."""
    assert not world().call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode
    assert not world().call(TANDEM, "set", "quota.gpus=none").returncode
    cluster.spawn("plugin", PLUGIN, "--library", os.path.dirname(LIBRARY), "--period", "200ms",
                  *options, TANDEM_SOCKET=world().environment["TANDEM_SOCKET"])


def phases(*names):
    return [cluster.phase(name) for name in names]


def run(*pods):
    cluster.apply(*pods)
    names = [its["metadata"]["name"] for its in pods]
    until(lambda: phases(*names) == ["Running"] * len(names), f"{names} run")


def show():
    say(*cluster.kubectl("get", "pods").stdout.splitlines(),
        *world().call(TANDEM, "ps").stdout.splitlines())


def chart(*settings):
    import yaml
    done = subprocess.run([sys.executable, f"{ROOT}/tools/render-chart", "--set",
                           "admission.enabled=true", "--set", "node.textfileDir=/t", *settings],
                          capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return list(yaml.safe_load_all(done.stdout))
