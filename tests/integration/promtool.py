"""Prometheus' own checker, for the tests of metrics."""
import os
import shutil
import subprocess

from world import DEADLINE_S, Skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def promtool(*arguments, **extra):
    """Calls it; it is in the path, or where scripts/test puts it."""
    found = shutil.which("promtool") or f"{ROOT}/build-promtool/usr/bin/promtool"
    if not os.path.exists(found):
        raise Skip("promtool is not here: scripts/test fetches Debian's")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, timeout=DEADLINE_S,
                          **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
