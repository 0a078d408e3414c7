"""Programs whose thread-local storage is larger than a thread's stack. TAP on stdout; argument: the
build."""
from shell import *

LARGE_TLS = f"{BUILD}/tests/integration/tls_shell"


def it_runs_on_the_software_gpu():
    with World() as world:
        a = Shell(world, program=LARGE_TLS)
        memory = a.do("alloc", 30 * MIB)
        a.do("set", memory, 0, 7), a.do("add", memory)
        assert a.do("get", memory, 0) == 8
        a.end()


def it_is_governed_and_gives_way():
    with World() as world:
        a = Shell(world, TANDEM, "run", "--", program=LARGE_TLS)
        memory = a.do("alloc", 30 * MIB)
        a.do("set", memory, 0, 7)
        assert [j["pid"] for j in world.jobs()] == [a.process.pid], world.jobs()
        rival = world.start(TRAIN, "--size", "40m", "--gpu", "5ms", "--cpu", "1ms", "--steps", "12",
                            wrap="swap")
        finish(rival)
        assert any(e["pid"] == a.process.pid for e in world.events("shrunk")), world.events()
        a.do("add", memory)
        assert a.do("get", memory, 0) == 8
        a.end()
        nothing_is_left(world)


run_cases([it_runs_on_the_software_gpu, it_is_governed_and_gives_way])
