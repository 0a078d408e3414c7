"""MPS on the software GPU: programs side by side, their shares, faults and deaths, and the
control daemon's commands.

TAP on stdout; arguments: the build, the client program, cases. Times are those of the GPU's model.
"""
import concurrent.futures
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD, CLIENT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SOFTGPU = f"{BUILD}/softgpu/cli/softgpu"
DEADLINE_S = 60
ALL, HALF = 40, 20  # blocks that fill a t4, or half of it
OK, OUT_OF_MEMORY, ILLEGAL_ADDRESS, NOT_SUPPORTED, NO_AFFINITY = 0, 2, 700, 801, 224
CONNECTION_FAILED, RPC_FAILURE, NOT_READY, MAX_CLIENTS, TERMINATED = 805, 806, 807, 808, 810


class Client:
    def __init__(self, mps, **environment):
        self.process = subprocess.Popen([SOFTGPU, "run", "--", CLIENT],
                                        env=dict(mps.environment, **environment),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        mps.clients.append(self)
        self.init = self.answer()[0]

    def answer(self):
        words = self.process.stdout.readline().split()
        assert words, f"the program ended: {self.process.wait()}"
        return [int(w) for w in words]

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def do(self, line):
        self.tell(line)
        return self.answer()

    def ok(self, line):
        result, *more = self.do(line)
        assert result == OK, (line, result)
        return more

    def ready(self):
        assert self.init == OK, self.init
        self.ok("context")
        return self

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(DEADLINE_S)

    def leave(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)


class Mps:
    """A private software GPU; with a control daemon unless told otherwise."""

    def __init__(self, *options, daemon=True, **environment):
        self.options, self.daemon, self.more = options, daemon, environment
        self.clients = []

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="softgpu-mps-")
        self.environment = dict(os.environ, SOFTGPU_DIR=f"{self.directory}/gpu",
                                SOFTGPU_LIB=f"{BUILD}/softgpu/driver",
                                CUDA_MPS_PIPE_DIRECTORY=f"{self.directory}/pipe",
                                CUDA_MPS_LOG_DIRECTORY=f"{self.directory}/log")
        done = self.call(SOFTGPU, "start", "--model", "t4", *self.options)
        assert done.returncode == 0, done
        if self.daemon:
            done = self.call(SOFTGPU, "run", "--", "nvidia-cuda-mps-control", "-d", **self.more)
            assert done.returncode == 0, done
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.process.kill()
            client.process.wait(DEADLINE_S)
        if self.daemon:
            self.command("quit -t 0")
        self.call(SOFTGPU, "stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, *command, stdin="", **environment):
        return subprocess.run(command, env=dict(self.environment, **environment),
                              capture_output=True, text=True, timeout=DEADLINE_S, input=stdin)

    def command(self, line):
        done = self.call(SOFTGPU, "run", "--", "nvidia-cuda-mps-control", stdin=line + "\n")
        return done.stdout.split() if done.returncode == 0 else done.stderr.strip()

    def server(self):
        return int(self.command("get_server_list")[0])

    def await_kernels(self, count):
        until(lambda: f'"kernels": {count},' in self.call(SOFTGPU, "status", "--json").stdout,
              f"{count} kernels have begun")

    def fault(self, *what):
        done = self.call(SOFTGPU, "fault", *what)
        assert done.returncode == 0, done


def until(condition, what):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)


def near(microseconds, ms):
    """A kernel waits for the message about it, which comes late where the machine is busy."""
    return ms * 999 <= microseconds <= ms * 1000 + 60000


def time_of(client, blocks, ms):
    """The least of several times: one of them begins in time."""
    return min(client.ok(f"run {blocks} {ms}")[0] for _ in range(3))


def beside(mps, blocks):
    """How long a kernel of 100 ms takes beside one of a second, and that one beside three."""
    long, short = Client(mps).ready(), Client(mps).ready()
    long.tell(f"run {blocks} 1000")
    mps.await_kernels(2)
    took = time_of(short, blocks, 100)
    result, *more = long.answer()
    assert result == OK
    return took, more[0]


def programs_run_side_by_side_and_faster_than_by_turns():
    with Mps() as mps:
        short, long = beside(mps, HALF)
        assert near(short, 100) and 999000 <= long < 1290000, (short, long)  # by turns 1.3 s
    with Mps(daemon=False) as plain:
        short, long = beside(plain, HALF)
        assert near(short, 200) and long >= 1299000, (short, long)


def programs_that_need_all_sms_get_half_each():
    with Mps() as mps:
        short, long = beside(mps, ALL)
        assert near(short, 200) and long >= 1299000, (short, long)


def shares_are_seen_and_kept():
    with Mps() as mps:
        capped = Client(mps, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="33").ready()
        assert capped.ok("sms") == [12, 12, 1]  # 13.2 in units of 2
        assert near(time_of(capped, ALL, 30), 100)
        assert near(time_of(capped, 12, 30), 30)  # it needs no more
        server = mps.server()
        assert mps.command("get_default_active_thread_percentage") == ["100.0"]
        assert mps.command(f"set_active_thread_percentage {server} 25") == ["25.0"]
        assert mps.command(f"get_active_thread_percentage {server}") == ["25.0"]
        assert capped.ok("sms") == [12, 12, 1]  # for later clients only
        later = Client(mps, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="80").ready()
        assert later.ok("sms") == [10, 10, 1]  # the environment can only narrow
        assert Client(mps, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10").ready().ok("sms") == [4, 4, 1]


def the_default_share_is_for_servers_that_start_later():
    with Mps(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50") as mps:
        assert mps.command("get_default_active_thread_percentage") == ["50.0"]
        first = Client(mps).ready()
        assert first.ok("sms") == [20, 20, 1]
        assert mps.command("set_default_active_thread_percentage 10") == ["10.0"]
        assert Client(mps).ready().ok("sms") == [20, 20, 1]
        mps.command(f"shutdown_server {mps.server()} -f")
        assert Client(mps).ready().ok("sms") == [4, 4, 1]


def memory_limits_are_for_later_clients():
    with Mps(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=2G") as mps:
        assert mps.command("get_default_device_pinned_mem_limit 0") == ["2048M"]
        first = Client(mps).ready()
        assert mps.command("set_default_device_pinned_mem_limit 0 3G") == ["3072M"]
        assert first.do("allocate 1900") == [OUT_OF_MEMORY]  # the context counts
        first.ok("allocate 1500")
        assert mps.command(f"set_device_pinned_mem_limit {mps.server()} 0 1G") == ["1024M"]
        first.ok("allocate 100")
        later = Client(mps, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=4G").ready()
        assert later.do("allocate 1000") == [OUT_OF_MEMORY]  # the environment can only narrow
        later.ok("allocate 500")
        narrow = Client(mps, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=512M").ready()
        assert narrow.do("allocate 500") == [OUT_OF_MEMORY]
        narrow.ok("allocate 100")
        assert "no device 1" in mps.command(f"set_device_pinned_mem_limit {mps.server()} 1 1G")


def contexts_have_sms_of_their_own():
    with Mps() as mps:
        client = Client(mps)
        client.ok("context 15")  # rounded up
        assert client.ok("sms") == [40, 16, 1]
        assert near(time_of(client, ALL, 40), 100)
        mixed = Client(mps, CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING="1",
                       CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50")
        mixed.ok("context")
        assert mixed.ok("sms") == [40, 20, 1]
    with Mps(daemon=False) as plain:
        client = Client(plain)
        assert client.do("context 15") == [NO_AFFINITY]
        client.ok("context")
        assert client.ok("sms") == [40, 0, 0]


def a_fault_reaches_all_of_its_gpu_and_newcomers_are_refused_until_they_are_gone():
    with Mps("--gpus", "2") as mps:
        faulty, other = Client(mps).ready(), Client(mps).ready()
        elsewhere = Client(mps, CUDA_VISIBLE_DEVICES="1").ready()
        other.ok(f"launch {HALF} 60000")
        faulty.ok("fault")
        assert faulty.do("wait") == [ILLEGAL_ADDRESS]
        assert other.do("wait") == [ILLEGAL_ADDRESS]
        server = mps.server()
        assert mps.command(f"get_server_status {server}") == ["FAULT"]
        elsewhere.ok(f"run {HALF} 10")
        assert Client(mps, CUDA_VISIBLE_DEVICES="1").init == NOT_READY
        faulty.leave()
        assert Client(mps).init == NOT_READY
        other.kill()
        until(lambda: mps.command(f"get_server_status {server}") == ["ACTIVE"], "the fault is over")
        Client(mps).ready().ok(f"run {HALF} 10")


def a_client_killed_in_the_middle_hangs_all_until_the_server_is_restarted():
    with Mps() as mps:
        victim, other = Client(mps).ready(), Client(mps).ready()
        server = mps.server()
        victim.ok(f"launch {HALF} 60000")
        mps.await_kernels(1)
        victim.kill(signal.SIGTERM)
        until(lambda: mps.command(f"get_client_list {server}") == [str(other.process.pid)],
              "it is gone")
        assert mps.command(f"get_server_status {server}") == ["ACTIVE"]
        other.tell(f"run {HALF} 1")
        late = Client(mps).ready()
        late.tell(f"run {HALF} 1")
        assert not select.select([other.process.stdout, late.process.stdout], [], [], 0.2)[0]
        mps.command(f"shutdown_server {server} -f")
        assert other.answer()[0] == RPC_FAILURE
        assert late.answer()[0] == RPC_FAILURE
        assert other.do("context") == [RPC_FAILURE]
        Client(mps).ready().ok(f"run {HALF} 10")
        assert mps.server() != server


def exit_and_harmless_deaths_hang_nobody():
    with Mps() as mps:
        other, leaver = Client(mps).ready(), Client(mps).ready()
        leaver.ok(f"launch {HALF} 60000")
        leaver.tell("exit")
        leaver.process.wait(DEADLINE_S)
        other.ok(f"run {HALF} 10")
        idle = Client(mps).ready()
        idle.kill()
        other.ok(f"run {HALF} 10")
        mps.fault("mps-early-exit", "clean")
        victim = Client(mps).ready()
        victim.ok(f"launch {HALF} 60000")
        victim.kill()
        other.ok(f"run {HALF} 10")


def a_terminated_client_may_be_killed():
    with Mps() as mps:
        other, victim = Client(mps).ready(), Client(mps).ready()
        server = mps.server()
        victim.ok(f"launch {HALF} 60000")
        assert "no client" in mps.command(f"terminate_client {server} 1")
        assert mps.command(f"terminate_client {server} {victim.process.pid}") == []
        assert victim.do("wait") == [TERMINATED]
        assert victim.do("context") == [TERMINATED]
        victim.kill()
        other.ok(f"run {HALF} 10")


def the_49th_context_is_refused():
    with Mps() as mps:
        clients = [Client(mps).ready() for _ in range(3)]
        for i in range(45):
            clients[i % 3].ok("context")
        assert clients[0].do("context") == [MAX_CLIENTS]
        clients[1].leave()
        until(lambda: len(mps.command(f"get_client_list {mps.server()}")) == 2, "one is gone")
        clients[0].ok("context")


def handles_are_not_shared_across_the_border():
    with Mps() as mps:
        path = f"{mps.directory}/handle"
        owner = Client(mps).ready()
        owner.ok(f"share {path}")
        Client(mps).ready().ok(f"open {path}")
        outside = Client(mps, CUDA_MPS_PIPE_DIRECTORY=f"{mps.directory}/none").ready()
        assert outside.do(f"open {path}") == [NOT_SUPPORTED]


def the_server_is_listed_instead_of_its_clients():
    with Mps() as mps:
        client = Client(mps).ready()
        text = mps.call(SOFTGPU, "smi").stdout
        assert f" {mps.server()} " in text and f" {client.process.pid} " not in text, text


def gpus_are_those_of_the_daemon():
    with Mps("--gpus", "3", CUDA_VISIBLE_DEVICES="1,2") as mps:
        assert Client(mps).ok("count") == [2]
        assert Client(mps, CUDA_VISIBLE_DEVICES="0").ok("count") == [1]
        assert Client(mps, CUDA_VISIBLE_DEVICES="2").init == 100


def one_daemon_for_a_directory():
    with Mps() as mps:
        done = mps.call(SOFTGPU, "run", "--", "nvidia-cuda-mps-control", "-d")
        assert done.returncode == 1 and "already running" in done.stderr
        with open(f"{mps.directory}/pipe/nvidia-cuda-mps-control.pid") as f:
            os.kill(int(f.read()), 0)
        assert "not a command" in mps.command("do_something")
        assert "there is no MPS server 1" in mps.command("get_server_status 1")
        Client(mps).ready().leave()
        assert mps.command("quit") == []
        assert mps.command("get_server_list") == "Cannot find MPS control daemon process"
        done = mps.call(SOFTGPU, "run", "--", "nvidia-cuda-mps-control", "-d",
                        CUDA_MPS_LOG_DIRECTORY="/proc/none")
        assert done.returncode == 1 and "/proc/none" in done.stderr
        # Without a daemon a program is no client.
        assert Client(mps).ready().ok("sms") == [40, 0, 0]


def refused(mps):
    client = Client(mps)
    client.leave()
    return client.init == NOT_READY


def quit_waits_for_clients_or_for_its_time():
    with Mps() as mps:
        client = Client(mps).ready()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(mps.command, "quit")
            until(lambda: refused(mps), "newcomers are refused")
            assert not waits.done()
            client.ok(f"run {HALF} 10")
            client.leave()
            assert waits.result(DEADLINE_S) == []


def run(number, case):
    if sys.argv[3:] and case.__name__ not in sys.argv[3:]:
        return f"ok {number} - {case.__name__} # SKIP not chosen"
    try:
        case()
        return f"ok {number} - {case.__name__}"
    except (AssertionError, subprocess.TimeoutExpired, concurrent.futures.TimeoutError,
            IndexError) as problem:
        line = problem.__traceback__.tb_next.tb_lineno
        return f"not ok {number} - {case.__name__}\n# line {line}: {problem!r}"


CASES = [programs_run_side_by_side_and_faster_than_by_turns,
         programs_that_need_all_sms_get_half_each, shares_are_seen_and_kept,
         the_default_share_is_for_servers_that_start_later, memory_limits_are_for_later_clients,
         contexts_have_sms_of_their_own,
         a_fault_reaches_all_of_its_gpu_and_newcomers_are_refused_until_they_are_gone,
         a_client_killed_in_the_middle_hangs_all_until_the_server_is_restarted,
         exit_and_harmless_deaths_hang_nobody, a_terminated_client_may_be_killed,
         the_49th_context_is_refused, handles_are_not_shared_across_the_border,
         the_server_is_listed_instead_of_its_clients, gpus_are_those_of_the_daemon,
         one_daemon_for_a_directory, quit_waits_for_clients_or_for_its_time]
print(f"1..{len(CASES)}")
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for result in pool.map(run, range(1, len(CASES) + 1), CASES):
        print(result, flush=True)
