"""`tandem top`: its output, its screen in a terminal, and its cost to the daemon when nobody reads.
"""
import re
import socket
import struct

from world import *

FOREVER = ["--size", "8m", "--gpu", "5ms", "--cpu", "2ms", "--steps", "1000000"]


def start(world, name, *options):
    return world.start(TANDEM, "run", "--name", name, *options, "--", TRAIN, *FOREVER)


def until_jobs(world, count):
    """So many use the GPU, each by one process."""
    until(lambda: ["gpu" in job for job in world.jobs()] == [True] * count,
          f"{count} jobs are there")


def end_all(*programs):
    for program in programs:
        program.kill()
        program.communicate()


class Terminal:
    """tandem top in a terminal of tmux, with its own server."""

    def __init__(self, world, *arguments, columns=80, lines=24):
        self.environment = dict(world.environment, LC_ALL="C.UTF-8", TERM="screen-256color")
        self.socket = f"{world.directory}/tmux"
        self.tmux("-u", "new-session", "-d", "-x", str(columns), "-y", str(lines), TANDEM, "top",
                  *arguments)

    def tmux(self, *command):
        return subprocess.run(["tmux", "-S", self.socket, *command], env=self.environment,
                              capture_output=True, text=True, timeout=DEADLINE_S)

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p").stdout

    def shows(self, text):
        until(lambda: text in self.screen(), f"the screen shows {text!r}")

    def lacks(self, text):
        until(lambda: text not in self.screen(), f"the screen does not show {text!r}")

    def is_gone(self):
        return self.tmux("has-session").returncode != 0

    def close(self):
        self.tmux("kill-server")


def rounds_are_printed():
    with World() as world:
        first, second = start(world, "one", "--mem", "200m"), start(world, "two")
        until_jobs(world, 2)
        done = world.call(TANDEM, "top", "--batch", "-n", "2", "-d", "200ms", COLUMNS="100",
                          LC_ALL="C.UTF-8")
        assert done.returncode == 0, done
        assert len(re.findall(r"^tandem .* 2 processes", done.stdout, re.M)) == 2, done.stdout
        assert all(len(line) <= 100 for line in done.stdout.splitlines()), done.stdout
        assert re.search(r"^ +0 one .* 200 MiB", done.stdout, re.M), done.stdout
        done = world.call(TANDEM, "top", "--json", "-n", "1", "-d", "200ms")
        got = json.loads(done.stdout)
        assert {j["name"] for j in got["jobs"]} == {"one", "two"} and len(got["gpus"]) == 1, got
        one = next(j for j in got["jobs"] if j["name"] == "one")
        assert one["limit_bytes"] == 200 << 20 and 0 <= one["time_ratio"] <= 1, one
        done = world.call(TANDEM, "top", "--batch", "-n", "1", "-d", "100ms", "--filter", "two")
        # The GPU's own row says who runs there, whatever the filter.
        rows = re.findall(r"^ +0 (\w+) ", done.stdout, re.M)
        assert "two" in rows and "one" not in rows, done.stdout
        end_all(first, second)


def what_is_typed_wrong_is_quoted():
    with World() as world:
        for arguments, quoted in ((["--sort", "colour"], '"colour"'), (["-d", "soon"], "soon"),
                                  (["-n", "0"], "0"), (["extra"], '"extra"'),
                                  (["-d", "1ms"], '"1ms"'), (["--nonsense"], "--nonsense")):
            done = world.call(TANDEM, "top", "--batch", *arguments)
            assert done.returncode == 125 and quoted in done.stderr, (arguments, done)
        done = world.call(TANDEM, "top")
        assert done.returncode == 125 and "--batch" in done.stderr, done
        done = world.call(TANDEM, "top", "--batch")
        assert done.returncode == 125 and "no daemon at" in done.stderr, done
        assert "usage: tandem top" in world.call(TANDEM, "top", "--help").stdout


def keys_do_what_the_help_says():
    with World() as world:
        first, second = start(world, "alpha"), start(world, "beta")
        until_jobs(world, 2)
        terminal = Terminal(world, "--sort", "name", "-d", "200ms")
        try:
            terminal.shows("beta")
            terminal.press("j")
            terminal.press("p")
            until(lambda: [j["state"] for j in json.loads(world.call(TANDEM, "ps", "--json").stdout)
                           if j["name"] == "beta"] == ["paused"], "the job at the cursor is paused")
            until(lambda: re.search(r" beta .*paused", terminal.screen()), "the row says so")
            terminal.press("p")
            until(lambda: [j["state"] for j in json.loads(world.call(TANDEM, "ps", "--json").stdout)
                           if j["name"] == "beta"] != ["paused"], "and goes on")
            terminal.press("x")
            terminal.shows("x again: evict beta")

            def is_evicted():
                """The second key has to come within 4 s of the first."""
                rows = json.loads(world.call(TANDEM, "ps", "--json").stdout)
                if "beta" in {row["name"] for row in rows}:
                    terminal.press("x")
                return [row["name"] for row in rows] == ["alpha"]

            until(is_evicted, "the job at the cursor is evicted")
            second.communicate(timeout=DEADLINE_S)
            second = start(world, "beta")
            terminal.shows("beta")
            terminal.press("/")
            terminal.press("-l", "alp")
            terminal.press("Enter")
            # The GPU's own row says who runs there, whatever the filter.
            until(lambda: re.findall(r"^ +0 (\w+) +besteffort", terminal.screen(), re.M)
                  == ["alpha"], "the table has the one that the filter names")
            terminal.shows("filter: alp")
            terminal.press("Escape")
            terminal.shows("beta")
            terminal.press("h")
            terminal.shows("sort by the next")
            terminal.press("h")
            terminal.lacks("sort by the next")
            terminal.press("e")
            terminal.shows("─────")
            terminal.press("q")
            terminal.lacks("─────")
            terminal.tmux("resize-window", "-x", "150", "-y", "40")
            terminal.shows("CLASS")
            terminal.press("q")
            until(terminal.is_gone, "q quits")
        finally:
            terminal.close()
            end_all(first, second)


def a_daemon_that_ends_is_waited_for():
    with World() as world:
        program = start(world, "alpha")
        until_jobs(world, 1)
        terminal = Terminal(world, "-d", "200ms")
        try:
            terminal.shows("alpha")
            world.call(TANDEM, "stop", "--force")
            terminal.shows("no daemon at")
            world.call(TANDEM, "run", "--", "true")
            terminal.shows("alpha")  # it has come back to the new daemon
        finally:
            terminal.close()
            end_all(program)


def who_does_not_read_costs_nobody_anything():
    """WATCH is asked for and never read: the daemon keeps one round at most and serves others."""
    with World() as world:
        program = start(world, "alpha")
        until_jobs(world, 1)
        silent = []
        for _ in range(8):
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            peer.connect(world.environment["TANDEM_SOCKET"])
            peer.send(struct.pack("<HHIQ", 1, 45, 8, 0))
            silent.append(peer)
        done = world.call(TANDEM, "top", "--json", "-n", "20", "-d", "100ms")
        assert done.returncode == 0 and done.stdout.count('"time_ns"') == 20, done.stderr
        for peer in silent:
            # A round is a few packets: after that time some were kept, and no more.
            peer.setblocking(False)
            packets = 0
            try:
                while peer.recv(4096):
                    packets += 1
            except BlockingIOError:
                pass
            assert 0 < packets < 1000, packets
        end_all(program)


def others_are_shown_as_sums():
    """Of another user's jobs a round has no name and no pid."""
    if os.getuid():
        raise Skip("needs root, to be two users")
    with World() as world:
        os.chmod(world.directory, 0o755)
        program = start(world, "secret-name")
        until_jobs(world, 1)
        done = subprocess.run([TANDEM, "top", "--json", "-n", "1", "-d", "100ms"],
                              env=world.environment, capture_output=True, text=True, user=12345,
                              timeout=DEADLINE_S)
        if "Permission denied" in done.stderr:
            raise Skip("another user cannot reach the build or the socket here")
        assert "secret-name" not in done.stdout, done.stdout
        assert [j["processes"] for j in json.loads(done.stdout)["jobs"]] == [1], done
        end_all(program)


run_cases([
    rounds_are_printed,
    what_is_typed_wrong_is_quoted,
    keys_do_what_the_help_says,
    a_daemon_that_ends_is_waited_for,
    who_does_not_read_costs_nobody_anything,
    others_are_shown_as_sums,
], at_once=3)
