#!/usr/bin/env python3
"""The Helm chart for Kubernetes: it renders, its objects refer to each other, and its commands are
known to the programs. With helm, where there is one, the same comes of it. TAP. usage: chart.py
BUILD [CASE]..."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from world import BUILD, DEADLINE_S, Skip, run_cases

try:
    import yaml
except ImportError:
    yaml = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGING = f"{ROOT}/packaging/kubernetes"
RENDER = f"{ROOT}/tools/render-chart"
PROGRAMS = {"tandemd": "src/daemon/tandemd",
            "tandem-device-plugin": "src/kubernetes/tandem-device-plugin",
            "tandem-kube-sched": "src/kubernetes/sched/tandem-kube-sched",
            "tandem-admission": "src/kubernetes/admission/tandem-admission"}
ALL = ["admission.enabled=true", "node.cdi=nvidia.com/gpu", "node.textfileDir=/var/lib/textfile",
       "scheduler.quotas={physics: 8, lab: 2}", "admission.caBundle=QUJD"]
CHOICES = [[], ["scheduler.enabled=false"], ["admission.enabled=true"], ALL,
           [*ALL, "admission.certManager=true", "admission.setScheduler=false"]]


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)


def rendered(settings=(), namespace="gpus"):
    if not yaml:
        raise Skip("python3-yaml is missing")
    done = call(sys.executable, RENDER, "--namespace", namespace,
                *(word for setting in settings for word in ("--set", setting)))
    assert not done.returncode, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def pods(objects):
    for thing in objects:
        if thing["kind"] in ("DaemonSet", "Deployment"):
            yield thing, thing["spec"]["template"]["spec"]


def commands(objects):
    for _, spec in pods(objects):
        for container in spec["containers"]:
            yield container["command"]


# -- cases --

def each_choice_makes_valid_objects():
    for settings in CHOICES:
        objects = rendered(settings)
        names = [(thing["kind"], thing["metadata"]["name"]) for thing in objects]
        assert len(set(names)) == len(names) and ("DaemonSet", "tandem") in names, names
        for thing in objects:
            assert thing["apiVersion"] and "{{" not in json.dumps(thing), thing
            if not thing["kind"].startswith(("Cluster", "Mutating")):
                assert thing["metadata"]["namespace"] == "gpus", thing


def selectors_find_their_pods_and_volumes_exist():
    objects = rendered(ALL)
    labels = [thing["spec"]["template"]["metadata"]["labels"] for thing, _ in pods(objects)]
    for thing in objects:
        selector = thing.get("spec", {}).get("selector")
        if not selector:
            continue
        wanted = selector.get("matchLabels", selector).items()
        assert sum(wanted <= its.items() for its in labels) == 1, thing
    for _, spec in pods(objects):
        volumes = {volume["name"] for volume in spec["volumes"]} if "volumes" in spec else set()
        used = {mount["name"] for container in spec["containers"] + spec.get("initContainers", [])
                for mount in container.get("volumeMounts", [])}
        assert used == volumes, (used, volumes)


def its_commands_are_known_to_the_programs():
    tried = 0
    for command in commands(rendered(ALL)):
        path = f"{BUILD}/{PROGRAMS.get(command[0], 'none')}"
        if not os.path.exists(path):
            continue
        said = call(path, "--help").stdout
        for word in command[1:]:
            if word.startswith("--"):
                assert re.search(re.escape(word.split("=")[0]) + r"\b", said), (word, said)
        tried += 1
    if not tried:
        raise Skip("none of its programs was built")


def quotas_and_scheduler_reach_the_commands():
    every = {command[0]: command for command in commands(rendered(ALL))}
    assert {"--quota=physics=8", "--quota=lab=2"} <= set(every["tandem-kube-sched"]), every
    assert "--scheduler=tandem" in every["tandem-admission"], every
    assert "--cdi=nvidia.com/gpu" in every["tandem-device-plugin"], every
    every = {command[0]: command for command in commands(
        rendered([*ALL, "scheduler.enabled=false"]))}
    assert "tandem-kube-sched" not in every, every
    assert not [word for word in every["tandem-admission"] if "--scheduler" in word], every


def rules_of(objects, name):
    return [rule for thing in objects if thing["kind"] in ("ClusterRole", "Role")
            and thing["metadata"]["name"] == name for rule in thing["rules"]]


def who_may_do_something_may_do_no_more_than_it_needs():
    objects = rendered(ALL)
    for thing, spec in pods(objects):
        if thing["metadata"]["name"] == "tandem-kube-sched":
            assert spec["serviceAccountName"] == "tandem-kube-sched", spec
        else:
            assert spec["automountServiceAccountToken"] is False, spec
    rules = rules_of(objects, "tandem-kube-sched")
    assert len(rules) == 6 and "*" not in json.dumps(rules), rules
    assert not [rule for rule in rules if "secrets" in rule["resources"]], rules
    assert [rule["resources"] for rule in rules if "patch" in rule["verbs"]] == [["pods/status"]]
    assert rules_of(objects, "tandem-node") == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    roles = [thing for thing in objects if thing["kind"] in ("ClusterRole", "Role")]
    assert len(roles) == 3, roles


def the_plugin_alone_asks_where_pods_were_placed():
    node, = [spec for thing, spec in pods(rendered()) if thing["kind"] == "DaemonSet"]
    assert node["serviceAccountName"] == "tandem-node", node
    with_token = [container for container in node["containers"] + node["initContainers"]
                  if "account" in [mount["name"] for mount in container["volumeMounts"]]]
    plugin, = with_token
    assert "--node-name=$(NODE)" in plugin["command"], plugin
    assert {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in (
        plugin["env"]), plugin
    node, = [spec for thing, spec in pods(rendered(["scheduler.enabled=false"]))
             if thing["kind"] == "DaemonSet"]
    assert "serviceAccountName" not in node and "node-name" not in json.dumps(node), node
    assert "account" not in [volume["name"] for volume in node["volumes"]], node


def no_pod_escapes_the_admission_by_a_label_of_its_own():
    webhook, = [thing for thing in rendered(ALL) if thing["kind"].startswith("Mutating")]
    for one in webhook["webhooks"]:
        assert "objectSelector" not in one, one
        assert one["rules"][0]["operations"] == ["CREATE", "UPDATE"], one
        assert {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["gpus"]} in (
            one["namespaceSelector"]["matchExpressions"]), one


def the_manifest_is_what_the_chart_says():
    rendered()
    done = call(sys.executable, RENDER, "--manifest", "--check")
    assert not done.returncode, done.stdout


def a_key_or_an_action_that_is_not_known_is_quoted():
    rendered()
    done = call(sys.executable, RENDER, "--set", "scheduler.quota=1")
    assert done.returncode and '"scheduler.quota=1"' in done.stderr, done


def a_certificate_of_the_script_has_the_name_of_the_service():
    if not shutil.which("openssl"):
        raise Skip("openssl is missing")
    objects = rendered(ALL)
    service, = [thing["metadata"] for thing in objects if thing["kind"] == "Service"]
    done = call(f"{PACKAGING}/make-certificate", service["namespace"])
    secret = yaml.safe_load(done.stdout)
    spec, = [spec for thing, spec in pods(objects) if thing["metadata"]["name"] == service["name"]]
    assert spec["volumes"][0]["secret"]["secretName"] == secret["metadata"]["name"], spec
    with tempfile.TemporaryDirectory(prefix="tandem-chart-") as folder:
        for name, text in (("tls.crt", secret["data"]["tls.crt"]),
                           ("ca.crt", done.stderr.split()[-1])):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(base64.b64decode(text))
        name = f"{service['name']}.{service['namespace']}.svc"
        done = call("openssl", "verify", "-CAfile", f"{folder}/ca.crt", "-verify_hostname", name,
                    f"{folder}/tls.crt")
        assert not done.returncode, done
    assert call(f"{PACKAGING}/make-certificate").returncode == 2


def helm_says_the_same():
    if not shutil.which("helm"):
        raise Skip("helm is missing")
    for settings in CHOICES:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            values = {}
            for setting in settings:
                key, _, value = setting.partition("=")
                outer, inner = key.split(".")
                values.setdefault(outer, {})[inner] = yaml.safe_load(value)
            f.write(yaml.safe_dump(values))
            f.flush()
            done = call("helm", "template", "tandem", f"{PACKAGING}/chart", "--namespace", "gpus",
                        "--values", f.name)
        assert not done.returncode, done.stderr

        def key_of(thing):
            return thing["kind"], thing["metadata"]["name"]

        theirs = sorted(filter(None, yaml.safe_load_all(done.stdout)), key=key_of)
        assert theirs == sorted(rendered(settings), key=key_of), settings


run_cases([each_choice_makes_valid_objects, selectors_find_their_pods_and_volumes_exist,
           its_commands_are_known_to_the_programs, quotas_and_scheduler_reach_the_commands,
           who_may_do_something_may_do_no_more_than_it_needs,
           the_plugin_alone_asks_where_pods_were_placed,
           no_pod_escapes_the_admission_by_a_label_of_its_own, the_manifest_is_what_the_chart_says,
           a_key_or_an_action_that_is_not_known_is_quoted,
           a_certificate_of_the_script_has_the_name_of_the_service, helm_says_the_same])
