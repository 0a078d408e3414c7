#!/usr/bin/env python3
"""tandem in a real Kubernetes of one node, with software GPUs: scripts/test kubernetes. Root, in a
mount namespace of its own. The cases follow each other. TAP. usage: real.py BUILD [CASE]..."""
import base64
import json
import sys

import placing
from common import (ADMISSION, ROOT, chart, cluster, offer_gpus, phases, pod, run, say, show, until,
                    world)
from world import result_of


def begin():
    offer_gpus()
    version = json.loads(cluster.kubectl("version", "-o", "json").stdout)
    say(f"API server {version['serverVersion']['gitVersion']}, kubelet "
        + cluster.node()["status"]["nodeInfo"]["kubeletVersion"] + ", "
        + cluster.node()["status"]["nodeInfo"]["containerRuntimeVersion"])


# -- cases --

def the_node_offers_a_gpu_in_hundredths():
    until(lambda: cluster.node()["status"]["allocatable"].get("tandem.dev/gpu") == "100", "100")


def two_pods_with_half_a_gpu_share_it():
    run(pod("a", "50"), pod("b", "50"))
    until(lambda: len(world().jobs()) == 2, "tandemd sees both")
    assert sorted(job["weight"] for job in world().jobs()) == [50, 50], world().jobs()
    assert all(job["job"].startswith("k8s.") for job in world().jobs()), world().jobs()
    show()


def a_third_one_waits_and_says_why():
    cluster.apply(pod("c", "50"))
    until(lambda: any("Insufficient tandem.dev/gpu" in text for text in cluster.events_of("c")),
          "the reason")
    assert phases("a", "b", "c") == ["Running", "Running", "Pending"]
    say(*cluster.events_of("c"))


def a_kubelet_that_restarts_keeps_pods_and_plugin():
    before = [cluster.pod(name)["status"]["containerStatuses"][0]["containerID"]
              for name in ("a", "b")]
    told = cluster.log("plugin").count("registered with the kubelet")
    cluster.stop("kubelet")
    cluster.begin_kubelet()
    until(lambda: cluster.log("plugin").count("registered with the kubelet") > told,
          "the plugin has registered again")
    until(lambda: cluster.node_is_ready()
          and cluster.node()["status"]["allocatable"]["tandem.dev/gpu"] == "100", "100 again")
    assert before == [cluster.pod(name)["status"]["containerStatuses"][0]["containerID"]
                      for name in ("a", "b")]
    assert phases("a", "b", "c") == ["Running", "Running", "Pending"]
    assert len(world().jobs()) == 2, world().jobs()


def an_evicted_pod_makes_room_for_the_one_that_waits():
    cluster.kubectl("create", "--raw", "/api/v1/namespaces/default/pods/a/eviction", "-f", "-",
                    text=json.dumps({"apiVersion": "policy/v1beta1", "kind": "Eviction",
                                     "metadata": {"name": "a"}}))
    until(lambda: cluster.kubectl("get", "pod", "a", check=False).returncode, "it is gone")
    until(lambda: cluster.phase("c") == "Running", "the third one runs")
    until(lambda: len(world().jobs()) == 2, "tandemd sees it")
    show()


def a_share_of_memory_is_a_limit():
    cluster.kubectl("delete", "pod", "b", "c", "--wait=true")
    cluster.apply(pod("small", "40", "--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps",
                      "6"),
                  pod("large", "40", "--size", "46m", "--gpu", "20ms", "--cpu", "5ms", "--steps",
                      "3"))
    until(lambda: phases("small", "large") == ["Succeeded", "Failed"], "one fits")
    say(*cluster.kubectl("logs", "large", check=False).stdout.splitlines())
    cluster.kubectl("delete", "pod", "small", "large", "--wait=true")


def the_api_server_refuses_a_wrong_number_by_the_admission():
    cluster.spawn("admission", ADMISSION, "--cert", cluster.path("tls.crt"), "--key",
                  cluster.path("tls.key"), "--listen", "127.0.0.1:0")
    until(lambda: "port=" in cluster.log("admission"), "it serves")
    port = cluster.log("admission").split("port=")[1].split()[0]
    with open(cluster.path("tls.crt"), "rb") as f:
        bundle = base64.b64encode(f.read()).decode()
    configuration, = [thing for thing in chart() if thing["kind"].startswith("Mutating")]
    configuration["webhooks"][0]["clientConfig"] = {
        "url": f"https://127.0.0.1:{port}/pods", "caBundle": bundle}
    configuration["webhooks"][0]["failurePolicy"] = "Fail"
    cluster.apply(configuration)
    said = []

    def is_refused():
        done = cluster.apply(pod("wrong", "150"), check=False)
        said.append(done.stderr)
        if not done.returncode:
            cluster.kubectl("delete", "pod", "wrong")
        return done.returncode

    until(is_refused, "the configuration is known")
    assert '"150"' in said[-1] and "pods.tandem.dev" in said[-1], said[-1]
    say(said[-1].strip())


def annotations_become_variables_by_the_admission():
    run(pod("d", "50", **{"class": "guaranteed", "duty": "40%"}))
    env = cluster.pod("d")["spec"]["containers"][0]["env"]
    assert {"name": "TANDEM_CLASS", "value": "guaranteed"} in env, env
    until(lambda: world().jobs(), "tandemd sees it")
    assert world().jobs()[0]["class"] == "guaranteed", world().jobs()
    show()
    cluster.kubectl("delete", "pod", "d", "--wait=true")


def the_api_server_takes_the_chart():
    cluster.kubectl("create", "namespace", "tandem")
    done = cluster.apply(*chart(), options=["--dry-run=server"])
    say(*done.stdout.splitlines())
    manifest = f"{ROOT}/packaging/kubernetes/tandem.yaml"
    cluster.kubectl("apply", "--dry-run=server", "-f", manifest)


CASES = [the_node_offers_a_gpu_in_hundredths, two_pods_with_half_a_gpu_share_it,
         a_third_one_waits_and_says_why, a_kubelet_that_restarts_keeps_pods_and_plugin,
         an_evicted_pod_makes_room_for_the_one_that_waits, a_share_of_memory_is_a_limit,
         the_api_server_refuses_a_wrong_number_by_the_admission,
         annotations_become_variables_by_the_admission, the_api_server_takes_the_chart,
         *placing.CASES]


def main():
    chosen = [case for case in CASES if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    failed = 0
    with world(), cluster:
        begin()
        for number, case in enumerate(chosen, 1):
            result = result_of(number, case)
            failed += result.startswith("not")
            print(result, flush=True)
        placing.end()
    print(f"{len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
