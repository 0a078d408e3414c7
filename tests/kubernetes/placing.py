"""Cases of tandem-kube-sched in a real Kubernetes: it and the device plugin have the chart's
service accounts and no other rights. They follow each other, on a node with two GPUs."""
import json
import ssl
import urllib.error
import urllib.request

from common import (SCHED, chart, cluster, offer_gpus, phases, pod, run, say, show, until, world,
                    worlds)
from world import World


def account(name):
    """The options of a program that has this service account."""
    answer = cluster.kubectl(
        "create", "--raw", f"/api/v1/namespaces/tandem/serviceaccounts/{name}/token", "-f", "-",
        text=json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                         "spec": {"expirationSeconds": 7200}}))
    file = cluster.write(f"token-{name}", json.loads(answer.stdout)["status"]["token"] + "\n")
    return ["--server", cluster.server, "--ca-file", cluster.path("tls.crt"), "--token-file", file]


def schedule():
    cluster.spawn("sched", SCHED, *account("tandem-kube-sched"), "--lease-namespace", "tandem",
                  "--period", "50ms", "--lease", "2s", "--restart", "1s")


def ours(name, gpu, **annotations):
    its = pod(name, gpu, **annotations)
    its["spec"]["schedulerName"] = "tandem"
    return its


def notes(name):
    return {key.split("/")[1]: value
            for key, value in cluster.pod(name)["metadata"].get("annotations", {}).items()
            if key.startswith("tandem.dev/")}


def said(name, reason):
    """What our scheduler says of a pod in events."""
    return [event["message"] for event in cluster.get(
        "events", "--field-selector", f"involvedObject.name={name},reason={reason}")["items"]
        if event["source"].get("component") == "tandem-kube-sched"]


def gpu_of(slices):
    """The GPU on which the container with so many slices runs, by tandemd."""
    return [str(job["gpu"]) for job in world().jobs() if job["job"].endswith(f".{slices}")]


def delete(*things):
    cluster.kubectl("delete", *things, "--wait=true")


# -- cases --

def the_scheduler_and_the_node_may_do_what_they_need_and_no_more():
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tandem"}})
    cluster.apply(*[thing for thing in chart() if "Role" in thing["kind"]
                    or thing["kind"] == "ServiceAccount"])

    def may(name, *what):
        return not cluster.kubectl("auth", "can-i", *what, "--as",
                                   f"system:serviceaccount:tandem:{name}", check=False).returncode

    for what in (("watch", "pods", "-A"),
                 ("create", "pods", "--subresource", "binding", "-n", "x"),
                 ("create", "pods", "--subresource", "eviction", "-n", "x"),
                 ("patch", "pods", "--subresource", "status", "-n", "x"),
                 ("create", "events", "-n", "x"), ("watch", "nodes"),
                 ("create", "leases", "-n", "tandem"),
                 ("update", "leases/tandem-kube-sched", "-n", "tandem")):
        assert may("tandem-kube-sched", *what), what
    for what in (("get", "secrets", "-A"), ("delete", "pods", "-n", "x"),
                 ("create", "pods", "-n", "x"), ("patch", "pods", "-n", "x"),
                 ("update", "nodes"), ("update", "leases/other", "-n", "tandem"),
                 ("create", "leases", "-n", "kube-system")):
        assert not may("tandem-kube-sched", *what), what
    assert may("tandem-node", "list", "pods", "-A")
    for what in (("get", "secrets", "-A"), ("watch", "pods", "-A"), ("patch", "pods", "-n", "x"),
                 ("list", "nodes")):
        assert not may("tandem-node", *what), what


def a_pod_runs_on_the_gpu_of_its_binding():
    cluster.stop("plugin")
    worlds.append(World("--gpus", "2").__enter__())
    offer_gpus("--node-name", "node1", *account("tandem-node"))
    until(lambda: cluster.node()["status"]["allocatable"].get("tandem.dev/gpu") == "200",
          "two GPUs")
    schedule()
    sizes = {"p1": "20", "p2": "60", "p3": "25", "p4": "15"}
    for name, size in sizes.items():
        run(ours(name, size, **({"class": "guaranteed"} if name == "p1" else {})))
    for name, size in sizes.items():
        until(lambda s=size: gpu_of(s), f"tandemd sees {name}")
        its = notes(name)
        say(f"{name}: {size} hundredths, annotations {its}, on GPU {gpu_of(size)[0]}")
        assert its["gpu-index"] == gpu_of(size)[0] and its["share"] == size, (its, world().jobs())
    assert said("p1", "Scheduled")[0].startswith("placed on node node1, GPU ")
    show()
    delete("pod", *sizes)


def the_third_of_three_waits_on_two_gpus_and_says_why():
    run(ours("q1", "60"), ours("q2", "60"))
    cluster.apply(ours("q3", "60"))
    until(lambda: said("q3", "FailedScheduling"), "the reason")
    assert sorted(notes(name)["gpu-index"] for name in ("q1", "q2")) == ["0", "1"]
    assert any("no GPU has room" in text for text in said("q3", "FailedScheduling"))
    assert "nodeName" not in cluster.pod("q3")["spec"]
    say(*said("q3", "FailedScheduling"))


def a_scheduler_that_was_killed_finds_what_runs():
    before = {name: notes(name) for name in ("q1", "q2")}
    cluster.processes["sched"].kill()
    cluster.processes.pop("sched").wait()
    delete("pod", "q2")
    schedule()
    until(lambda: cluster.phase("q3") == "Running", "the third one runs")
    assert notes("q1") == before["q1"] and notes("q3")["gpu-index"] == before["q2"]["gpu-index"]
    say(*said("q3", "Scheduled"))
    delete("pod", "q1", "q3")


def a_gang_runs_when_all_of_it_is_there():
    gang = {"gang": "pair", "gang-size": "2"}
    cluster.apply(ours("g1", "60", **gang))
    until(lambda: any("1 of 2 are there" in text for text in said("g1", "FailedScheduling")),
          "the first one says what it waits for")
    assert "nodeName" not in cluster.pod("g1")["spec"]
    say(*said("g1", "FailedScheduling"))
    run(ours("g2", "60", **gang))
    until(lambda: phases("g1", "g2") == ["Running"] * 2, "both run")
    until(lambda: sorted(gpu_of("60")) == ["0", "1"], "each on a GPU of its own")
    assert sorted(notes(name)["gpu-index"] for name in ("g1", "g2")) == ["0", "1"]
    # Another one finds only a part of its GPUs, so none of its pods is bound.
    cluster.apply(ours("g3", "60", **dict(gang, gang="late")),
                  ours("g4", "60", **dict(gang, gang="late")))
    until(lambda: all(any("not free at once" in text for text in said(name, "FailedScheduling"))
                      for name in ("g3", "g4")), "the second gang waits")
    delete("pod", "g1")
    until(lambda: not gpu_of("60") or len(gpu_of("60")) == 1, "one GPU is free")
    assert phases("g3", "g4") == ["Pending"] * 2
    delete("pod", "g2")
    until(lambda: phases("g3", "g4") == ["Running"] * 2, "the second gang runs")
    say(*said("g3", "FailedScheduling"), *said("g3", "Scheduled"), *said("g4", "Scheduled"))
    delete("pod", "g3", "g4")


def a_taint_keeps_pods_away_until_it_is_gone():
    cluster.kubectl("taint", "node", "node1", "team=x:NoSchedule")
    cluster.apply(ours("t1", "40"))
    until(lambda: any("does not tolerate the taint team" in text
                      for text in said("t1", "FailedScheduling")), "it says why it waits")
    say(*said("t1", "FailedScheduling"))
    tolerant = ours("t2", "40")
    tolerant["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
    run(tolerant)
    assert phases("t1") == ["Pending"]
    cluster.kubectl("taint", "node", "node1", "team-")
    until(lambda: phases("t1") == ["Running"], "it runs")
    delete("pod", "t1", "t2")


def guests():
    return cluster.get("pods", "-l", "app=guests")["items"]


def bound(pods):
    return [its["metadata"]["name"] for its in pods if its["spec"].get("nodeName")
            and "deletionTimestamp" not in its["metadata"]]


def after(before):
    """The guests that came after these and are not leaving."""
    return [its["metadata"]["name"] for its in guests() if its["metadata"]["name"] not in before
            and "deletionTimestamp" not in its["metadata"]]


def a_budget_keeps_guests_from_being_evicted():
    template = ours("", "100")
    template["metadata"] = {"labels": {"app": "guests"}}
    template["spec"]["restartPolicy"] = "Always"
    cluster.apply(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "guests"},
         "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "guests"}},
                  "template": {key: template[key] for key in ("metadata", "spec")}}},
        {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget",
         "metadata": {"name": "guests"},
         "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "guests"}}}})
    until(lambda: [its["status"]["phase"] for its in guests()] == ["Running"] * 2, "both run")
    until(lambda: cluster.get("pdb", "guests")["status"].get("currentHealthy") == 2, "they count")
    cluster.apply(ours("holder", "100", **{"class": "guaranteed"}))
    until(lambda: any("PodDisruptionBudget" in text for name in bound(guests())
                      for text in said(name, "FailedScheduling")), "the budget forbids it")
    assert len(bound(guests())) == 2 and phases("holder") == ["Pending"]
    say(*said("holder", "FailedScheduling"))


def a_guaranteed_pod_has_a_guest_evicted():
    before = bound(guests())
    delete("pdb", "guests")
    until(lambda: cluster.phase("holder") == "Running", "the guaranteed one runs")
    gone = [name for name in before if said(name, "Preempted")]
    say(f"{gone[0]}: " + said(gone[0], "Preempted")[0])
    # Where the second guest was to give way to the first one before the budget allowed that, both.
    until(lambda: len(after(before)) >= len(gone), "their controller has made others")
    new = after(before)
    until(lambda: any(said(name, "FailedScheduling") for name in new), "they say why they wait")
    say(*{text for name in new for text in said(name, "FailedScheduling")})
    delete("pod", "holder")
    # Guests take turns on the other GPU meanwhile, so there may be newer ones.
    until(lambda: len(bound(guests())) == 2, "both are placed afterwards")
    until(lambda: phases(*bound(guests())) == ["Running"] * 2, "and run")
    new = after(before)
    assert all(notes(name)["epoch"] >= "2" for name in new), [notes(name) for name in new]


def send(method, path, body, kind, name):
    """Asks as the service account. Returns the status."""
    options = account(name)
    with open(options[-1]) as f:
        token = f.read().strip()
    asked = urllib.request.Request(
        cluster.server + path, json.dumps(body).encode(), method=method,
        headers={"Authorization": f"Bearer {token}", "Content-Type": kind})
    try:
        trust = ssl.create_default_context(cafile=cluster.path("tls.crt"))
        with urllib.request.urlopen(asked, context=trust) as answer:
            return answer.status
    except urllib.error.HTTPError as problem:
        return problem.code


def the_scheduler_alone_changes_what_it_has_written():
    name = bound(guests())[0]
    its = cluster.pod(name)
    for change in ("tandem.dev/gpu-index=7", "tandem.dev/epoch-", "tandem.dev/class=guaranteed"):
        done = cluster.kubectl("annotate", "--overwrite", "pod", name, change, check=False)
        assert done.returncode and "the pod is placed by it" in done.stderr, done
    say(done.stderr.strip())
    cluster.kubectl("annotate", "pod", name, "other=x")
    path = f"/api/v1/namespaces/default/pods/{name}"
    body = {"metadata": {"uid": its["metadata"]["uid"],
                         "annotations": {"tandem.dev/guest": "false"}}}
    patch = "application/merge-patch+json"
    assert send("PATCH", path, body, patch, "tandem-kube-sched") == 403
    body["spec"] = {"containers": [{"name": "train", "image": "other"}]}
    assert send("PATCH", path + "/status", body, patch, "tandem-kube-sched") == 200
    assert notes(name)["guest"] == "false"
    assert cluster.pod(name)["spec"]["containers"][0]["image"] != "other"
    delete("rs", "guests")


def end():
    for its in worlds[1:]:
        its.__exit__(None, None, None)


CASES = [the_scheduler_and_the_node_may_do_what_they_need_and_no_more,
         a_pod_runs_on_the_gpu_of_its_binding, the_third_of_three_waits_on_two_gpus_and_says_why,
         a_scheduler_that_was_killed_finds_what_runs, a_gang_runs_when_all_of_it_is_there,
         a_taint_keeps_pods_away_until_it_is_gone, a_budget_keeps_guests_from_being_evicted,
         a_guaranteed_pod_has_a_guest_evicted, the_scheduler_alone_changes_what_it_has_written]
