"""Programs whose host runs out of memory inside libtandem, at each place once. TAP on stdout;
argument: the build."""
from world import *

FAULTY = f"{BUILD}/tests/integration/libtandem_faulty.so"
PROGRAMS = f"{BUILD}/tests/integration"
MIB = 1 << 20
MEMORY = f"""alloc {6 * MIB}
alloc 1000
alloc 3000
set 0 5 50
set 1 5 51
set 2 5 52
add 0
get 0 0
get 0 5
get 1 5
get 2 5
range 1
sync_memops 1
free 1
alloc {9 * MIB}
set 3 7 57
get 3 7
free 0
free 2
free 3
used
"""


def run(world, command, backend, fault, text, log):
    return subprocess.run([SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--",
                           *command], input=text, capture_output=True, text=True,
                          timeout=DEADLINE_S,
                          env=dict(world.environment, TANDEM_LIB=FAULTY,
                                   TANDEM_TEST_FAULT=str(fault), TANDEM_TEST_FAULT_LOG=log))


def most_requests(log):
    with open(log) as f:
        return max(int(line) for line in f)


def goes_on(command, text=None, backends=("swap", "plain"), says=lambda done: done.stdout):
    for backend in backends:
        with World() as world:
            log = f"{world.directory}/requests"
            well = run(world, command, backend, 0, text, log)
            assert well.returncode == 0, well
            last, hurt = most_requests(log), []
            assert last > 0, last
            for fault in range(1, last + 1):
                done = run(world, command, backend, fault, text, log)
                if done.returncode or says(done) != says(well):
                    hurt.append((backend, fault, done.returncode, done.stdout[-300:],
                                 done.stderr[-300:]))
            assert not hurt, "\n".join(f"of {last}: {case}" for case in hurt)
            nothing_is_left(world)


def a_training_goes_on():
    goes_on([TRAIN, "--size", "8m", "--gpu", "1ms", "--cpu", "1ms", "--steps", "2"],
            says=lambda done: json.loads(done.stdout)["checksum"] if done.stdout else None)


def memory_large_and_small_goes_on():
    goes_on([f"{PROGRAMS}/memory_shell"], MEMORY)


def no_graph_has_failed(done):
    return json.loads(done.stdout)["failed"] if done.stdout else None


def graphs_go_on():
    goes_on([f"{PROGRAMS}/graph_test", "anew", str(2 * MIB), "3"], "\n", ("swap",),
            no_graph_has_failed)


def modules_go_on():
    """How many fit may differ: what is not known of is not counted."""
    for kind in ("file", "packed"):
        goes_on([f"{PROGRAMS}/module_test", kind, str(24 * MIB)], "\n", ("swap",),
                lambda done: None)


def shared_memory_goes_on():
    """Of two processes that fit beside each other whatever is counted."""
    for maker in ("each", "leaves"):
        goes_on([f"{PROGRAMS}/ring_test", maker, "2", str(4 * MIB), "2"], backends=("swap",))


run_cases([a_training_goes_on, memory_large_and_small_goes_on, graphs_go_on, modules_go_on,
           shared_memory_goes_on])
