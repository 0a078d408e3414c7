"""Stops the processes of a process group by a frozen control group, where those can be made."""
import errno
import os
import time

GONE_S = 10
MOVED_S = 60  # they may fork meanwhile

# In one of version 1 nothing could be killed.
ROOTS = {"/sys/fs/cgroup": "cgroup.freeze", "/sys/fs/cgroup/unified": "cgroup.freeze"}


def find_root():
    """A hierarchy whose groups can be made and frozen; None: there is none."""
    for root, file in ROOTS.items():
        group = f"{root}/tandem-stress-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        found = os.path.exists(f"{group}/{file}")
        os.rmdir(group)
        if found:
            return root
    return None


ROOT = find_root()


def write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


class Frozen:
    """Those of the process group that are there now, and what they fork; thaw() lets them go on."""

    def __init__(self, pids):
        self.group = f"{ROOT}/tandem-stress-{os.getpid()}-{pids[0]}"
        os.mkdir(self.group)
        for pid in pids:
            self.move(pid, self.group)
        write(f"{self.group}/cgroup.freeze", 1)

    def thaw(self):
        write(f"{self.group}/cgroup.freeze", 0)
        end = time.monotonic() + MOVED_S
        while pids := self.members():
            assert time.monotonic() < end, f"never out of {self.group}: {pids}"
            for pid in pids:
                self.move(pid, ROOT)
        self.remove()

    def remove(self):
        """A process that has just ended is no member any more, but keeps the group for a moment."""
        end = time.monotonic() + GONE_S
        while True:
            try:
                return os.rmdir(self.group)
            except OSError as problem:
                if problem.errno != errno.EBUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def members(self):
        """But for those that are dead already."""
        with open(f"{self.group}/cgroup.procs") as f:
            return f.read().split()

    @staticmethod
    def move(pid, group):
        try:
            write(f"{group}/cgroup.procs", pid)
        except ProcessLookupError:
            pass
