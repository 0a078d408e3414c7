"""tools/check-width holds for the sources and finds each fault.

TAP on stdout; argument: the sources.
"""
import os
import subprocess
import sys
import tempfile

SOURCES = sys.argv[1]


def check(root):
    """(exit status, what was printed)"""
    command = [sys.executable, f"{SOURCES}/tools/check-width", root]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def result_of(files, exceptions=""):
    """What the check prints about a tree of these files; "" when it passes."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**files, "tools/width.txt": exceptions}.items():
            place = os.path.join(root, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w") as f:
                f.write(text)
        status, said = check(root)
        assert status == (said != ""), said
        return said


def finds(fault, files, exceptions=""):
    said = result_of(files, exceptions)
    return fault in said and said.count("\n") == 1


COMMENT = "a comment begins with"
FULL = {f"src/f{number}.c": "" for number in range(25)}
CASES = {
    "the sources keep to the limits": lambda: check(SOURCES) == (0, ""),
    "lines of 100 columns pass": lambda: result_of({"a/a.c": "\t" + "x" * 92 + "\n"}) == "",
    "a line of 101 columns is refused":
        lambda: finds("a/a.c:1: 101 columns", {"a/a.c": "\t" + "x" * 93 + "\n"}),
    "a long line of a script without an ending is refused":
        lambda: finds("a/run:2: 101 columns", {"a/run": "#!/bin/sh\n" + "x" * 101}),
    "a long line of text passes": lambda: result_of({"a/a.txt": "x" * 101}) == "",
    "a fragment in C is refused":
        lambda: finds(f'a/a.h:1: {COMMENT} "What"', {"a/a.h": "int a; /* What a is. */"}),
    "a fragment on the second line of a comment is refused":
        lambda: finds(f'a/a.h:2: {COMMENT} "Else"', {"a/a.h": "/*\n * Else a.\n */"}),
    "a fragment in a script is refused":
        lambda: finds(f'a/a.py:1: {COMMENT} "Of"', {"a/a.py": "# Of these one.\n# Of course.\n"}),
    "a file of 701 lines is refused": lambda: finds("a/a.c: 701 lines", {"a/a.c": "\n" * 701}),
    "25 files in a folder pass": lambda: result_of(FULL) == "",
    "26 files in a folder are refused": lambda: finds("src: 26 files", {**FULL, "src/a.txt": ""}),
    "what is generated passes":
        lambda: result_of({"a/a.c": "x" * 101}, "generated a/a.c\n") == "",
    "a folder that is listed for later passes":
        lambda: result_of({"a/b/a.c": "x" * 101}, "later a/b\n") == "",
    "a folder that is listed without need is refused":
        lambda: finds("nothing is left to do in a", {"a/a.c": "x"}, "later a\n"),
}
print(f"1..{len(CASES)}")
failed = 0
for number, (name, case) in enumerate(CASES.items(), 1):
    good = case()
    failed += not good
    print(f"{'' if good else 'not '}ok {number} - {name}")
    if not good:
        print(check(SOURCES)[1])
sys.exit(failed != 0)
