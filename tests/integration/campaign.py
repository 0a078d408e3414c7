"""tandem profile service: a campaign that is ended goes on, and its profile lets mudi decide.

TAP on stdout; arguments: the build, cases. The latencies are those of the software GPU's model.
"""
import json
import os
import shutil
import signal
import subprocess

from mps_world import MpsWorld
from world import BUILD, SOFTGPU, TANDEM, Skip, free_port, run_cases, until

SERVE, BESIDE = f"{BUILD}/examples/serve", f"{BUILD}/examples/beside"
LAYERS = "53,0,49,0,0,0,1,53,1,2,0"


class CampaignWorld(MpsWorld):
    def begin(self):
        if not os.path.exists(SERVE) or not os.path.exists(f"{BUILD}/src/profiler/tandem-profile"):
            raise Skip("the example is built where libmicrohttpd is, tandem-profile where BLAS is")
        self.turn_on()
        self.profiles = f"{self.directory}/profiles"
        os.mkdir(self.profiles)
        assert self.tandem("set", f"profiles={self.profiles}").returncode == 0
        self.neighbours = f"{self.directory}/neighbours"
        with open(self.neighbours, "w") as f:
            f.write(f"wide {LAYERS} {BESIDE} --kernel 5ms --for 1h\n")

    def command(self, *options):
        port = free_port()
        return [SOFTGPU, "run", "--", TANDEM, "profile", "service", "--name", "api", "--url",
                f"http://127.0.0.1:{port}/infer", "--shares", "30,60,90", "--batches", "1,4",
                "--bursts", "3", "--beside", self.neighbours, *options, "--", SERVE, "--port",
                str(port), "--name", "api", "--batch", "8", "--linger", "500ms", "--kernel", "4ms",
                "--request", "1ms", "--sms", "20"]

    def policy(self):
        return self.tandem("set", "policy").stdout.split()[1]


def plots_of(world):
    """Pictures of what was measured, or a sentence on why there is none."""
    path = f"{world.directory}/api.svg"
    for options, why in ((["--plot", "api.pdf", "api"], 'ends in .svg or .png'),
                         (["--plot", path], "expected the NAME"),
                         (["--plot", "/nowhere/api.svg", "api"], "/nowhere/api.svg: No such")):
        refused = world.tandem("model", *options)
        assert refused.returncode == 125 and why in refused.stderr, refused
    absent = world.call(TANDEM, "model", "--plot", path, "api", PATH="/nowhere")
    assert "gnuplot, which draws, is not installed" in absent.stderr, absent
    assert not os.path.exists(path) and not os.path.exists(f"{path}.new")
    if not shutil.which("gnuplot"):
        return
    drawn = world.tandem("model", "--plot", path, "api")
    assert drawn.returncode == 0, drawn
    with open(path) as f:
        text = f.read()
    # Three panels (alone, wide, narrow) of two batches each.
    assert "</svg>" in text and text.count("beside layers") == 2 and ">alone<" in text, text[:400]
    assert text.count(">batch 4</tspan>") == 3 and "18 points" in text, text[:400]
    # The campaign draws the same by itself, at its end; here nothing is left to measure.
    assert world.tandem("set", "profiles=none").returncode == 0
    ended = world.call(*world.command("--profiles", world.profiles, "--plot", f"{path[:-4]}2.svg"))
    assert ended.returncode == 0 and "ms (" not in ended.stderr, ended
    with open(f"{path[:-4]}2.svg") as f:
        assert f.read() == text
    assert world.tandem("set", f"profiles={world.profiles}").returncode == 0


def one_that_is_ended_goes_on_and_leaves_the_node_as_it_was():
    with CampaignWorld() as world:
        world.begin()
        before = world.policy()
        process = subprocess.Popen(world.command(), env=world.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [process.stderr.readline() for _ in range(5)]
        process.send_signal(signal.SIGHUP)  # its terminal is closed
        lines += process.stderr.readlines()
        assert process.wait() == 125 and "it was stopped" in lines[-1], lines
        process.communicate()
        assert world.policy() == before
        until(lambda: not world.jobs(), "its programs are gone")
        assert not os.path.exists(f"{world.profiles}/api.profile")
        measured = sum("ms (" in line for line in lines)
        again = world.call(*world.command())
        assert again.returncode == 0, again
        assert again.stderr.count("ms (") == 12 - measured, (measured, again.stderr)
        assert "4 curves of 12 points, batches 1 to 4" in again.stdout, again.stdout
        assert world.policy() == before
        until(lambda: not world.jobs(), "its programs are gone again")
        # A neighbour that comes later is measured alone.
        with open(world.neighbours, "a") as f:
            f.write(f"narrow {LAYERS[:-1]}7 {BESIDE} --kernel 5ms --sms 4 --for 1h\n")
        more = world.call(*world.command())
        assert more.stderr.count("ms (") == 6 and "beside narrow" in more.stderr, more
        listed = json.loads(world.tandem("model", "--json").stdout)
        assert [(row["service"], row["curves"]) for row in listed] == [("api", 6)], listed
        shown = world.tandem("model", "--json", "--rate", "20", "--objective", "1s", "api")
        assert 0.1 <= json.loads(shown.stdout)["share"] <= 1, shown
        assert "only 2 programs beside" in world.tandem("model", "--unseen", "api").stderr
        plots_of(world)
        # The daemon has it: nothing is missing for mudi any more.
        assert world.tandem("set", "policy=mudi").returncode == 0


def who_is_not_alone_or_has_no_mps_is_refused():
    with CampaignWorld() as world:
        world.begin()
        other = world.client("--name", "other")
        refused = world.call(*world.command())
        assert refused.returncode == 125 and "1 processes use the GPUs" in refused.stderr, refused
        other.kill()
        until(lambda: not world.jobs(), "it is gone")
        for options, why in ((["--name", "../x"], "../x"), (["--shares", "90,30"], '"90,30"'),
                             (["--beside", "/nowhere"], "/nowhere"),
                             (["--profiles", "/nowhere"], "/nowhere")):
            refused = world.call(*world.command(*options))
            assert refused.returncode == 125 and why in refused.stderr, refused
        refused = world.call(*world.command(), *["x"] * 300)
        assert refused.returncode == 125 and "at most 240" in refused.stderr, refused
        assert world.tandem("set", "mps=off").returncode == 0
        until(lambda: not world.is_ready(), "MPS has ended")
        refused = world.call(*world.command())
        assert "MPS is not ready" in refused.stderr, refused


if __name__ == "__main__":
    run_cases([one_that_is_ended_goes_on_and_leaves_the_node_as_it_was,
               who_is_not_alone_or_has_no_mps_is_refused], at_once=1)
