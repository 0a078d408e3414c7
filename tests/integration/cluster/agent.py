#!/usr/bin/env python3
"""tandem-agent between a daemon on the software GPU and a real etcd. TAP.
usage: agent.py BUILD [CASE]..."""
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from etcd_world import Etcd, find_etcd  # noqa: E402
from world import (  # noqa: E402
    BUILD, DEADLINE_S, SOFTGPU, TANDEM, TRAIN, Skip, World, run_cases, until)

AGENT = f"{BUILD}/src/cluster/agent/tandem-agent"
LONG = ["--size", "8m", "--gpu", "10ms", "--cpu", "5ms", "--steps", "100000"]


class Node(World):
    def __enter__(self):
        if not os.path.exists(AGENT):
            raise Skip("tandem-agent was not built: libcurl or jansson is missing")
        find_etcd()
        super().__enter__()
        self.agents, self.etcd = [], None
        try:
            self.etcd = Etcd(self.directory)
            assert not self.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode
            self.start_agent()
        except BaseException as problem:
            self.__exit__(type(problem))
            raise
        return self

    def start_agent(self):
        with open(f"{self.directory}/agent.log", "a") as log:
            agent = subprocess.Popen(
                [AGENT, "--name", "node1", "--etcd", self.etcd.url, "--lease", "3s",
                 "--assign", f"{self.directory}/assign"], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.agents.append(agent)
        return agent

    def log(self):
        with open(f"{self.directory}/agent.log") as f:
            return f.read()

    def record(self):
        return self.etcd.get("node/node1")

    def has(self, condition, what):
        until(lambda: (self.record() is not None) and condition(self.record()), what)

    def __exit__(self, kind, *rest):
        if kind and self.agents:
            print("# " + self.log().replace("\n", "\n# "))
        for agent in self.agents:
            agent.kill()
            agent.wait()
        if self.etcd:
            self.etcd.kill()
        super().__exit__(kind, *rest)


# -- cases --

def a_node_appears_with_its_gpus_and_what_runs():
    with Node("--gpus", "2") as world:
        world.has(lambda r: r["answers"] and len(r["gpus"]) == 2, "two GPUs")
        idle = world.record()
        assert all(gpu["accepts"] and gpu["uuid"].startswith("GPU-") for gpu in idle["gpus"]), idle
        train = world.start(TRAIN, *LONG, wrap="auto")
        world.has(lambda r: r["jobs"], "a job")
        record = world.record()
        job = record["jobs"][0]
        assert job["class"] == "besteffort" and job["demanded_bytes"] > 0, record
        assert "train" not in json.dumps(record), record
        world.has(lambda r: r["gpus"][job["gpu"]]["room_bytes"]
                  < idle["gpus"][job["gpu"]]["room_bytes"], "less room")
        world.has(lambda r: r["gpus"][job["gpu"]].get("load_ppm", 0) > 0, "load")
        train.kill()
        train.wait()
        world.has(lambda r: not r["jobs"], "no job")


def a_node_whose_agent_is_killed_is_gone_with_its_lease_and_comes_back():
    with Node() as world:
        world.has(lambda r: r["answers"], "a record")
        agent = world.agents[0]
        agent.kill()
        agent.wait()
        until(lambda: world.record() is None, "the lease ends")
        world.start_agent()
        world.has(lambda r: r["answers"], "a record again")
        world.agents[-1].send_signal(signal.SIGTERM)
        assert world.agents[-1].wait(DEADLINE_S) == 0
        assert world.record() is None, "an agent that ends takes its record with it"


def a_node_whose_daemon_ends_accepts_nothing():
    with Node() as world:
        world.has(lambda r: r["answers"], "a record")
        world.call(TANDEM, "stop", "--force")
        world.has(lambda r: not r["answers"], "the daemon is away")
        assert not any(gpu["accepts"] for gpu in world.record()["gpus"])
        assert not world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode
        world.has(lambda r: r["answers"] and r["gpus"][0]["accepts"], "it is back")


def an_etcd_that_is_killed_and_comes_back_has_the_node_again():
    with Node() as world:
        world.has(lambda r: r["answers"], "a record")
        world.etcd.put("assign/17", {"places": [{"node": "node1", "gpu": 0}]})
        until(lambda: os.path.exists(f"{world.directory}/assign/17"), "an assignment")
        for _ in range(3):
            world.etcd.kill()
            time.sleep(0.5)
            world.etcd.start()
        world.etcd.put("assign/18", {"places": [{"node": "node1", "gpu": 0}]})
        until(lambda: os.path.exists(f"{world.directory}/assign/18"), "an assignment")
        assert os.path.exists(f"{world.directory}/assign/17")
        world.has(lambda r: r["answers"], "the record")
        assert world.agents[0].poll() is None


def kills_of_agent_and_etcd_at_random_lose_nothing():
    chance = random.Random(7)
    with Node() as world:
        world.has(lambda r: r["answers"], "a record")
        for i in range(20):
            if chance.random() < 0.5:
                world.etcd.kill()
                time.sleep(chance.random())
                world.etcd.start()
            else:
                world.agents[-1].kill()
                world.agents[-1].wait()
                time.sleep(chance.random())
                world.start_agent()
            place = {"node": "node1" if i % 3 else "node2", "gpu": 0}
            world.etcd.put(f"assign/{i % 7}", {"epoch": i, "places": [place]})
        expected = {}
        for i in range(20):
            expected[str(i % 7)] = (i, i % 3 != 0)

        def files():
            found = {}
            for name in os.listdir(f"{world.directory}/assign"):
                if name.startswith("."):  # it is being written
                    continue
                try:
                    with open(f"{world.directory}/assign/{name}") as f:
                        found[name] = json.load(f)["epoch"]
                except FileNotFoundError:
                    pass
            return found

        until(lambda: files() == {job: epoch for job, (epoch, here) in expected.items() if here},
              "the assignments of this node")
        world.has(lambda r: r["answers"] and r["gpus"][0]["accepts"], "the record")


def a_second_agent_of_the_name_waits():
    with Node() as world:
        world.has(lambda r: r["answers"], "a record")
        second = world.start_agent()
        until(lambda: "another agent has this name" in world.log(), "it says so")
        world.agents[0].send_signal(signal.SIGTERM)
        world.agents[0].wait()
        world.has(lambda r: r["answers"], "the second one's record")
        assert second.poll() is None


def a_record_is_printed_without_etcd():
    with Node() as world:
        def record():
            return json.loads(world.call(AGENT, "--name", "n2", "--print").stdout)

        assert record()["node"] == "n2"
        until(lambda: record()["gpus"], "the daemon has seen its GPUs")
        world.call(TANDEM, "stop", "--force")
        said = world.call(AGENT, "--name", "n2", "--print")
        assert said.returncode == 1 and "no daemon answers" in said.stderr, said


run_cases([
    a_node_appears_with_its_gpus_and_what_runs,
    a_node_whose_agent_is_killed_is_gone_with_its_lease_and_comes_back,
    a_node_whose_daemon_ends_accepts_nothing,
    an_etcd_that_is_killed_and_comes_back_has_the_node_again,
    kills_of_agent_and_etcd_at_random_lose_nothing,
    a_second_agent_of_the_name_waits,
    a_record_is_printed_without_etcd,
], at_once=2)
