"""Which policies can decide here, and what the others lack. TAP on stdout; argument: the build."""
import signal

from world import *

ABLE = {"tandem", "nvshare", "timeshare", "antman", "muxflow"}
# By what NVML of the software GPU tells, libraries can do, and nobody is there to do.
LACKS = {
    "mudi": {"PROFILES"},
    "dcuda": {"MIGRATION"},
}


def policies(world):
    done = world.call(TANDEM, "policies", "--json")
    assert done.returncode == 0 and not done.stderr, done
    return {row["policy"]: row for row in json.loads(done.stdout)}


def able(world):
    return {name for name, row in policies(world).items() if row["state"] in ("able", "decides")}


def with_a_daemon(world, *options):
    """The daemon of a machine that has a software GPU."""
    return world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true", **dict(options))


def each_policy_says_what_it_lacks():
    with World() as world:
        assert with_a_daemon(world).returncode == 0
        until(lambda: able(world) == ABLE, "NVML's figures are known")
        rows = policies(world)
        assert rows["tandem"]["state"] == "decides" and not rows["tandem"]["lacks"], rows
        for name, abilities in LACKS.items():
            assert {lack["ability"] for lack in rows[name]["lacks"]} == abilities, rows[name]
            assert all(lack["sentence"].startswith("This node cannot ")
                       for lack in rows[name]["lacks"]), rows[name]
        shown = world.call(TANDEM, "policies").stdout
        assert all(lack["sentence"] in shown for row in rows.values() for lack in row["lacks"]), (
            shown)


def one_that_lacks_something_is_refused_with_all_of_it():
    with World() as world:
        assert with_a_daemon(world).returncode == 0
        until(lambda: able(world) == ABLE, "NVML's figures are known")
        rows = policies(world)
        done = world.call(TANDEM, "set", "policy=dcuda")
        assert done.returncode == 125 and '"dcuda"' in done.stderr, done
        assert "move a running job to another GPU" in done.stderr, done
        assert policies(world) == rows
        assert world.call(TANDEM, "set", "policy=nvshare").returncode == 0
        assert policies(world)["nvshare"]["state"] == "decides"


def one_that_is_given_at_the_start_waits_for_what_it_needs():
    with World() as world:
        daemon = subprocess.Popen([SOFTGPU, "run", "--", TANDEMD, "--socket",
                                   world.environment["TANDEM_SOCKET"], "--set", "policy=dcuda"],
                                  env=world.environment, stderr=subprocess.DEVNULL)
        try:
            until(lambda: world.call(TANDEM, "ps").returncode == 0, "the daemon answers")
            rows = policies(world)
            assert rows["dcuda"]["state"] == "waits" and rows["tandem"]["state"] == "decides", rows
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()


def dcuda_needs_a_second_gpu():
    with World("--gpus", "2") as world:
        assert with_a_daemon(world).returncode == 0
        until(lambda: world.call(TANDEM, "set", "policy=dcuda").returncode == 0,
              "the daemon knows of both GPUs")
        assert policies(world)["dcuda"]["state"] == "decides"


def muxflow_needs_mps():
    with World() as world:
        assert with_a_daemon(world).returncode == 0
        assert world.call(TANDEM, "set", "mps=off").returncode == 0
        assert {lack["ability"] for lack in policies(world)["muxflow"]["lacks"]} == {"SM_SHARE"}
        done = world.call(TANDEM, "set", "policy=muxflow")
        assert done.returncode == 125 and "hold a job to a share of the SMs" in done.stderr, done
        assert world.call(TANDEM, "set", "mps=auto").returncode == 0
        assert world.call(TANDEM, "set", "policy=muxflow").returncode == 0
        assert policies(world)["muxflow"]["state"] == "decides"
        until(lambda: json.loads(world.call(TANDEM, "gpu", "--json").stdout)[0]["mps"] == "ready",
              "MPS is ready")
        done = world.call(TANDEM, "run", "--gpu", "0", "--", "env")
        assert "\nCUDA_MPS_PIPE_DIRECTORY=" in "\n" + done.stdout, done


if __name__ == "__main__":
    run_cases([each_policy_says_what_it_lacks, one_that_lacks_something_is_refused_with_all_of_it,
               one_that_is_given_at_the_start_waits_for_what_it_needs, dcuda_needs_a_second_gpu,
               muxflow_needs_mps])
