"""The daemon's knowledge of the GPUs: NVML beside its own ledger. TAP on stdout; argument: the
build."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
SOFTGPU, TANDEM, TANDEMD, TRAIN = (f"{BUILD}/softgpu/cli/softgpu", f"{BUILD}/src/cli/tandem",
                                   f"{BUILD}/src/daemon/tandemd", f"{BUILD}/examples/train")
DEADLINE_S = 180  # after this a program counts as hung


class World:
    """A private software GPU (two of them) and a private daemon."""

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="tandem-nvml-")
        self.directory = self.temporary.name
        self.environment = dict(os.environ, SOFTGPU_DIR=f"{self.directory}/gpu",
                                TANDEM_SOCKET=f"{self.directory}/t/socket", TANDEMD=TANDEMD,
                                TANDEM_LOCKS=f"{self.directory}/locks",
                                TANDEM_LIB=f"{BUILD}/src/preload/libtandem.so",
                                SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        # The test runner's: nothing is found by chance.
        self.environment.pop("LD_LIBRARY_PATH", None)
        self.call(SOFTGPU, "start", "--gpus", "2")
        return self

    def __exit__(self, *_):
        self.call(TANDEM, "stop", "--force")
        self.call(SOFTGPU, "stop")
        self.temporary.cleanup()

    def call(self, *command, **extra):
        return subprocess.run(command, env=dict(self.environment, **extra), capture_output=True,
                              text=True, timeout=DEADLINE_S)

    def start(self, *command, **extra):
        return subprocess.Popen([SOFTGPU, "run", "--", TANDEM, "run", "--", *command],
                                env=dict(self.environment, **extra), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def daemon_listens(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            return probe.connect_ex(self.environment["TANDEM_SOCKET"]) == 0

    def events(self, **extra):
        return json.loads(self.call(TANDEM, "events", "--json", **extra).stdout or "[]")

    def gpus(self):
        return json.loads(self.call(TANDEM, "gpu", "--json").stdout)


def until(condition, what):
    """Waits for an event, with a bound that only a hang reaches."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)


def gpus_that_nobody_uses_are_shown_with_what_nvml_knows():
    with World() as world:
        world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")
        gpus = world.gpus()
        assert ([g["index"] for g in gpus] == [0, 1]
                and all(g["name"] == "softgpu tiny" and g["nvml_used_bytes"] == 0
                        for g in gpus)), gpus
        assert gpus[0]["uuid"] != gpus[1]["uuid"], gpus
        text = world.call(TANDEM, "gpu").stdout
        assert "0%" in text and gpus[0]["uuid"] in text, text


def nvml_stands_beside_the_ledger_while_a_program_runs():
    with World() as world:
        program = world.start(TRAIN, "--size", "8m", "--gpu", "20ms", "--cpu", "1ms", "--steps",
                              "40")

        def busy():
            assert program.poll() is None, program.communicate()
            first = (world.gpus() or [{}])[0]
            return (first.get("index") == 0 and first["resident_bytes"] >= 8 << 20
                    and first.get("utilisation_ppm", 0) > 500000)

        until(lambda: world.call(TANDEM, "set", "gpu.sample=10ms").returncode == 0,
              "the daemon is there")
        until(busy, "the GPU is busy")
        gpus = world.gpus()
        # The context and the program's module are on the device, and in nobody's ledger.
        assert (len(gpus) == 2 and gpus[0]["nvml_used_bytes"] > gpus[0]["resident_bytes"]
                and gpus[0]["nvml_total_bytes"] == gpus[0]["total_bytes"]), gpus
        assert gpus[0]["uuid"].startswith("GPU-736f6674-6770-75"), gpus
        program.kill()
        program.communicate()


def a_gpu_has_the_number_that_smi_gives_it_whichever_is_used_first():
    with World() as world:
        listed = [line.split("UUID: ")[1].rstrip(")")
                  for line in world.call(SOFTGPU, "smi", "-L").stdout.splitlines()]
        # A GPU that attaches before NVML has answered has a number in order of arrival until then,
        # which its event shows.
        assert world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode == 0
        until(lambda: len(world.gpus()) == 2, "NVML has answered")
        program = world.start(TRAIN, "--size", "1m", "--gpu", "20ms", "--cpu", "1ms", "--steps",
                              "100000", CUDA_VISIBLE_DEVICES="1")
        until(lambda: any(e["kind"] == "opened" for e in world.events()), "it runs")
        gpus = world.gpus()
        assert ([(g["index"], g["uuid"], g["clients"]) for g in gpus]
                == [(0, listed[0], 0), (1, listed[1], 1)]), (listed, gpus)
        assert json.loads(world.call(TANDEM, "ps", "--json").stdout)[0]["gpu"] == 1
        assert ([e["gpu"] for e in world.events() if e["kind"] in ("attached", "opened")]
                == [1, 1]), world.events()
        program.kill()
        program.communicate()


def a_lost_gpu_is_an_event_and_shown():
    with World() as world:
        program = world.start(TRAIN, "--size", "1m", "--gpu", "20ms", "--cpu", "1ms", "--steps",
                              "100000")
        until(lambda: any(e["kind"] == "attached" for e in world.events()), "it runs")
        assert world.call(TANDEM, "set", "gpu.sample=10ms").returncode == 0
        assert not any(g["lost"] for g in world.gpus())
        world.call(SOFTGPU, "fault", "--gpu", "1", "lost")
        until(lambda: any(e["kind"] == "lost" for e in world.events()), "it is noticed")
        lost = [e for e in world.events() if e["kind"] == "lost"]
        gpus = world.gpus()
        assert [e["gpu"] for e in lost] == [1] and gpus[1]["uuid"] in lost[0]["detail"], lost
        assert ([g["lost"] for g in gpus] == [0, 1]
                and "lost" in world.call(TANDEM, "gpu").stdout), gpus
        program.kill()
        program.communicate()


def without_nvml_nothing_is_missing_but_its_figures():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")  # not under softgpu: the daemon finds no library
        assert world.gpus() == [], world.gpus()
        program = world.start(TRAIN, "--size", "1m", "--gpu", "1ms", "--cpu", "1ms", "--steps",
                              "100000")
        until(world.gpus, "the program told of its GPU")
        gpus = world.gpus()
        assert len(gpus) == 1 and gpus[0]["index"] == 0 and "nvml_used_bytes" not in gpus[0], gpus
        program.kill()
        program.communicate()
        until(lambda: world.gpus() == [], "a GPU that only a program told of is forgotten with it")


def a_gpu_belongs_to_one_daemon_at_a_time():
    small = [TRAIN, "--size", "1m", "--gpu", "20ms", "--cpu", "1ms"]
    with World() as world:
        other = {"TANDEM_SOCKET": f"{world.directory}/other/socket"}
        first = world.start(*small, "--steps", "100000")
        until(lambda: any(e["kind"] == "attached" for e in world.events()), "the first has the GPU")
        second = world.start(*small, "--steps", "2", **other)
        out, err = second.communicate(timeout=DEADLINE_S)
        owner = world.environment["TANDEM_SOCKET"]
        # The program runs all the same, without tandem; the commands name the owner of the GPU.
        assert second.returncode == 0 and json.loads(out)["checksum_ok"], err
        assert "shared by another tandemd" in err and owner in err, err
        foreign = [e for e in world.events(**other) if e["kind"] == "foreign"]
        assert (foreign and owner in foreign[0]["detail"]
                and f"uid {os.getuid()}" in foreign[0]["detail"]), world.events(**other)
        doctor = world.call(TANDEM, "doctor", **other).stdout
        assert owner in doctor and "locks" in doctor, doctor
        assert owner not in world.call(TANDEM, "doctor").stdout.replace(f"answers at {owner}", "")
        first.kill()
        first.communicate()
        until(lambda: not [n for n in os.listdir(f"{world.directory}/locks")],
              "the lock is given back with the last client")
        third = world.start(*small, "--steps", "2", **other)
        _, err = third.communicate(timeout=DEADLINE_S)
        assert third.returncode == 0 and err == "", err
        assert any(e["kind"] == "attached" for e in world.events(**other)), world.events(**other)
        world.call(TANDEM, "stop", "--force", **other)


def a_lock_of_a_dead_daemon_holds_up_nobody():
    small = [TRAIN, "--size", "1m", "--gpu", "1ms", "--cpu", "1ms", "--steps", "2"]
    with World() as world:
        program = world.start(*small[:-1], "2000")
        until(lambda: any(e["kind"] == "attached" for e in world.events()), "attached")
        with open(world.environment["TANDEM_SOCKET"] + ".lock") as f:
            os.kill(int(f.read()), signal.SIGKILL)
        until(lambda: not world.daemon_listens(), "the daemon's end")  # a kill is no more than sent
        program.kill()
        program.communicate()
        assert len(os.listdir(f"{world.directory}/locks")) == 1
        assert world.start(*small).wait(DEADLINE_S) == 0
        assert any(e["kind"] == "attached" for e in world.events()), world.events()


CASES = [
    a_gpu_belongs_to_one_daemon_at_a_time,
    a_lock_of_a_dead_daemon_holds_up_nobody,
    gpus_that_nobody_uses_are_shown_with_what_nvml_knows,
    nvml_stands_beside_the_ledger_while_a_program_runs,
    a_gpu_has_the_number_that_smi_gives_it_whichever_is_used_first,
    a_lost_gpu_is_an_event_and_shown,
    without_nvml_nothing_is_missing_but_its_figures,
]

print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}", flush=True)
    except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "),
              flush=True)
