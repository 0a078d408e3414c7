"""The demo's script, both its ways: the model `tiny`, and the way of a real GPU with the software
GPU as the driver. TAP; argument: the build."""
import fcntl
import glob
import json
import re
import signal
from xml.etree import ElementTree

from world import *

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def layout(world):
    """What scripts/build makes of a build."""
    folder = f"{world.directory}/build"
    os.makedirs(f"{folder}/bin", exist_ok=True)
    os.makedirs(f"{folder}/lib", exist_ok=True)
    for program, name in ((SOFTGPU, "bin/softgpu"), (TANDEM, "bin/tandem"),
                          (TANDEMD, "bin/tandemd"), (f"{BUILD}/examples", "examples"),
                          (f"{BUILD}/src/alloc/libtandem_alloc.so", "lib/libtandem_alloc.so")):
        if not os.path.lexists(f"{folder}/{name}"):
            os.symlink(program, f"{folder}/{name}")
    return dict(world.environment, TANDEM_DEMO_BUILD=folder)


def run(world, *options):
    out = f"{world.directory}/out"
    command = [sys.executable, f"{ROOT}/tools/run-demo", "--steps", "1", "--out", out, "--json",
               f"{world.directory}/demo.json", *options]
    done = subprocess.run(command, env=layout(world), capture_output=True, text=True, timeout=360,
                          cwd=world.directory)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(f"{world.directory}/demo.json") as f:
        runs = json.load(f)["runs"]
    assert (os.path.exists(f"{out}/timeline.svg")
            and all(job["checksum_ok"] for r in runs for job in r["jobs"])), runs
    return [r["mode"] for r in runs], done.stdout


def the_software_gpu_shows_all_four_modes():
    with World() as world:
        modes, text = run(world, "--software")
        assert (modes == ["sequential", "bare", "nvshare", "tandem"] * 2
                and "a model in software, not a GPU" in text), (modes, text)


def a_driver_that_shows_a_gpu_is_used_and_its_managed_memory_left_alone():
    with World("--memory", "128m") as world:
        environment, world.environment = world.environment, dict(world.environment)
        wrap = subprocess.run([SOFTGPU, "run", "--", "env"], env=environment, capture_output=True,
                              text=True, check=True).stdout
        world.environment["LD_LIBRARY_PATH"] = next(line.split("=", 1)[1]
                                                    for line in wrap.splitlines()
                                                    if line.startswith("LD_LIBRARY_PATH="))
        modes, text = run(world, "--gpu", "--capacity", "48Mi")
        assert (modes == ["sequential", "nvshare", "tandem"] * 2
                and "treated as one of 48Mi" in text), (modes, text)
        assert world.status()["faults"] == 0, world.status()


def figures(world, script, *options):
    command = [sys.executable, f"{ROOT}/tools/{script}", "--json",
               f"{world.directory}/figures.json", *options]
    environment = layout(world)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=540,
                          cwd=world.directory)
    assert done.returncode == 0 and "a model in software, not a GPU" in done.stdout, done
    with open(f"{world.directory}/figures.json") as f:
        return json.load(f)


def page(world, name):
    with open(f"{world.directory}/demo-out/{name}") as f:
        text = f.read()
    drawn = [ElementTree.fromstring(svg) for svg in re.findall("<svg.*?</svg>", text, re.S)]
    assert len(drawn) >= 2 and "src=" not in text and "href=" not in text, text[:2000]
    assert all(svg.findall("{*}polyline") for svg in drawn), text[:2000]
    return text


def protect_shows_a_guaranteed_job_alone_and_in_company():
    with World() as world:
        (alone, tandem), = figures(world, "run-protect", "--steps", "3", "--gpu", "60", "--host",
                                   "60", "--mode", "tandem, told")["pairs"]
        assert ((alone["mode"], tandem["mode"]) == ("alone", "tandem, told")
                and len(tandem["step_ms"]) == 3), (alone, tandem)
        # The pauses are half of the GPU's time. Most of these few steps make the baseline, in which
        # the pauses are left empty. Where the machine could not keep the software GPU's pace all
        # figures are void.
        assert (alone["besteffort_share"] == 0
                and (tandem["lagged"] or 0.005 < tandem["besteffort_share"] < 0.9)), tandem
        assert ({s["name"] for s in tandem["samples"]} == {"besteffort", "guaranteed"}
                and not alone["samples"]), tandem["samples"]
        assert ("tandem, told: memory" in page(world, "protect.html")
                and "guaranteed: on the GPU" in page(world, "protect.html"))


def table2_fails_without_tandem_and_finishes_both_jobs_with_it():
    with World() as world:
        pack, antman, allocator = figures(world, "run-table2", "--scale", "0.05", "--way", "pack",
                                          "--way", "antman", "--way", "antman + allocator")["runs"]
        assert pack["b_s"] is None and pack["a_s"], pack
        assert antman["a_s"] and antman["b_s"] and antman["right"], antman
        assert (allocator["a_s"] and allocator["b_s"] and allocator["right"]
                and any(s["cached_bytes"] for s in allocator["samples"])), allocator
        assert "job-a: on the host" in page(world, "table2.html")


def bad_options_are_quoted():
    with World() as world:
        environment = layout(world)
        environment.pop("LD_LIBRARY_PATH", None)
        cases = [(["--capacity", "48Mu"], '"48Mu"')]
        if not os.path.exists("/dev/nvidiactl"):
            cases.append((["--gpu"], "no GPU"))
        for options, quoted in cases:
            done = subprocess.run([sys.executable, f"{ROOT}/tools/run-demo", *options],
                                  env=environment, capture_output=True, text=True, timeout=180,
                                  cwd=world.directory)
            assert done.returncode == 1 and quoted in done.stderr, done


def who_ends_a_script_by_a_signal_finds_nothing_left():
    scripts = (("run-demo", "--software"), ("run-table2", "--way", "pack"),
               ("run-protect", "--mode", "tandem, told"))
    with World() as world:
        for script, *options in scripts:
            folder = f"{world.directory}/{script}"
            os.mkdir(folder)
            process = subprocess.Popen([sys.executable, f"{ROOT}/tools/{script}", "--out",
                                        f"{world.directory}/out", *options],
                                       env=dict(layout(world), TMPDIR=folder),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       cwd=world.directory)
            until(lambda: glob.glob(f"{folder}/*/gpu/socket"), "its software GPU is there")
            with open(glob.glob(f"{folder}/*/gpu/lock")[0]) as f:
                process.terminate()
                status = process.wait(timeout=DEADLINE_S)
                assert status == 128 + signal.SIGTERM, (script, status)
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a server that goes on has it
            assert not os.listdir(folder), (script, os.listdir(folder))


run_cases([the_software_gpu_shows_all_four_modes,
           a_driver_that_shows_a_gpu_is_used_and_its_managed_memory_left_alone,
           protect_shows_a_guaranteed_job_alone_and_in_company,
           table2_fails_without_tandem_and_finishes_both_jobs_with_it, bad_options_are_quoted,
           who_ends_a_script_by_a_signal_finds_nothing_left], at_once=4)
