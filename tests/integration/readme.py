"""README's first steps, as pasted: every command does what it is for, and prints what README shows.
TAP on stdout; argument: the build."""
import re

from world import *

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def first_steps():
    with open(f"{ROOT}/README.md") as f:
        text = f.read().split("## First steps\n", 1)[1].split("\n## ", 1)[0]
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    return ([line for line in lines if not line.startswith("#")],
            [line[2:] for line in lines if line.startswith("#")])


def every_command_works_in_this_order():
    commands, printed = first_steps()
    assert commands[0] == "scripts/build" and commands[1].startswith("export PATH="), commands[:2]
    with World() as world:
        world.call(SOFTGPU, "stop")  # the reader has none either
        folder = f"{world.directory}/clone"
        for name, target in (("tandem", TANDEM), ("tandemd", TANDEMD), ("softgpu", SOFTGPU),
                             ("tandem-sim", f"{BUILD}/src/sim/tandem-sim")):
            os.makedirs(f"{folder}/build/bin", exist_ok=True)
            os.symlink(target, f"{folder}/build/bin/{name}")
        os.symlink(f"{BUILD}/examples", f"{folder}/build/examples")
        os.symlink(f"{ROOT}/examples", f"{folder}/examples")
        # Half of the steps show the same.
        script = ("set -e\n"
                  + "\n".join(commands[1:]).replace("--size 46m", "--size 46m --steps 10").replace(
                      "tandem top ", "tandem top --batch -n 1 ").replace(
                      "tandem events |", "tandem events > all; tandem events |"))
        done = subprocess.run(["bash", "-c", script], env=world.environment, cwd=folder,
                              capture_output=True, text=True, timeout=2 * DEADLINE_S)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        assert done.stdout.count('"checksum_ok": true') == script.count(" -- train "), done
        for title in [line for line in printed if re.match("(GPU|TIME|Compared) ", line)]:
            assert title in done.stdout.splitlines(), (title, done.stdout)
        with open(f"{folder}/all") as f:
            events = [line.split() for line in f]
        for name in ("first", "second"):
            assert ({"opened", "drained", "shrunk"}
                    <= {row[1] for row in events if row[2] == name}), events
        assert os.path.exists(f"{folder}/report/report.html"), done
        assert not done.stderr, done.stderr


def programs_of_the_build_take_the_driver_that_is_there():
    """The software GPU's driver lies in the same build: with a path to it in the program a real GPU
    would never be used."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    found = subprocess.run([TRAIN], env=dict(environment, LD_TRACE_LOADED_OBJECTS="1"),
                           capture_output=True, text=True, timeout=DEADLINE_S).stdout
    driver, = re.findall(r"libcuda\.so\.1 => (.*)", found)
    assert not driver.startswith("/") or BUILD not in os.path.realpath(driver.split(" (")[0]), found
    with World() as world:
        # doctor's statement about the driver predicts the program's result.
        for wrap in ([], [SOFTGPU, "run", "--"]):
            doctor = json.loads(world.call(*wrap, TANDEM, "doctor", "--json", TRAIN).stdout)
            has_driver = any(row["check"] == "driver" and row["result"] == "ok" for row in doctor)
            ran = world.call(*wrap, TANDEM, "run", "--", TRAIN, "--size", "1m", "--steps", "1",
                             "--gpu", "1ms", "--cpu", "1ms")
            assert (ran.returncode != 127) == has_driver, (doctor, ran)
            assert ran.returncode == 0 or not wrap, ran


run_cases([every_command_works_in_this_order, programs_of_the_build_take_the_driver_that_is_there],
          at_once=2)
