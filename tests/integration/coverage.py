"""Every way to device memory and every launch form under tandem, with each backend. TAP on stdout; argument: the build."""
import sys

from world import *

PROGRAM = f"{BUILD}/tests/integration/coverage_test"


def tap_passes(done):
    assert done.returncode == 0, "\n".join(line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("ok "))


def memory_is_counted(backend):
    with World("--gpus", "2") as world:
        tap_passes(world.call(SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--", PROGRAM))
        nothing_is_left(world)


def memory_of_every_kind_is_counted_beside_plain():
    memory_is_counted("plain")


def memory_of_every_kind_is_counted_beside_swap():
    memory_is_counted("swap")


run_cases([
    memory_of_every_kind_is_counted_beside_plain,
    memory_of_every_kind_is_counted_beside_swap,
])
