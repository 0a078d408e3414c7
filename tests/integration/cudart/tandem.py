"""Programs on the CUDA runtime under tandem, which sees them through the driver's functions that
the runtime looks up. TAP on stdout; argument: the build."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from world import BUILD, DEADLINE_S, SOFTGPU, World, nothing_is_left, run_cases, until  # noqa: E402

HOST, HOLD = (f"{BUILD}/tests/integration/cudart/cudart_host",
              f"{BUILD}/tests/integration/cudart/cudart_hold")
HALF = 40 << 20  # two of them do not fit into the model's 64 MiB


def ended(process):
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, f"exit {process.returncode}: {out}{err}"
    return out


def programs_behave_as_without_it():
    with World() as world:
        alone = ended(world.start(HOST))
        for backend in ("plain", "swap", "managed"):
            assert ended(world.start(HOST, wrap=backend)) == alone, backend
        nothing_is_left(world)


def memory_of_the_runtime_is_accounted_and_given_back():
    with World() as world:
        program = world.start(HOLD, str(HALF), "60", wrap="swap")
        until(lambda: program.poll() is not None or any(j.get("resident_bytes", 0) >= HALF
                                                        for j in world.jobs()),
              "the job's memory is known")
        assert program.poll() is None, program.communicate()
        assert ended(program) == "ok\n"
        nothing_is_left(world)


def two_that_do_not_fit_together_both_end_right():
    with World() as world:
        alone = subprocess.run([SOFTGPU, "run", "--", HOLD, str(HALF), "2"], env=world.environment,
                               capture_output=True, text=True, timeout=DEADLINE_S)
        assert alone.stdout == "ok\n", alone
        both = [world.start(HOLD, str(HALF), "12", wrap="swap") for _ in range(2)]
        assert [ended(p) for p in both] == ["ok\n", "ok\n"]
        nothing_is_left(world)


run_cases([programs_behave_as_without_it, memory_of_the_runtime_is_accounted_and_given_back,
           two_that_do_not_fit_together_both_end_right])
