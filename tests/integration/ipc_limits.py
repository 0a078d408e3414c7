"""Hard limits of jobs whose processes share memory by IPC handles, however it is opened, freed and
left. TAP on stdout; argument: the build."""
from shell import *

LIMIT, CONTEXT, BLOCK = 40 * MIB, MIB, 2 * MIB
OUT_OF_MEMORY = 2
BACKENDS = ("plain", "swap")


def of_job(world, job, backend):
    """One more process of that job, like one that a program starts itself. Its context counts by
    then."""
    world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")  # a daemon, which has NVML
    shell = Shell(world, "env", f"LD_PRELOAD={LIBRARY}", f"TANDEM_JOB={job}",
                  f"TANDEM_BACKEND={backend}", f"TANDEM_MEM={LIMIT}")
    until(lambda: [j["overhead_bytes"] for j in world.jobs() if j["pid"] == shell.process.pid] == [
              CONTEXT], "its context is counted")
    return shell


def fill(world, shell, jobs=1, is_new=False):
    """Takes all that it gets, gives it back and returns the number of blocks. All jobs together
    stay within their limits meanwhile. is_new: memory that is open counts before NVML has shown its
    owner, but nobody waits for that for more than a second (docs/decisions/0009)."""
    blocks, began = [], time.monotonic()
    while True:
        result, block = shell.ask("alloc", BLOCK)
        if result:
            break
        blocks.append(block)
    waited = is_new and time.monotonic() - began >= 1
    status = world.status()
    assert result == OUT_OF_MEMORY, result
    # While a process allocates without a pause its context may not be charged
    # (docs/decisions/0007).
    assert (waited
            or status["plain_bytes"]
            <= jobs * LIMIT
            + status["contexts"]
            * CONTEXT), f"{status['plain_bytes'] / MIB} MiB of {jobs * LIMIT / MIB}"
    for block in blocks:
        shell.do("free", block)
    return len(blocks)


def counted(world, job):
    return sum(j["demanded_bytes"] + j["overhead_bytes"] for j in world.jobs() if j["job"] == job)


def is_told(world, owner, backend, bytes=0):
    """Checks the rest of it where tandem does not make the handles: there a free ends the owner's
    memory."""
    until(lambda: backend == "swap" or demanded(world, owner) == bytes, "the free is told")


def fills(world, shell, bytes_left, job="one", jobs=1):
    """Checks that it gets what its job's limit leaves, as soon as NVML has shown all owners, and no
    more."""
    until(lambda: counted(world, job) == LIMIT - bytes_left, f"{bytes_left / MIB} MiB are left")
    got = fill(world, shell, jobs)
    assert (bytes_left // BLOCK <= got
            <= (bytes_left + 2 * CONTEXT) // BLOCK), (bytes_left / MIB, got)


def shared(world, owner, importer, bytes=16 * MIB):
    mine = owner.do("alloc", bytes)
    owner.do("set", mine, 0, 41)
    handle = owner.do("export", mine)
    theirs = importer.do("open", handle)
    assert importer.do("get", theirs, 0) == 41
    return mine, handle, theirs


def what_is_opened_twice_counts_once_until_it_is_closed_twice():
    for backend in BACKENDS:
        with World("--memory", "256m") as world:
            a, b = (of_job(world, "one", backend) for _ in range(2))
            mine, handle, first = shared(world, a, b)
            second = b.do("open", handle)
            b.do("add", second)
            fills(world, b, LIMIT - 2 * CONTEXT - 16 * MIB)
            fills(world, a, LIMIT - 2 * CONTEXT - 16 * MIB)
            b.do("close", first)
            assert b.do("get", second, 0) == 42
            a.do("free", mine)
            # cuda.h leaves the read undefined, except for tandem's own handles.
            assert backend == "plain" or b.do("get", second, 0) == 42, "it has been closed once"
            fill(world, b, is_new=True)
            is_told(world, a, backend)
            fills(world, b, LIMIT - 2 * CONTEXT - 16 * MIB)
            b.do("close", second)
            fills(world, b, LIMIT - 2 * CONTEXT)
            fills(world, a, LIMIT - 2 * CONTEXT)
            a.end(), b.end()
            nothing_is_left(world)


def what_was_freed_cannot_be_opened_and_counts_nowhere():
    for backend in BACKENDS:
        with World("--memory", "256m") as world:
            a, b = (of_job(world, "one", backend) for _ in range(2))
            for _ in range(5):
                mine = a.do("alloc", 16 * MIB)
                handle = a.do("export", mine)
                a.do("free", mine)
                for _ in range(3):
                    assert b.ask("open", handle)[0]
            fills(world, b, LIMIT - 2 * CONTEXT)
            fills(world, a, LIMIT - 2 * CONTEXT)
            a.end(), b.end()
            nothing_is_left(world)


def who_has_it_open_as_its_owner_is_killed_has_it_in_its_own_limit():
    for backend in BACKENDS:
        for jobs in (("one", "one"), ("one", "other")):
            with World("--memory", "256m") as world:
                a, b = (of_job(world, job, backend) for job in jobs)
                mine, handle, theirs = shared(world, a, b)
                a.kill()
                until(lambda: len(world.jobs()) == 1, "it is gone")
                fill(world, b, is_new=True)
                stays = b.ask("get", theirs, 0) == (0, "41")
                assert stays or backend == "plain"
                fills(world, b, LIMIT - CONTEXT - (16 * MIB if stays else 0), jobs[1])
                b.do("close", theirs)
                fills(world, b, LIMIT - CONTEXT, jobs[1])
                b.end()
                nothing_is_left(world)


def a_killed_importer_leaves_its_owner_what_it_had():
    for backend in BACKENDS:
        for jobs in (("one", "one"), ("one", "other")):
            with World("--memory", "256m") as world:
                a, b = (of_job(world, job, backend) for job in jobs)
                mine, handle, theirs = shared(world, a, b)
                b.do("open", handle)
                b.kill()
                until(lambda: len(world.jobs()) == 1, "it is gone")
                assert a.do("get", mine, 0) == 41
                fills(world, a, LIMIT - CONTEXT - 16 * MIB)
                a.do("free", mine)
                fills(world, a, LIMIT - CONTEXT)
                a.end()
                nothing_is_left(world)


def an_importer_that_is_killed_after_its_owner_has_freed_it_leaves_nothing():
    for backend in BACKENDS:
        with World("--memory", "256m") as world:
            a, b = (of_job(world, "one", backend) for _ in range(2))
            mine, _, _ = shared(world, a, b)
            a.do("free", mine)
            fill(world, a, is_new=True)
            is_told(world, a, backend)
            fills(world, a, LIMIT - 2 * CONTEXT - 16 * MIB)
            b.kill()
            until(lambda: len(world.jobs()) == 1, "it is gone")
            fills(world, a, LIMIT - CONTEXT)
            a.end()
            nothing_is_left(world)


def of_two_hundred_handles_each_leads_to_its_memory_and_all_count_once():
    count, size = 200, 64 << 10
    for backend in BACKENDS:
        with World("--memory", "256m") as world:
            a, b = (of_job(world, "one", backend) for _ in range(2))
            mine = [a.do("alloc", size) for _ in range(count)]
            for i, block in enumerate(mine):
                a.do("set", block, 0, 1000 + i)
            handles = [a.do("export", block) for block in mine]
            assert len(set(handles)) == count
            theirs = [b.do("open", handle) for handle in handles]
            again = [b.do("open", handle) for handle in handles[::7]]
            assert [b.do("get", block, 0) for block in theirs] == [1000 + i for i in range(count)]
            assert ([b.do("get", block, 0) for block in again]
                    == [1000 + i for i in range(0, count, 7)])
            # Blocks of 64 KiB lie in larger ones.
            until(lambda: counted(world, "one") >= 2 * CONTEXT + count * size, "they count")
            for shell in (b, a):
                assert ((LIMIT - 2 * CONTEXT - 2 * count * size) // BLOCK <= fill(world, shell)
                        <= (LIMIT - 2 * CONTEXT - count * size) // BLOCK)
            for block in mine[::2]:
                a.do("free", block)
            assert ([b.do("get", block, 0) for block in theirs[1::2]]
                    == [1000 + i for i in range(1, count, 2)])
            assert (backend == "plain"
                    or [b.do("get", block, 0) for block in theirs]
                    == [1000 + i for i in range(count)])
            is_told(world, a, backend, count // 2 * size)
            until(lambda: counted(world, "one") >= 2 * CONTEXT + count * size,
                  "what is open counts")
            fill(world, b), fill(world, a)
            for block in theirs + again:
                b.do("close", block)
            for block in mine[1::2]:
                a.do("free", block)
            fills(world, b, LIMIT - 2 * CONTEXT)
            fills(world, a, LIMIT - 2 * CONTEXT)
            a.end(), b.end()
            nothing_is_left(world)


run_cases([
    what_is_opened_twice_counts_once_until_it_is_closed_twice,
    what_was_freed_cannot_be_opened_and_counts_nowhere,
    who_has_it_open_as_its_owner_is_killed_has_it_in_its_own_limit,
    a_killed_importer_leaves_its_owner_what_it_had,
    an_importer_that_is_killed_after_its_owner_has_freed_it_leaves_nothing,
    of_two_hundred_handles_each_leads_to_its_memory_and_all_count_once,
])
