"""Programs are moved between GPUs at random, by the library and by the driver, checkpointed and
restored, while program, daemon, helper or who asked is killed at each stage. Every word of every
program has to be right, in the order of its work, and nothing may be left. TAP on stdout; argument:
the build.

TANDEM_MOVES: how many orders in all (60); TANDEM_MOVES_SEED: of what, and when.
"""
import collections
import glob
import os
import random
import socket
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../integration")
sys.path.insert(0, f"{HERE}/../integration/cudart")
from migrate_program import Program  # noqa: E402
from world import *  # noqa: E402,F403

ORDERS = int(os.environ.get("TANDEM_MOVES", "60"))
SEED = int(os.environ.get("TANDEM_MOVES_SEED", "1"))
ROUND = 30  # orders until all end and nothing may be left
# Most are moved by the library, the others by the driver, or by nobody.
KINDS = ("", "", "", "", "", "graph", "array", "variable", "pool", "vmm", "pinned", "managed",
         "two")
STAYS = ("managed", "two")
ACT, ACTED, PING = 46, 47, 55
VERBS = {"migrate": 2, "checkpoint": 7, "restore": 8}
MOVES = ("migrate",) * 7
STATES = ("asked", "running", "done", "refused", "timed out")
# The stages as the daemon tells them: a move is prepared, finds room, closes its gate, and goes.
STAGES = ("asked", "running", "it is prepared", "its gate closes", "its memory moves")
VICTIMS = ("program", "daemon", "helper", "asker") + ("nobody",) * 8
# The reasons for which an order may be refused; any other is a failure.
FITTING = ("did not end in time", "is moving already", "it is on that GPU", "found no room",
           "it is checkpointed", "it is not checkpointed", "has ended", "has room for",
           "the driver is at it already", "unified memory", "several GPUs", "is gone", "no longer",
           "it is moving to another GPU", "the helper was ended", "it is checkpointed already",
           "given up its context", "not ready to move in time", "no GPU of this node",
           "uses no GPU yet", "is no job", "try tandem restore", "no context could be made",
           "did not return in time", "two contexts", "it does not say that it has moved")


def text(words):
    return struct.pack("<H", len(words)) + words.encode()


def text_at(body, at):
    end = at + 2 + struct.unpack_from("<H", body, at)[0]
    return body[at + 2:end].decode(), end


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def helpers_of(daemon):
    """The processes that make the driver's calls for this daemon."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f, open(path.replace("cmdline", "stat")) as stat:
                if b"--checkpoint" in f.read() and (
                        int(stat.read().rsplit(")", 1)[1].split()[1]) == daemon):
                    found.append(int(path.split("/")[2]))
        except (OSError, ValueError):
            pass
    return found


class Order:
    """One order, and whom it costs the life at which stage."""

    def __init__(self, stress, program):
        chance = stress.chance
        self.stress, self.program = stress, program
        self.verb = "restore" if program.parked else chance.choice(("checkpoint", *MOVES))
        self.gpu = str(chance.randrange(stress.gpus)) if self.verb == "migrate" else ""
        self.victim = chance.choice(VICTIMS)
        self.stage = chance.choice(STAGES)
        self.delay = chance.random() ** 3 / 50
        self.seen, self.struck = [], False

    def __str__(self):
        return (f"{self.verb} {self.gpu} of {self.program.kind or 'plain'} {self.program.pid()}: "
                f"{self.victim} at {self.stage}, {self.seen}")

    def strike(self, sock):
        world = self.stress.world
        if self.struck or self.victim == "nobody":
            return
        self.struck = True
        time.sleep(self.delay)
        if self.victim == "program":
            os.kill(self.program.pid(), signal.SIGKILL)
            self.program.killed = True
        elif self.victim == "daemon":
            os.kill(world.daemon_pid(), signal.SIGKILL)
        elif self.victim == "helper":
            for pid in helpers_of(world.daemon_pid()):
                os.kill(pid, signal.SIGKILL)
        else:
            sock.shutdown(socket.SHUT_RDWR)
        self.stress.counts[f"{self.victim} killed at \"{self.seen[-1]}\""] += 1

    def act(self):
        """Returns the last state and its reason; None if nobody could say."""
        last, end = None, time.monotonic() + DEADLINE_S
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
                sock.settimeout(DEADLINE_S)
                sock.connect(self.stress.world.environment["TANDEM_SOCKET"])
                body = text(str(self.program.pid())) + bytes([VERBS[self.verb]]) + text(self.gpu)
                sock.send(struct.pack("<HHI", 1, ACT, len(body)) + body)
                while packet := sock.recv(65536):
                    if struct.unpack_from("<H", packet, 2)[0] != ACTED:
                        return last
                    state = STATES[packet[17]]
                    reason = text_at(packet, text_at(packet, text_at(packet, 18)[1])[1])[0]
                    last = state, reason
                    self.seen.append(reason if state == "running" and reason else state)
                    if self.stage in self.seen:
                        self.strike(sock)
                    assert time.monotonic() < end, f"it goes on for ever: {self}"
        except TimeoutError as problem:
            raise AssertionError(f"nobody says how it ended: {self}") from problem
        except OSError:
            return None
        return last


class Stress:
    def __init__(self):
        self.chance = random.Random(SEED)
        self.counts = collections.Counter()
        self.world, self.gpus, self.number = None, 0, 0

    def start(self, kind=None):
        self.number += 1
        kind = self.chance.choice(KINDS) if kind is None else kind
        program = Program(self.world, self.chance.randrange(1 << 30), 1 + self.chance.randrange(2),
                          kind)
        program.kind, program.parked, program.killed = kind, False, False
        return program

    def order(self, program, order=None):
        order = order or Order(self, program)
        last = order.act()
        if order.victim == "daemon" and order.struck:
            # Starts another one, which has to find all programs again.
            self.world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true")
        if last:
            state, reason = last
            self.counts[f"{order.verb} {state}"] += 1
            if state == "done" and "by the driver" in reason:
                self.counts["moved by the driver"] += 1
            if state not in ("done", "asked", "running"):
                fitting = [words for words in FITTING if words in reason]
                assert fitting, (str(order), reason)
                self.counts[f"refused: {fitting[0]}"] += 1
        if program.killed:
            program.process.communicate(timeout=DEADLINE_S)
            return False
        self.find_state(program)
        return True

    def find_state(self, program):
        """Whether it is off the GPU, as the daemon says; else it has to go on."""
        seen = program.turns()

        def is_parked():
            return "checkpointed" in [job["state"] for job in self.world.jobs()
                                      if job["pid"] == program.pid()]
        # An order whose asker was killed may still be under way.
        until(lambda: program.turns() > seen + 2 or program.process.poll() is not None
              or is_parked(), f"{program.pid()} goes on, or is checkpointed")
        program.lives()
        program.parked = program.turns() <= seen + 2

    def end(self, program):
        if program.parked:
            until(lambda: program.pid() in [job["pid"] for job in self.world.jobs()],
                  f"a daemon that was started anew knows {program.pid()}")
            done = self.world.call(TANDEM, "restore", str(program.pid()))
            # A restore whose asker was killed may have been under way.
            assert done.returncode == 0 or "it is not checkpointed" in done.stderr, done
        program.goes_on()
        self.move(program)
        program.end()

    def move(self, program):
        """Whatever died before, it can still move."""
        if program.kind in STAYS:
            return
        for _ in tries(50, lambda: f"{program.kind or 'plain'} {program.pid()} moves: {done}"):
            until(program.gpu, f"{program.pid()} is known")
            done = program.move(self.chance.randrange(self.gpus))
            program.lives()
            if done.returncode == 0:
                break
        program.goes_on()

    def round(self, orders):
        self.gpus = self.chance.choice((2, 3, 4))
        with World("--gpus", str(self.gpus)) as self.world:
            programs = [self.start(), self.start()]
            for _ in range(orders):
                program = self.chance.choice(programs)
                if not self.order(program):
                    programs[programs.index(program)] = self.start()
            for program in programs:
                self.end(program)
            nothing_is_left(self.world)


def programs_live_through_everything():
    stress = Stress()
    left = ORDERS
    while left > 0:
        stress.round(min(ROUND, left))
        left -= ROUND
        say(f"# {ORDERS - max(left, 0)} orders: "
            + ", ".join(f"{n} {what}" for what, n in sorted(stress.counts.items())))


def a_death_at_each_stage_is_in_nobodys_way():
    stress = Stress()
    stress.gpus = 2
    with World("--gpus", "2") as stress.world:
        for kind in ("", "graph"):
            program = stress.start(kind)
            for victim in ("program", "daemon", "helper", "asker"):
                for stage in STAGES:
                    order = Order(stress, program)
                    order.verb, order.victim, order.stage, order.delay = "migrate", victim, stage, 0
                    until(program.gpu, f"{program.pid()} is known")
                    order.gpu = str(1 - program.gpu()[0])
                    if not stress.order(program, order):
                        program = stress.start(kind)
                    elif program.parked:
                        raise AssertionError(f"it is checkpointed: {order}")
                    stress.move(program)
            stress.end(program)
        nothing_is_left(stress.world)
    say("# " + ", ".join(f"{n} {what}" for what, n in sorted(stress.counts.items())))


run_cases([a_death_at_each_stage_is_in_nobodys_way, programs_live_through_everything])
