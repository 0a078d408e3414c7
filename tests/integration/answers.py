"""Programs get the same answers about their memory under the backends plain and swap (answers.c).
TAP on stdout; argument: the build."""
import difflib
import re

from world import *

ANSWERS = f"{BUILD}/tests/integration/answers"


COPIES = [f"{BUILD}/tests/integration/copies"]


def said(program, backend):
    with World() as world:
        done = world.call(SOFTGPU, "run", "--", TANDEM, "run", "--backend", backend, "--", *program)
        assert done.returncode == 0 and done.stdout, done
        return done.stdout.splitlines()


def assert_same(plain, other, backend):
    assert (plain
            == other), "\n".join(difflib.unified_diff(plain, other, "plain", backend, lineterm=""))


def agree(part):
    plain = said([ANSWERS, part], "plain")
    for backend in ("swap", "auto"):
        assert_same(plain, said([ANSWERS, part], backend), backend)


def case(part):
    def run():
        agree(part)

    run.__name__ = f"{part}_are_the_same_under_swap"
    return run


def every_copy_and_set_is_held_to_its_allocation():
    plain = said(COPIES, "plain")
    results = {}
    for line in plain:
        if line[0] != " ":
            form, size, span, result = re.fullmatch(r"(\w+) (\d+) (.*): (\d+)", line).groups()
            results.setdefault(span, set()).add((form, int(result)))
    assert len(results["all"]) > 90, results["all"]
    refused = {form for form, result in results["all"] if result}
    assert refused == {"waiting_copy", "waiting_rows"}, refused  # they are within a capture
    for span in ("four more", "four too late", "behind", "far behind", "more than there can be"):
        assert all(result for _, result in results[span]), results[span]
    for backend in ("swap", "auto"):
        assert_same(plain, said(COPIES, backend), backend)


run_cases([case(part)
           for part
           in ("sizes", "pitches", "inside", "beyond", "attributes", "mappings", "captures",
               "captures_of_threads", "relaxed_captures", "handles", "contexts", "whole")]
          + [every_copy_and_set_is_held_to_its_allocation])
