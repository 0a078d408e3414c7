"""Programs of several processes that share memory by cuMemCreate through descriptors. TAP on
stdout; argument: the build."""
from world import *

RING = f"{BUILD}/tests/integration/ring_test"
MIB = 1 << 20
ROUNDS = "5"


def passes(world, maker, processes, mebibytes, *wrap):
    done = world.call(SOFTGPU, "run", "--", *wrap, RING, maker, str(processes),
                      str(mebibytes * MIB), ROUNDS)
    assert (done.returncode == 0
            and f"{processes} blocks, {ROUNDS} rounds: ok"
            in done.stdout), (maker, processes, wrap, done)


def it_passes_as_alone(gpus, processes, mebibytes):
    for maker in ("each", "parent", "leaves"):
        with World("--gpus", str(gpus)) as world:
            passes(world, maker, processes, mebibytes)
        for backend in ("auto", "plain", "swap", "managed"):
            with World("--gpus", str(gpus)) as world:
                passes(world, maker, processes, mebibytes, TANDEM, "run", "--backend", backend,
                       "--")
                nothing_is_left(world)


def it_passes_on_one_gpu_that_it_fills():
    it_passes_as_alone(1, 4, 12)
    it_passes_as_alone(1, 2, 28)


def it_passes_on_one_gpu_with_room():
    it_passes_as_alone(1, 3, 2)


def it_passes_on_several_gpus():
    it_passes_as_alone(3, 6, 24)


run_cases([it_passes_on_one_gpu_with_room, it_passes_on_one_gpu_that_it_fills,
           it_passes_on_several_gpus])
