#!/usr/bin/env python3
"""tandem-kube-sched beside an API server: it binds pods, evicts them, and says why they wait. TAP.
usage: kube_sched.py BUILD [CASE]..."""
import os
import subprocess
import sys
import time

from kube_world import GPU, SCHED, Cluster, stop
from world import DEADLINE_S, Skip, run_cases, until


def pods_are_bound_to_gpus():
    with Cluster() as world:
        world.node("n1", gpus=2)
        world.schedule()
        pods = [world.pod(f"p{k}") for k in range(4)]
        until(lambda: all(map(world.where_is, pods)), "all four run on two GPUs")
        used = sorted(world.notes(pod)["tandem.dev/gpu-index"] for pod in pods)
        assert used == ["0", "0", "1", "1"], used
        notes = world.notes(pods[0])
        assert notes["tandem.dev/share"] == "50" and notes["tandem.dev/epoch"] == "1", notes
        until(lambda: world.said("p0", "Scheduled"), "it is said where it runs")
        assert world.said("p0", "Scheduled")[0].startswith("placed on node n1, GPU ")
        # A GPU is full: the fifth one waits, and one that ends makes room for it.
        world.pod("late")
        until(lambda: world.said("late", "FailedScheduling"), "it says why it waits")
        assert "no GPU has room" in world.said("late")[-1], world.said("late")
        world.end("p2")
        until(lambda: world.where_is("late"), "it has the place that is free")


def pods_of_other_schedulers_are_left_alone():
    with Cluster() as world:
        world.node("n1")
        world.pod("other", scheduler="default-scheduler")
        world.pod("plain", scheduler="tandem", spec={"containers": [{"name": "c", "resources": {
            "limits": {GPU: "0"}}}]})
        world.schedule()
        world.pod("ours")
        until(lambda: world.where_is("ours"), "ours is placed")
        assert not world.where_is("other") and not world.where_is("plain")


def whole_gpus_are_given_whole():
    with Cluster() as world:
        world.node("n1", gpus=10)  # the server writes 1000 as 1k
        world.schedule()
        world.pod("gang", 800, class_="guaranteed")
        world.pod("half", 50)
        until(lambda: world.where_is("gang") and world.where_is("half"), "both run")
        gpus = world.notes("gang")["tandem.dev/gpu-index"].split(",")
        assert len(set(gpus)) == 8 and world.notes("gang")["tandem.dev/share"] == "100", gpus
        assert world.notes("half")["tandem.dev/gpu-index"] not in gpus
        world.pod("odd", 150)
        world.pod("two", spec={"containers": [
            {"name": n, "resources": {"limits": {GPU: "60"}}} for n in "ab"]})
        world.pod("strange", class_="fast")
        for name, words in (("odd", "expected parts of one GPU"), ("two", "hundredths of GPUs"),
                            ("strange", "tandem.dev/class=fast is not valid")):
            until(lambda n=name: world.said(n), f"{name} is refused")
            assert words in world.said(name)[0] and not world.where_is(name), world.said(name)


def a_quota_of_a_namespace_holds():
    with Cluster("--quota", "lab=1") as world:
        world.node("n1", gpus=4)
        world.schedule()
        world.pod("first", 100, space="lab", class_="guaranteed")
        until(lambda: world.where_is("first", "lab"), "the first one runs")
        world.pod("second", 100, space="lab", class_="guaranteed", owner=None)
        world.pod("free", 100, space="other", class_="guaranteed")
        until(lambda: any("quota" in text for text in world.said("second")), "the second one waits")
        until(lambda: world.where_is("free", "other"), "another namespace has its own")
        world.end("first", "lab")
        until(lambda: world.where_is("second", "lab"), "the quota is free")


def a_pod_is_evicted_for_another_and_its_successor_waits(minor=30):
    with Cluster(minor=minor) as world:
        world.grace = False
        world.node("n1")
        world.schedule()
        world.pod("guest", 100)
        until(lambda: world.where_is("guest"), "the guest runs")
        time.sleep(2.5)  # it has to run for 2 s before it may be stopped
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: "deletionTimestamp" in world.get("guest")["metadata"], "it is evicted")
        until(lambda: world.said("guest", "Preempted"), "it says so")
        assert world.said("guest", "Preempted") == [
            "it was stopped for a job that has had less GPU time"], world.said("guest")
        # Its controller makes it again a little later, and it leaves later still.
        time.sleep(1.5)
        world.pod("guest-2", 100, metadata={"ownerReferences": [
            {"kind": "ReplicaSet", "uid": "owner-guest", "controller": True}]})
        until(lambda: any("not enough" in text for text in world.said("holder")),
              "the other one waits until the GPU is free")
        assert not world.where_is("holder")
        world.end("guest")
        until(lambda: world.where_is("holder"), "the guaranteed one runs")
        until(lambda: world.said("guest-2", "FailedScheduling"), "the new pod says why it waits")
        world.end("holder")
        until(lambda: world.where_is("guest-2"), "the new pod runs")
        assert world.notes("guest-2")["tandem.dev/epoch"] == "2", world.notes("guest-2")


def an_old_server_has_another_version_of_eviction():
    a_pod_is_evicted_for_another_and_its_successor_waits(minor=20)


def a_budget_of_disruptions_is_respected():
    with Cluster() as world:
        world.budget = 0
        world.node("n1")
        world.schedule()
        world.pod("guest", 100)
        until(lambda: world.where_is("guest"), "the guest runs")
        time.sleep(2.5)
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: world.refused, "its eviction is refused")
        until(lambda: any("PodDisruptionBudget" in t for t in world.said("guest")), "it says so")
        assert world.where_is("guest") and not world.where_is("holder")
        world.budget = 1
        until(lambda: world.where_is("holder"), "it is evicted when the budget allows it")


def a_pod_without_a_controller_is_not_evicted():
    with Cluster() as world:
        world.node("n1")
        world.schedule()
        world.pod("alone", 100, owner=None)
        until(lambda: world.where_is("alone"), "it runs")
        time.sleep(2.5)
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: world.said("holder"), "the other one waits")
        time.sleep(1)
        assert world.where_is("alone") and not world.where_is("holder")
        assert not world.asked["POST", "/api/v1/eviction"]


def a_scheduler_that_starts_anew_adopts_what_runs():
    with Cluster() as world:
        world.page = 2  # lists come in pages
        world.node("n1", gpus=2)
        sched = world.schedule()
        pods = [world.pod(f"p{k}") for k in range(3)]
        until(lambda: all(map(world.where_is, pods)), "all run")
        sched.kill()
        sched.wait(timeout=DEADLINE_S)
        late = [world.pod("late1"), world.pod("late2")]
        world.schedule()
        until(lambda: any(map(world.where_is, late)), "one has the place that is left")
        waits = next(pod for pod in late if not world.where_is(pod))
        until(lambda: "no GPU has room" in " ".join(world.said(waits)), "the other one waits")
        assert all(world.notes(pod)["tandem.dev/epoch"] == "1" for pod in pods)
        assert world.asked["POST", "/api/v1/binding"] == 4, world.asked


def a_watch_that_is_forgotten_begins_with_a_list():
    with Cluster() as world:
        world.node("n1", gpus=2)
        world.schedule()
        world.pod("first")
        until(lambda: world.where_is("first"), "the first one runs")
        lists = world.asked["GET", "/api/v1/pods"]
        world.forget()
        world.pod("second")
        until(lambda: world.where_is("second"), "the second one is found by the list")
        assert world.asked["GET", "/api/v1/pods"] > lists
        for _ in range(3):  # streams that only end are begun again, where they were
            with world.lock:
                world.drop += 1
                world.lock.notify_all()
            time.sleep(0.3)
        assert world.asked["GET", "/api/v1/pods"] == lists + 1, world.asked
        world.pod("third")
        until(lambda: world.where_is("third"), "the third one is seen by a new stream")


def one_of_two_schedulers_leads():
    # A lease that no busy machine lets run out before its time.
    with Cluster("--lease", "10s") as world:
        world.node("n1", gpus=2)
        first = world.schedule(name="one")
        until(lambda: world.lease() == "one", "the first one leads")
        second = world.schedule(name="two")
        world.pod("p1")
        until(lambda: world.where_is("p1"), "it is placed")
        assert "leads as" not in world.log("two"), world.log("two")
        first.kill()
        first.wait(timeout=DEADLINE_S)
        begun = time.monotonic()
        world.pod("p2")
        until(lambda: world.where_is("p2"), "the second one places")
        assert time.monotonic() - begun < 60 and world.lease() == "two"
        # One that is asked to end gives the Lease back.
        third = world.schedule(name="three")
        time.sleep(1)
        stop(second)
        world.pod("p3")
        until(lambda: world.where_is("p3") and world.lease() == "three", "the third one places")
        assert third.poll() is None


def a_leader_of_the_past_places_nothing():
    with Cluster() as world:
        world.node("n1", gpus=2)
        world.schedule(name="one")
        until(lambda: world.lease() == "one", "it leads")
        with world.lock:  # somebody takes the Lease by force, and keeps it
            spec = world.objects["leases"]["tandem-kube-sched"]["spec"]
            spec.update(holderIdentity="thief", leaseTransitions=spec["leaseTransitions"] + 1,
                        leaseDurationSeconds=3600)
            world.change("leases", "MODIFIED", world.objects["leases"]["tandem-kube-sched"])
        world.pod("p1")
        until(lambda: "leads no longer" in world.log(), "it has noticed")
        time.sleep(0.5)
        assert not world.where_is("p1")


def pods_of_a_node_that_is_gone_run_elsewhere():
    with Cluster() as world:
        world.node("n1")
        world.schedule()
        world.pod("job", 100)
        until(lambda: world.where_is("job") == "n1", "it runs")
        world.node("n2")
        world.lose_node("n1")
        until(lambda: world.get("job") is None, "it is evicted")
        world.pod("job-2", 100, metadata={"ownerReferences": [
            {"kind": "ReplicaSet", "uid": "owner-job", "controller": True}]})
        until(lambda: world.where_is("job-2") == "n2", "its successor runs on the other node")
        assert world.notes("job-2")["tandem.dev/epoch"] == "2", world.notes("job-2")


def nodes_that_take_no_pods_get_none():
    with Cluster() as world:
        world.node("ready")
        world.node("cordoned", spec={"unschedulable": True})
        world.node("broken", gpus=2)
        world.patch_node("broken", status={"allocatable": {GPU: "100"}})
        world.node("away", status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
        world.node("shared")
        world.pod("foreign", 30, scheduler="default-scheduler", spec={"nodeName": "shared"})
        world.schedule()
        pods = [world.pod(f"p{k}", 100) for k in range(3)]
        until(lambda: any(map(world.where_is, pods)), "one is placed")
        until(lambda: sum(bool(world.said(p, "FailedScheduling")) for p in pods) >= 2, "two wait")
        time.sleep(0.5)
        assert sorted(world.where_is(p) or "" for p in pods) == ["", "", "ready"]
        assert "node=shared closed: pods of another scheduler" in world.log(), world.log()
        world.patch_node("cordoned", spec={"unschedulable": None})
        until(lambda: sum(bool(world.where_is(p)) for p in pods) == 2, "the next one has its place")


def labels_taints_and_other_resources_are_respected():
    taint = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    bears = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    with Cluster() as world:
        world.node("n1", gpus=2, cpu="1", metadata={"labels": {"zone": "a"}},
                   spec={"taints": taint})
        world.schedule()
        world.pod("plain")
        world.pod("label", spec={"nodeSelector": {"zone": "b"}, "tolerations": bears})
        world.pod("affine", spec={"tolerations": bears, "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [
                    {"key": "zone", "operator": "NotIn", "values": ["a"]}]}]}}}})
        for name, words in (("plain", "does not tolerate the taint nvidia.com/gpu"),
                            ("label", "has not the label zone"), ("affine", "node affinity")):
            until(lambda n=name: world.said(n), f"{name} says why")
            assert words in world.said(name)[0] and not world.where_is(name), world.said(name)
        good = [world.pod(f"good{k}", 20, spec={"tolerations": bears}) for k in range(3)]
        until(lambda: sum(bool(world.where_is(p)) for p in good) == 2, "two have a CPU's half")
        last = next(p for p in good if not world.where_is(p))
        until(lambda: any("not enough cpu" in t for t in world.said(last)), "the third waits")


def a_token_that_changes_is_read_again():
    with Cluster(tls=True) as world:
        world.node("n1", gpus=2)
        world.schedule()
        world.pod("p1")
        until(lambda: world.where_is("p1"), "it is placed over TLS")
        with open(f"{world.directory}/token", "w") as f:
            f.write("a-new-token\n")
        world.token = "a-new-token"
        world.pod("p2")
        until(lambda: world.where_is("p2"), "and with the new token")


def another_parser_reads_its_metrics():
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, if another python runs this
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        raise Skip("python3-prometheus-client is not installed") from None
    with Cluster() as world:
        path = f"{world.directory}/tandem.prom"

        def figures():
            if not os.path.exists(path):
                return {}
            with open(path) as f:
                families = list(text_string_to_metric_families(f.read()))
            assert all(f.type in ("gauge", "counter") and len(f.samples) == 1 for f in families)
            return {f.samples[0].name.removeprefix("tandem_sched_"): f.samples[0].value
                    for f in families}

        def become(**expected):
            until(lambda: expected.items() <= figures().items(), f"{expected}")

        world.node("n1", gpus=2)
        world.node("n2")
        world.schedule("--metrics", path)
        pods = [world.pod(f"p{k}", 100) for k in range(4)]
        until(lambda: sum(map(bool, map(world.where_is, pods))) == 3, "three run")
        become(leads=1, nodes=2, gpus_up=3, jobs_running=3, jobs_placed=0, jobs_waiting=1,
               placements_total=3, evictions_total=0, stops_total=0)
        world.end(next(filter(world.where_is, pods)))
        become(jobs_running=3, jobs_waiting=0, placements_total=4)
        assert figures()["steps_total"] > 0 and figures()["step_seconds_total"] > 0, figures()


def what_is_wrong_is_said():
    for arguments, words in ((["--server", "ftp://x"], "--server"),
                             (["--server", "http://x", "--ca-file", "/none"], "--ca-file"),
                             (["--quota", "x"], '"x"'), (["--resource", ""], "a value"),
                             ([], "--server is missing")):
        done = subprocess.run([SCHED, *arguments], capture_output=True, text=True, env={},
                              timeout=DEADLINE_S)
        assert done.returncode in (1, 125) and words in done.stderr, done
    done = subprocess.run([SCHED, "--policy", "mudi"], capture_output=True, text=True, env={},
                          timeout=DEADLINE_S)
    assert done.returncode == 125 and "a pod has no profile" in done.stderr, done
    with Cluster() as world:
        world.token = "another"
        world.node("n1")
        sched = world.schedule()
        world.pod("p1")
        time.sleep(1)
        assert sched.poll() is None and not world.where_is("p1")
        world.token = "the-token"
        until(lambda: world.where_is("p1"), "it goes on when the server lets it")


run_cases([
    pods_are_bound_to_gpus,
    pods_of_other_schedulers_are_left_alone,
    whole_gpus_are_given_whole,
    a_quota_of_a_namespace_holds,
    a_pod_is_evicted_for_another_and_its_successor_waits,
    an_old_server_has_another_version_of_eviction,
    a_budget_of_disruptions_is_respected,
    a_pod_without_a_controller_is_not_evicted,
    a_scheduler_that_starts_anew_adopts_what_runs,
    a_watch_that_is_forgotten_begins_with_a_list,
    one_of_two_schedulers_leads,
    a_leader_of_the_past_places_nothing,
    pods_of_a_node_that_is_gone_run_elsewhere,
    nodes_that_take_no_pods_get_none,
    labels_taints_and_other_resources_are_respected,
    a_token_that_changes_is_read_again,
    another_parser_reads_its_metrics,
    what_is_wrong_is_said,
], at_once=6)
