#!/usr/bin/env python3
"""tandem-kube-sched beside an API server: gangs, nodes that only some pods may use, and budgets
that keep pods. TAP. usage: kube_gangs.py BUILD [CASE]..."""
import time

from kube_world import Cluster
from world import DEADLINE_S, run_cases, until


def member(world, gang, size, slices=100, name=None, **more):
    annotations = {"tandem.dev/gang": gang, "tandem.dev/gang-size": str(size)}
    if more.pop("guaranteed", False):
        annotations["tandem.dev/class"] = "guaranteed"
    return world.pod(name, slices, metadata={"annotations": annotations}, **more)


def gang_of(world, gang, size, slices=100, **more):
    return [member(world, gang, size, slices, f"{gang}-{k}", **more) for k in range(size)]


def on(world, pods):
    """The GPUs on which the pods are."""
    return [(world.where_is(pod), world.notes(pod)["tandem.dev/gpu-index"]) for pod in pods]


def a_gang_is_placed_when_all_of_it_is_there():
    with Cluster() as world:
        for name in ("n1", "n2"):
            world.node(name, gpus=2)
        world.schedule()
        pods = [member(world, "g", 3, name=f"g-{k}") for k in range(2)]
        for name in pods:
            until(lambda n=name: world.said(n), "it says what it waits for")
            assert "2 of 3 are there" in world.said(name)[-1] or (
                "1 of 3 are there" in world.said(name)[0]), world.said(name)
        time.sleep(0.5)
        assert not any(map(world.where_is, pods))
        pods.append(member(world, "g", 3, name="g-2"))
        until(lambda: all(map(world.where_is, pods)), "all run")
        assert len(set(on(world, pods))) == 3, on(world, pods)
        assert {world.notes(pod)["tandem.dev/epoch"] for pod in pods} == {"1"}
        # One more of the name is not of the gang, and the same name elsewhere is another gang.
        member(world, "g", 3, name="late")
        until(lambda: world.said("late"), "it says why it waits")
        assert "has its 3 pods already" in world.said("late")[0], world.said("late")
        member(world, "g", 1, space="other", name="g-0")
        until(lambda: world.where_is("g-0", "other"), "the other one has the GPU that is left")


def a_gang_that_finds_not_all_of_its_gpus_takes_none():
    with Cluster() as world:
        world.node("n1", gpus=2)
        world.node("n2", gpus=2)
        world.schedule()
        holders = [world.pod(f"h{k}", 100, class_="guaranteed", owner=None) for k in range(2)]
        until(lambda: all(map(world.where_is, holders)), "two GPUs are held")
        pods = gang_of(world, "g", 3, guaranteed=True)
        until(lambda: all(world.said(pod, "FailedScheduling") for pod in pods), "all say why")
        until(lambda: "not free at once" in " ".join(world.said("g-1")), "by the brain")
        time.sleep(0.5)
        assert not any(map(world.where_is, pods))
        world.end("h0")
        until(lambda: all(map(world.where_is, pods)), "all three run")


def a_gang_without_room_for_one_pod_binds_none():
    with Cluster() as world:
        world.node("n1", cpu="8")
        world.node("n2", cpu="300m")  # a pod asks for 500m
        world.schedule()
        pods = gang_of(world, "g", 2)
        until(lambda: any("not enough cpu" in t for p in pods for t in world.said(p)), "it says so")
        time.sleep(0.5)
        assert not any(map(world.where_is, pods))
        assert not world.asked["POST", "/api/v1/binding"]
        world.patch_node("n2", status={"allocatable": {"cpu": "8"}})
        until(lambda: all(map(world.where_is, pods)), "both run")


def a_gang_that_loses_a_pod_starts_anew_as_a_whole():
    with Cluster() as world:
        world.node("n1", gpus=3)
        world.schedule()
        pods = gang_of(world, "g", 3)
        until(lambda: all(map(world.where_is, pods)), "all run")
        world.end("g-1")
        time.sleep(0.5)
        assert world.get("g-0") and world.get("g-2"), "those that are left run on"
        member(world, "g", 3, name="g-1b")
        until(lambda: not world.get("g-0") and not world.get("g-2"), "the others are evicted")
        until(lambda: world.said("g-0", "Preempted"), "it is said why")
        assert world.said("g-0", "Preempted") == ["a pod of its gang ended and was made again"]
        assert not world.where_is("g-1b")
        new = ["g-1b"] + [member(world, "g", 3, name=name) for name in ("g-0b", "g-2b")]
        until(lambda: all(map(world.where_is, new)), "the new ones run")
        assert {world.notes(pod)["tandem.dev/epoch"] for pod in new} == {"2"}


def a_gang_that_nobody_would_make_again_is_not_evicted():
    with Cluster() as world:
        world.node("n1", gpus=2)
        world.schedule()
        pods = gang_of(world, "g", 2, owner=None)
        until(lambda: all(map(world.where_is, pods)), "it runs")
        time.sleep(2.5)
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: world.said("holder"), "it says why it waits")
        assert "no GPU has room" in world.said("holder")[0], world.said("holder")
        assert all(map(world.where_is, pods)) and "requeue" not in world.log(), world.log()


def a_gang_that_lost_a_pod_before_it_began_keeps_nobody_away():
    with Cluster() as world:
        world.node("n1", gpus=2)
        world.schedule()
        first = world.pod("first", 100, class_="guaranteed", owner=None)
        until(lambda: world.where_is(first), "a GPU is held")
        pods = gang_of(world, "g", 2, guaranteed=True, owner=None)
        until(lambda: "not free at once" in " ".join(world.said("g-1")), "it waits")
        world.end("g-1")
        world.end(first)
        late = world.pod("late", 100, class_="guaranteed", owner=None)
        until(lambda: world.where_is(late), "another pod has a GPU")
        assert not world.where_is("g-0")
        pods[1] = member(world, "g", 2, name="g-1b", guaranteed=True, owner=None)
        until(lambda: "not free at once" in " ".join(world.said("g-1b")), "it waits as a whole")
        world.end(late)
        until(lambda: all(map(world.where_is, pods)), "and runs")


def a_scheduler_that_starts_anew_knows_gangs():
    with Cluster() as world:
        world.node("n1", gpus=5)
        sched = world.schedule()
        whole, rest = gang_of(world, "whole", 2), gang_of(world, "rest", 2)
        until(lambda: all(map(world.where_is, whole + rest)), "both run")
        sched.kill()
        sched.wait(timeout=DEADLINE_S)
        world.end("rest-1")  # its other pod runs on
        with world.lock:  # the scheduler was killed between two Bindings
            half = gang_of(world, "half", 2)
            item = world.objects["pods"]["default", "half-0"]
            item["spec"]["nodeName"] = "n1"
            gpu = next(str(g) for g in range(5) if ("n1", str(g)) not in on(
                world, whole + ["rest-0"]))
            item["metadata"]["annotations"].update({
                "tandem.dev/gpu-index": gpu, "tandem.dev/epoch": "7", "tandem.dev/share": "100"})
            world.change("pods", "MODIFIED", item)
        world.schedule()
        until(lambda: not world.get(half[0]), "the half gang is sent back")
        member(world, "half", 2, name="half-0b")
        until(lambda: world.where_is("half-0b") and world.where_is("half-1"), "and placed whole")
        assert world.notes("half-1")["tandem.dev/epoch"] == "8", world.notes("half-1")
        assert all(map(world.get, whole + ["rest-0"]))
        assert len(set(on(world, whole + ["rest-0", "half-0b", "half-1"]))) == 5


def what_is_wrong_with_a_gang_is_said():
    with Cluster() as world:
        world.node("n1", gpus=4)
        world.schedule()
        for name, size, slices, words in (
                ("none", 0, 100, "gang-size=0 is not valid"),
                ("many", 513, 100, "gang-size=513 is not valid: expected the number"),
                ("wide", 2, 200, "expected at most 100 of each pod of a gang")):
            member(world, name, size, slices, name)
            until(lambda n=name: world.said(n), f"{name} is refused")
            assert words in world.said(name)[0] and not world.where_is(name), world.said(name)
        member(world, "odd", 2, 50, "odd-0")
        until(lambda: world.said("odd-0"), "it waits")
        member(world, "odd", 2, 60, "odd-1")
        until(lambda: world.said("odd-1"), "it is told that it is not alike")
        assert "another share" in world.said("odd-1")[0], world.said("odd-1")
        member(world, "odd", 2, 50, "odd-2")
        until(lambda: world.where_is("odd-0") and world.where_is("odd-2"), "those alike run")


# -- nodes --

BEARS = [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]


def pods_are_on_the_nodes_that_allow_them():
    with Cluster() as world:
        world.node("plain", metadata={"labels": {"zone": "a"}})
        world.node("zone-b", metadata={"labels": {"zone": "b"}})
        world.node("tainted", spec={"taints": [
            {"key": "team", "value": "x", "effect": "NoSchedule"}]})
        world.schedule()
        world.pod("b", 100, spec={"nodeSelector": {"zone": "b"}})
        until(lambda: world.where_is("b") == "zone-b", "its node")
        world.pod("x", 100, spec={"tolerations": BEARS, "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}]}}}})
        until(lambda: world.where_is("x") == "tainted", "the node whose taint it tolerates")
        world.pod("a", 100)
        until(lambda: world.where_is("a") == "plain", "the one without a taint")
        # A GPU is free, but not for this one; it has its place when the taint is gone.
        world.end("x")
        world.pod("a2", 100, owner=None)
        until(lambda: world.said("a2"), "it says why it waits")
        time.sleep(0.5)
        assert not world.where_is("a2")
        world.patch_node("tainted", spec={"taints": None})
        until(lambda: world.where_is("a2") == "tainted", "it has the place")
        # No node at all: the event names one, and says what is in the way.
        world.pod("c", 50, spec={"nodeSelector": {"zone": "c"}})
        until(lambda: world.said("c"), "it says why")
        assert "no other open node with GPUs allows it" in world.said("c")[0], world.said("c")


def a_pod_made_again_that_finds_no_set_of_nodes_is_told_so():
    with Cluster() as world:
        world.node("n1", metadata={"labels": {"zone": "a"}})
        world.schedule()
        mine = {"metadata": {"ownerReferences": [
            {"kind": "ReplicaSet", "name": "rs", "uid": "owner-rs", "controller": True}]},
            "spec": {"nodeSelector": {"zone": "a"}}}
        world.pod("run", 100, **mine)
        until(lambda: world.where_is("run"), "it runs")
        for k in range(30):
            world.pod(f"z{k}", 100, spec={"nodeSelector": {"zone": f"z{k}"}})
        time.sleep(2.5)
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: world.where_is("holder"), "a pod that runs keeps no set from it")
        world.pod("z30", 100, spec={"nodeSelector": {"zone": "z30"}})
        until(lambda: world.said("z30"), "it has the last set")
        world.pod("run2", 100, **mine)
        until(lambda: any("31 different nodeSelectors" in t for t in world.said("run2")), "told")
        world.end("z3")
        world.end("holder")
        until(lambda: world.where_is("run2") == "n1", "it has a set again")


def a_gang_is_on_its_nodes_alone():
    with Cluster() as world:
        for name, zone in (("a1", "a"), ("b1", "b"), ("b2", "b")):
            world.node(name, metadata={"labels": {"zone": zone}})
        world.schedule()
        pods = gang_of(world, "g", 2, spec={"nodeSelector": {"zone": "b"}})
        until(lambda: all(map(world.where_is, pods)), "both run")
        assert sorted(map(world.where_is, pods)) == ["b1", "b2"]
        wide = gang_of(world, "wide", 3, spec={"nodeSelector": {"zone": "b"}})
        time.sleep(0.5)
        assert not any(map(world.where_is, wide))


def demands_that_nobody_looks_at_are_refused():
    to_pods = {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}]}
    with Cluster() as world:
        world.node("n1")
        world.schedule()
        for name, words, spec in (
                ("near", "a required podAffinity", {"affinity": {"podAffinity": to_pods}}),
                ("far", "a required podAntiAffinity", {"affinity": {"podAntiAffinity": to_pods}}),
                ("spread", "a topologySpreadConstraint with DoNotSchedule",
                 {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]})):
            world.pod(name, spec=spec)
            until(lambda n=name: world.said(n), f"{name} is refused")
            assert words in world.said(name)[0] and not world.where_is(name), world.said(name)
        world.pod("soft", spec={"topologySpreadConstraints": [
            {"whenUnsatisfiable": "ScheduleAnyway"}]})
        until(lambda: world.where_is("soft"), "what is only preferred is no demand")


# -- budgets --

def a_pod_that_a_budget_keeps_is_let_alone():
    with Cluster("--start", "5s") as world:
        world.budget = 0
        world.node("n1", gpus=2)
        world.schedule()
        guests = [world.pod(f"guest{k}", 100) for k in range(2)]
        until(lambda: all(map(world.where_is, guests)), "both run")
        time.sleep(2.5)
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: world.refused, "an eviction is refused")
        time.sleep(11)
        # Each is asked twice at most, after 5 s and after 10 s more, and nobody for another guest.
        assert world.refused <= 4, world.refused
        assert all(map(world.where_is, guests)) and not world.where_is("holder")
        assert "not start in time" not in world.log()
        until(lambda: any("no GPU has room" in t for t in world.said("holder")), "it waits")
        world.budget = 1
        until(lambda: world.where_is("holder"), "it is tried again")
        assert sum(world.get(guest) is None for guest in guests) == 1


def a_gang_that_a_budget_keeps_runs_on_whole():
    with Cluster() as world:
        world.budget = 0
        world.node("n1", gpus=2)
        world.schedule()
        pods = gang_of(world, "g", 2)
        until(lambda: all(map(world.where_is, pods)), "it runs")
        time.sleep(2.5)
        world.pod("holder", 100, class_="guaranteed")
        until(lambda: world.refused, "an eviction is refused")
        time.sleep(2)
        assert all(map(world.where_is, pods)) and world.refused <= 2, world.refused
        world.budget = 2
        until(lambda: world.where_is("holder"), "one is evicted later")
        until(lambda: not any(map(world.get, pods)), "and so is the other")


run_cases([
    a_gang_is_placed_when_all_of_it_is_there,
    a_gang_that_finds_not_all_of_its_gpus_takes_none,
    a_gang_without_room_for_one_pod_binds_none,
    a_gang_that_loses_a_pod_starts_anew_as_a_whole,
    a_gang_that_nobody_would_make_again_is_not_evicted,
    a_gang_that_lost_a_pod_before_it_began_keeps_nobody_away,
    a_scheduler_that_starts_anew_knows_gangs,
    what_is_wrong_with_a_gang_is_said,
    pods_are_on_the_nodes_that_allow_them,
    a_pod_made_again_that_finds_no_set_of_nodes_is_told_so,
    a_gang_is_on_its_nodes_alone,
    demands_that_nobody_looks_at_are_refused,
    a_pod_that_a_budget_keeps_is_let_alone,
    a_gang_that_a_budget_keeps_runs_on_whole,
], at_once=6)
