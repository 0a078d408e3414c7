"""softgpu smi: the table's shape, the fields, and refusals. TAP on stdout; argument: the build."""
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
SOFTGPU = f"{BUILD}/softgpu/cli/softgpu"


class Server:
    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="softgpu-smi-")
        self.environment = dict(os.environ, SOFTGPU_DIR=f"{self.temporary.name}/gpu",
                                SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        assert self.softgpu("start", "--gpus", "2").returncode == 0
        return self

    def __exit__(self, *_):
        self.softgpu("stop")
        self.temporary.cleanup()

    def softgpu(self, *arguments):
        return subprocess.run([SOFTGPU, *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=180)

    def smi(self, *arguments):
        done = self.softgpu("smi", *arguments)
        assert done.returncode == 0, done
        return done.stdout


def the_table_is_even_and_names_each_gpu():
    with Server() as server:
        lines = server.smi().splitlines()
        assert {len(line) for line in lines[1:] if line} == {91}, lines
        assert (sum("softgpu tiny" in line for line in lines) == 2
                and any("No running processes found" in line for line in lines)), lines
        assert "NVIDIA-SMI" not in lines[2], lines  # it is not one


def fields_are_printed_in_the_order_asked_for():
    with Server() as server:
        head, *rows = server.smi(
                "--query-gpu=index,memory.total,utilization.gpu,temperature.gpu,fan.speed",
                "--format=csv").splitlines()
        assert (head
                == "index, memory.total [MiB], utilization.gpu [%], temperature.gpu, fan.speed "
                "[%]"), head
        assert ([row.split(", ")[:3] for row in rows]
                == [["0", "64 MiB", "0 %"], ["1", "64 MiB", "0 %"]]), rows
        assert (server.smi("--query-gpu=index,memory.used", "--format=csv,noheader,nounits", "-i",
                           "1")
                == "1, 0\n")
        uuid = server.smi("--query-gpu=uuid", "--format=csv,noheader").splitlines()[1]
        assert server.smi("-L", "-i", uuid) == f"GPU 1: softgpu tiny (UUID: {uuid})\n"
        assert (server.smi("--query-compute-apps=pid,used_memory", "--format=csv")
                == "pid, used_memory [MiB]\n")
        details = server.smi("-q", "-i", "0")
        assert (details.count("\nGPU 0000") == 1
                and "Product Name                          : softgpu tiny" in details), details


def what_is_not_there_is_refused_by_name():
    with Server() as server:
        for arguments, quoted in ((["--query-gpu=nonsense", "--format=csv"], "nonsense"),
                                  (["--query-gpu=index"], "--format"), (["-i", "7"], '"7"'),
                                  (["--bogus"], "--bogus"),
                                  (["--query-gpu=index", "--format=xml"], "xml")):
            done = server.softgpu("smi", *arguments)
            assert done.returncode != 0 and quoted in done.stderr, done


def fields_are_listed_with_their_units():
    with Server() as server:
        listed = server.smi("--help-query-gpu")
        assert ('"memory.used" [MiB]' in listed and '"uuid" or "gpu_uuid"\n' in listed
                and '"utilization.gpu" [%]' in listed), listed
        names = [line.split('"')[1] for line in listed.splitlines()[1:]]
        assert len(names) > 20, names
        heads = server.smi(f"--query-gpu={','.join(names)}", "--format=csv,nounits").splitlines()[0]
        assert heads == ", ".join(names), heads
        assert '"used_gpu_memory" or "used_memory" [MiB]' in server.smi("--help-query-compute-apps")


def a_lost_gpu_says_so_and_the_other_goes_on():
    with Server() as server:
        assert server.softgpu("fault", "--gpu", "1", "lost").returncode == 0
        table = server.smi()
        lines = table.splitlines()
        assert {len(line) for line in lines[1:] if line} == {91}, lines
        assert table.count("ERR!") == 9 and "0MiB /     64MiB" in table, table
        rows = server.smi("--query-gpu=index,memory.used,utilization.gpu,power.draw",
                          "--format=csv,noheader").splitlines()
        assert (rows[0].startswith("0, 0 MiB, 0 %, ")
                and rows[1] == "1, [GPU is lost], [GPU is lost], [GPU is lost]"), rows
        details = server.smi("-q", "-i", "1")
        assert "GPU is lost" in details and "FB Memory" not in details, details


def too_little_memory_says_how_much_is_needed():
    with tempfile.TemporaryDirectory(prefix="softgpu-smi-") as directory:
        done = subprocess.run([SOFTGPU, "start", "--model", "h100", "--memory", "1g"],
                              env=dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu"),
                              capture_output=True, text=True, timeout=180)
        assert done.returncode == 125 and "h100" in done.stderr and "at least" in done.stderr, done
        least = done.stderr.split("at least ")[1].split(",")[0].replace("iB", "").replace(
                " ", "").lower()
        again = subprocess.run([SOFTGPU, "start", "--model", "h100", "--memory", least],
                               env=dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu"),
                               capture_output=True, text=True, timeout=180)
        assert again.returncode == 0, (least, again)
        subprocess.run([SOFTGPU, "stop"], env=dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu"),
                       check=True, timeout=180)


def no_memory_at_all_is_refused():
    with tempfile.TemporaryDirectory(prefix="softgpu-smi-") as directory:
        done = subprocess.run([SOFTGPU, "start", "--memory", "0"],
                              env=dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu"),
                              capture_output=True, text=True, timeout=180)
        assert done.returncode == 125 and "0 B" in done.stderr and "at least" in done.stderr, done


def without_a_server_it_says_so():
    with tempfile.TemporaryDirectory(prefix="softgpu-smi-") as directory:
        done = subprocess.run([SOFTGPU, "smi"],
                              env=dict(os.environ, SOFTGPU_DIR=directory,
                                       SOFTGPU_LIB=f"{BUILD}/softgpu/driver"), capture_output=True,
                              text=True, timeout=180)
        assert done.returncode != 0 and "softgpu start" in done.stderr, done


CASES = [fields_are_listed_with_their_units, a_lost_gpu_says_so_and_the_other_goes_on,
         too_little_memory_says_how_much_is_needed, no_memory_at_all_is_refused,
         the_table_is_even_and_names_each_gpu, fields_are_printed_in_the_order_asked_for,
         what_is_not_there_is_refused_by_name, without_a_server_it_says_so]
print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}")
    except (AssertionError, subprocess.TimeoutExpired) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "))
