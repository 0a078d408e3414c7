"""What programs are told about their memory is the same under the backends plain and swap (answers.c). TAP on stdout; argument: the build."""
import difflib

from world import *

ANSWERS = f"{BUILD}/tests/integration/answers"


def answers(part, *backend):
    with World() as world:
        done = world.call(SOFTGPU, "run", "--", *backend, ANSWERS, part)
        assert done.returncode == 0 and done.stdout, done
        return done.stdout.splitlines()


def under(backend, part):
    return answers(part, TANDEM, "run", "--backend", backend, "--")


def agree(part):
    for backend in ("swap", "auto"):
        plain, other = under("plain", part), under(backend, part)
        assert plain == other, "\n".join(difflib.unified_diff(plain, other, "plain", backend, lineterm=""))


def case(part):
    def run():
        agree(part)

    run.__name__ = f"{part}_are_the_same_under_swap"
    return run


def what_lies_behind_an_allocation_is_another_thing():
    """A copy beyond the end: the one difference that ADR 0023 names. Whole granules further on there is nothing under either."""
    plain, swap = under("plain", "beyond"), under("swap", "beyond")
    assert [line for line in plain if "more" in line or "behind" in line] == [line.split(":")[0] + ": 1" for line in plain if "more" in line or "behind" in line], plain
    differ = {a.split(":")[0].strip() for a, b in zip(plain, swap) if a != b}
    assert differ == {"in, one more", "out, one more", "set, one more", "set behind"}, differ
    assert len(plain) == len(swap)


run_cases([case(part) for part in ("sizes", "pitches", "inside", "attributes", "mappings", "captures", "captures_of_threads", "relaxed_captures", "handles",
                                   "contexts", "whole")] + [what_lies_behind_an_allocation_is_another_thing])
