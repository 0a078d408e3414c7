"""Invalid input on every command line: each option names itself, quotes the value and states what
is expected. Output for people is complete. TAP on stdout; argument: the build."""
import contextlib
import ctypes
import fcntl
import json
import pty
import re
import struct
import sys
import tempfile
import termios

from shell import MIB, Shell
from world import *

NONSENSE = ("-1", "9e99Gi", "50%%", "", " 5", "99999999999999999999", "1.5.5")


def refused(world, *command, quoted, expected=()):
    done = world.call(*command)
    said = done.stderr.strip()
    assert done.returncode and not done.stdout, (command, done)
    assert (f'"{quoted}"' in said and "expected" in said
            and len(said.splitlines()) == 1), (command, said)
    assert all(text in said for text in expected), (command, said)


def options_of_run_quote_what_they_refuse_and_say_what_they_take():
    bounds = {"--mem": "from 1 byte to", "--mem-soft": "from 1 byte to",
              "--duty": "from 1% to 100%", "--slack": "from 0.1% to 100%",
              "--weight": "from 1 to 1000", "--gpu": "any:N", "--class": "besteffort",
              "--upgrade": "none", "--backend": "managed"}
    with World() as world:
        for option, bound in bounds.items():
            for value in NONSENSE:
                refused(world, SOFTGPU, "run", "--", TANDEM, "run", option, value, "--", "true",
                        quoted=value, expected=(f"{option}: ", bound))
        refused(world, TANDEM, "run", "--name", "", "--", "true", quoted="", expected=("--name: ",))
        refused(world, SOFTGPU, "run", "--", TANDEM, "run", "--gpu", "any:7", "--", "true",
                quoted="7", expected=("from 1 to 1",))
        refused(world, SOFTGPU, "run", "--", TANDEM, "run", "--gpu", "0,,1", "--", "true",
                quoted="0,,1", expected=("comma",))
        for words, quoted in ((["-xy"], "-x"), (["--frob"], "--frob"), (["--mem"], "--mem")):
            done = world.call(TANDEM, "run", *words)
            assert done.returncode == 125 and f'"{quoted}"' in done.stderr, done


def varint(number):
    low = bytes((number & 127 | (128 if number > 127 else 0),))
    return low + varint(number >> 7) if number > 127 else low


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def layers_of_an_onnx_file_are_shown_and_go_with_the_program():
    graph = b"".join(field(1, field(1, "x") + field(2, "y") + field(4, operator))
                     for operator in ("Conv", "Relu", "Conv", "Flatten", "Gemm", "Add"))
    with World() as world, tempfile.TemporaryDirectory() as folder:
        path, other = f"{folder}/model.onnx", f"{folder}/other.onnx"
        with open(path, "wb") as model:
            model.write(field(1, 8) + field(7, graph))
        with open(other, "wb") as model:
            model.write(b"this is no model")
        text = world.call(TANDEM, "layers", path).stdout
        assert re.search(r"^convolution +2 ", text, re.M) and "2,0,1,0,0,0,1,0,1,0,0" in text, text
        rows = json.loads(world.call(TANDEM, "layers", "--json", path).stdout)
        assert len(rows) == 11 and rows[0] == {"kind": "convolution", "layers": 2}, rows
        for value in (path, "2,0,1,0,0,0,1,0,1,0,0"):
            done = world.call(TANDEM, "run", "--layers", value, "--", "printenv", "TANDEM_LAYERS")
            assert done.stdout == "2,0,1,0,0,0,1,0,1,0,0\n", done
        for command in (("layers",), ("run", "--layers")):
            refused(world, TANDEM, *command, other, quoted=other, expected=("ONNX",))
            refused(world, TANDEM, *command, folder, quoted=folder, expected=("ONNX",))
            refused(world, TANDEM, *command, path + "x", quoted=path + "x", expected=("No such",))
        refused(world, TANDEM, "run", "--layers", "1,2", quoted="1,2", expected=("11 counts",))


def the_doctor_says_that_the_gpus_are_software():
    with World() as world:
        shown = world.call(SOFTGPU, "run", "--", TANDEM, "doctor").stdout
        assert "softgpu's: its GPUs are software" in shown and "prohibited" not in shown, shown


def variables_that_a_command_would_inherit_are_quoted_too():
    with World() as world:
        for name in ("TANDEM_MEM", "NVIDIA_GPU_MEMORY_LIMIT", "TANDEM_MEM_SOFT", "TANDEM_DUTY",
                     "TANDEM_SLACK", "TANDEM_CLASS", "TANDEM_UPGRADE", "TANDEM_WEIGHT",
                     "TANDEM_BACKEND", "TANDEM_HOST_LIMIT", "TANDEM_HOST_FULL",
                     "TANDEM_DRAIN_DEADLINE", "TANDEM_IDLE", "TANDEM_GRACE"):
            for value in NONSENSE:
                shown = world.call(SOFTGPU, "run", "--", TANDEM, "doctor", **{name: value})
                assert (not value
                        or shown.returncode == 1 and f'{name}: "{value}"' in shown.stdout
                        and "counts as not set" in shown.stdout), (name, value, shown)
                done = world.call(TANDEM, "run", "--", "true", **{name: value})
                assert ((done.returncode == 0) == (not value)
                        and (not value
                             or f'{name}: "{value}"' in done.stderr
                             and "expected" in done.stderr)), (name, value, done)
        done = world.call(TANDEM, "run", "--mem", "8Gi", "--", "true",
                          NVIDIA_GPU_MEMORY_LIMIT="50%%")
        assert done.returncode == 0 and not done.stderr, done
        for option, name in (("--class", "TANDEM_CLASS"), ("--weight", "TANDEM_WEIGHT"),
                             ("--backend", "TANDEM_BACKEND"), ("--mem", "TANDEM_MEM")):
            value = {"--class": "online", "--weight": "2", "--backend": "plain",
                     "--mem": "8m"}[option]
            done = world.call(TANDEM, "run", option, value, "--", "sh", "-c", f"echo ${name}",
                              **{name: "zz"})
            assert done.returncode == 0 and done.stdout.strip() == value, done


def where_the_daemon_is_looked_for_is_quoted_if_nobody_can_be_there():
    with World() as world:
        long = "/" + "x" * 107
        for name, value, expected in (("TANDEM_SOCKET", "relative/socket", "begins with /"),
                                      ("TANDEM_SOCKET", long,
                                       "108 bytes long: expected a path of at most 107"),
                                      ("XDG_RUNTIME_DIR", "run", "begins with /"),
                                      ("XDG_RUNTIME_DIR", long[:94],
                                       "94 bytes long: expected a path of at most 93")):
            variables = {"TANDEM_SOCKET": "", name: value}
            for words in (["run", "--", "true"], ["ps"], ["set"]):
                done = world.call(TANDEM, *words, **variables)
                assert (done.returncode == 125 and f'{name}: "{value}" is ' in done.stderr
                        and expected in done.stderr), (words, done)
            done = world.call(TANDEM, "doctor", **variables)
            assert done.returncode == 1 and f'{name}: "{value}" is ' in done.stdout, done
            done = world.call(TANDEMD, **variables)
            assert done.returncode == 2 and f'{name}: "{value}" is ' in done.stderr, done
            # A program that has the library anyhow goes on, and says nothing.
            done = world.call(SOFTGPU, "run", "--", TRAIN, *SMALL[:-1], "1", LD_PRELOAD=LIBRARY,
                              **variables)
            assert done.returncode == 0 and not done.stderr, done
        assert (world.call(TANDEMD, "--socket", long).stderr.count(f'--socket: "{long}" is 108 '
                                                                   'bytes long')
                == 1)


def of_a_sockets_path_the_last_directory_may_be_new():
    with World() as world:
        new = f"{world.directory}/new"
        done = world.call(TANDEM, "run", "--", "true", TANDEM_SOCKET=f"{new}/deep/socket")
        assert (done.returncode == 125
                and f'"{new}/deep/socket": "{new}" is not there: expected at most the last '
                'directory'
                in done.stderr
                and not os.path.exists(new)), done
        assert (world.call(TANDEM, "run", "--", "true", TANDEM_SOCKET=f"{new}/socket").returncode
                == 0)
        assert os.stat(new).st_mode & 0o777 == (0o700 if os.getuid() else 0o755)
        world.call(TANDEM, "stop", "--force", TANDEM_SOCKET=f"{new}/socket")


def library_without(change):
    """libtandem.so's bytes, changed: of the ELF header and the whole."""
    with open(LIBRARY, "rb") as f:
        content = bytearray(f.read())
    return bytes(change(content))


def with_u16(offset, value):
    def change(content):
        struct.pack_into("<H", content, offset, value)
        return content
    return change


def a_library_that_cannot_be_preloaded_is_named_and_nothing_runs_without_it():
    expected = "expected tandem's libtandem.so, a shared library for "
    with World() as world:
        with tempfile.TemporaryDirectory() as folder:
            # RISC-V; 32 bits; a program at a fixed place.
            made = {"a b.so": None, "pipe": None, "empty": b"",
                    "cut": library_without(lambda content: content[:65536]),
                    "head": library_without(lambda content: content[:64]),
                    "machine": library_without(with_u16(18, 243)),
                    "old": library_without(with_u16(4, 1)),
                    "kind": library_without(with_u16(16, 2))}
            for name, content in made.items():
                if content is not None:
                    with open(f"{folder}/{name}", "wb") as f:
                        f.write(content)
            os.symlink(LIBRARY, f"{folder}/a b.so")
            os.mkfifo(f"{folder}/pipe")
            pie = os.path.realpath(sys.executable)
            for path, text in ((f"{folder}/a b.so", "a blank"),
                               ("/nonexistent/lib.so",
                                "cannot be read: No such file or directory: " + expected),
                               (folder, "is a directory: " + expected),
                               (f"{folder}/pipe", "is no regular file: " + expected),
                               ("/etc/passwd", "is no ELF file: " + expected),
                               (f"{folder}/empty", "is no ELF file: " + expected),
                               (f"{folder}/cut", "is not all there: " + expected),
                               (f"{folder}/head", "is not all there: " + expected),
                               (f"{folder}/kind", "is a program: " + expected),
                               (f"{folder}/machine",
                                "is for another kind of processor: " + expected),
                               (f"{folder}/old", "is for another kind of processor: " + expected),
                               (TANDEM, "is a program: " + expected),
                               (pie, "is a program: " + expected),
                               (f"{BUILD}/softgpu/driver/libcuda.so.1",
                                "is another library: " + expected),
                               ("preload/libtandem.so", "begins with /")):
                done = world.call(TANDEM, "run", "--", "echo", "ran", TANDEM_LIB=path)
                assert (done.returncode == 125 and f'"{path}" ' in done.stderr
                        and text in done.stderr
                        and not done.stdout
                        and len(done.stderr.splitlines()) == 1), (path, done)
                done = world.call(TANDEM, "doctor", TANDEM_LIB=path)
                assert ("blank" in text or "begins" in text
                        or f'"{path}" {text}' in done.stdout and done.returncode == 1), (path, done)
            assert world.call(TANDEM, "run", "--", "echo", "ran").stdout == "ran\n"


def what_is_set_is_not_cut_off_and_options_are_told_from_jobs():
    with World() as world:
        for words, quoted in ((["quantum=" + "0" * 254 + "15s"], "0" * 64),
                              (["--job", "a", "mem=1Gi"], "--job")):
            done = world.call(TANDEM, "set", *words)
            assert done.returncode == 125 and f'"{quoted}' in done.stderr, done
        done = world.call(TANDEMD, "--socket", "relative/socket")
        assert (done.returncode == 2 and '"relative/socket"' in done.stderr
                and not os.path.exists("relative")), done


def options_that_would_have_no_effect_are_refused():
    with World() as world:
        for words, quoted, expected in ((["--slack", "1%"], "1%", "guaranteed"),
                                        (["--slack", "1%", "--class", "online"], "1%",
                                         "guaranteed"),
                                        (["--upgrade", "guaranteed", "--class", "online"],
                                         "guaranteed", "--class besteffort"),
                                        (["--mem", "4Gi", "--mem-soft", "8Gi"], "8Gi", '"4Gi"'),
                                        (["--mem", "40%", "--mem-soft", "40%"], "40%",
                                         "less than --mem"),
                                        (["--mem-soft", "4Gi", "--backend", "auto"], "auto",
                                         "--backend swap")):
            refused(world, TANDEM, "run", *words, "--", "true", quoted=quoted, expected=(expected,))
        for words in (["--slack", "1%", "--upgrade", "guaranteed"],
                      ["--slack", "1%", "--class", "guaranteed"],
                      ["--upgrade", "none", "--class", "online"],
                      ["--mem", "8Gi", "--mem-soft", "4Gi"], ["--mem", "4Gi", "--mem-soft", "50%"]):
            done = world.call(TANDEM, "run", *words, "--", "true")
            assert done.returncode == 0 and not done.stderr, (words, done)


def settings_quote_what_they_refuse_and_say_what_they_take():
    with World() as world:
        shell = Shell(world, TANDEM, "run", "--name", "n" * 70, "--")
        until(lambda: world.jobs(), "it is known")
        job = world.jobs()[0]
        for value in NONSENSE:
            refused(world, TANDEM, "set", f"quantum={value}", quoted=value,
                    expected=("quantum: ",
                              "(a number alone is seconds) from 1ms to 1h such as 30s"))
            for key, bound in (("mem", "from 1 byte to"), ("mem-soft", "or none"),
                               ("duty", "from 1% to 100% such as 30% or 0.3, or none"),
                               ("weight", "from 1 to 1000"), ("slack", "from 0.1% to 100%"),
                               ("paused", "on or off"), ("class", "besteffort")):
                refused(world, TANDEM, "set", job["job"], f"{key}={value}", quoted=value,
                        expected=(f"{key}: ", bound))
        keys = [line.split()[0] for line in world.call(TANDEM, "set").stdout.splitlines()]
        groups = [key.split(".")[0] for key in keys if "." in key]
        # A group of more than four options is named once, as "gpu.*".
        keys = [key if groups.count(key.split(".")[0]) <= 4 else key.split(".")[0] + ".*"
                for key in keys]
        refused(world, TANDEM, "set", "quantom=3s", quoted="quantom", expected=keys)
        refused(world, TANDEM, "set", "gpu.capacity=1", quoted="1",
                expected=("gpu.capacity: ", "from 1Mi to"))
        # Only the beginning of a long name is kept; the whole name still finds the job.
        assert job["name"] == "n" * 63, job
        assert (world.call(TANDEM, "explain", "n" * 70).returncode == 0
                and world.call(TANDEM, "explain", "n" * 62).returncode == 125)
        shell.end()


def what_is_wrong_with_a_daemons_arguments_is_quoted():
    with World() as world:
        for words, quoted, expected in ((["--ready-fd", "x"], "x", "from 0 to"),
                                        (["--ready-fd", "-1"], "-1", "from 0 to"),
                                        (["--set", "quantum"], "quantum", "KEY=VALUE"),
                                        (["--set", "quantum=2h"], "2h", "from 1ms to 1h"),
                                        (["--set", "quantom=1s"], "quantom", "host.limit")):
            refused(world, TANDEMD, *words, quoted=quoted, expected=(expected,))
        done = world.call(TANDEMD, "--ready-fd", "777")
        assert done.returncode == 2 and '"777" is not an open descriptor' in done.stderr, done


def what_softgpu_refuses_is_quoted_with_what_it_takes():
    with World() as world:
        for value in NONSENSE:
            for words, expected in ((["start", "--gpus", value], ("--gpus: ", "from 1 to 64")),
                                    (["start", "--memory", value], ("--memory: ", "a size below")),
                                    (["start", "--set", f"link={value}"],
                                     ("--set link: ", "from 1m to 3900t")),
                                    (["start", "--model", value], ("--model: ", "tiny")),
                                    (["start", "--set", f"slice={value}"],
                                     ("--set slice: ", "from 0s to")),
                                    (["fault", "--gpu", value, "ecc"], ("--gpu: ", "from 0 to 63")),
                                    (["fault", "xid", value], ("xid: ", "from 1 to 999")),
                                    (["fault", "link", value], ("link: ", "from 1m to 3900t")),
                                    (["fault", value], ("is not a fault", "host-memory"))):
                refused(world, SOFTGPU, *words, quoted=value, expected=expected)
        refused(world, SOFTGPU, "fault", "link", "0", quoted="0",
                expected=("link: ", "from 1m to 3900t"))
        refused(world, SOFTGPU, "fault", "--gpu", "3", "ecc", quoted="3",
                expected=("--gpu: ", "0 to 0"))
        refused(world, SOFTGPU, "smi", "--format=csv", quoted="csv", expected=("--query-gpu",))
        done = world.call(SOFTGPU, "smi", "-L", "-q")
        assert done.returncode == 125 and "expected one of -L, -q" in done.stderr, done


def softgpu_says_what_a_fault_lacks_and_why_a_program_does_not_run():
    with World() as world:
        for fault, expected in (("xid", "a number from 1 to 999"), ("link", "a rate such as"),
                                ("host-memory", "a size such as"), ("call", "NAME[:N]=ERROR")):
            refused(world, SOFTGPU, "fault", fault, quoted=fault,
                    expected=("needs a value", expected))
        for words in (["ecc", "now"], ["xid", "79", "now"]):
            done = world.call(SOFTGPU, "fault", *words)
            assert done.returncode == 125 and '"now" is not expected' in done.stderr, done
        for wrap in ([SOFTGPU, "run", "--"], [TANDEM, "run", "--"]):
            for program, status, reason in (("no-such-program", 127, "No such file or directory"),
                                            (world.directory, 126, "it is a directory"),
                                            ("/etc/passwd", 126, "Permission denied")):
                done = world.call(*wrap, program)
                name = os.path.basename(wrap[0])
                assert (done.returncode == status
                        and done.stderr == f"{name}: {program}: {reason}\n"), done


def options_that_there_are_not_are_quoted_by_every_program():
    with World() as world:
        for program, verb, status, flag in ((TANDEMD, [], 2, "--verbose"),
                                            (SOFTGPU, ["start"], 125, "--mig"),
                                            (TANDEM, ["run"], 125, "--help")):
            name = " ".join([os.path.basename(program), *verb])
            for words, quoted, text in ((["--sokcet", "x"], "--sokcet", "is not an option"),
                                        (["-xy"], "-x", "is not an option"),
                                        ([f"{flag}=1"], f"{flag}=1", "takes no value"),
                                        (["--set" if program != TANDEM else "--mem"],
                                         "--set" if program != TANDEM else "--mem",
                                         "needs a value")):
                done = world.call(program, *verb, *words)
                assert (done.returncode == status
                        and done.stderr
                        == f'{os.path.basename(program)}: "{quoted}" {text}: see {name} '
                        '--help\n'), (program, words, done)
        for words, quoted, expected in ((["--foo"], "--foo", "train --help"),
                                        (["--memory", "x"], "x", "plain or managed"),
                                        (["--gpu", "x"], "x", "a number alone is seconds")):
            refused(world, SOFTGPU, "run", "--", TRAIN, *words, quoted=quoted, expected=(expected,))


def how_many_are_left_by(world, *command):
    """Processes that outlive their parents come to us meanwhile, and all have ended."""
    libc, subreaper, count = ctypes.CDLL(None), 36, 0
    libc.prctl(subreaper, 1, 0, 0, 0)
    done = world.call(*command)
    try:
        while True:
            os.wait()
            count += 1
    except ChildProcessError:
        pass
    libc.prctl(subreaper, 0, 0, 0, 0)
    return done, count


def a_server_that_cannot_start_is_tried_once():
    with World() as world:
        taken = f"{world.directory}/taken"
        with open(taken, "w"):
            pass
        for words in (["start", "--dir", f"{taken}/gpu"],
                      ["run", "--dir", f"{taken}/gpu", "--", "true"]):
            done, count = how_many_are_left_by(world, SOFTGPU, *words)
            assert (done.returncode and done.stderr == f"softgpu: {taken}/gpu: Not a directory\n"
                    and count == 1), (words, done, count)


def titles_stand_above_their_columns():
    with World() as world:
        finish(world.start(TRAIN, *SMALL, wrap="swap"))
        shell = Shell(world, TANDEM, "run", "--")
        shell.do("alloc", 4 * MIB)
        until(lambda: world.jobs() and world.jobs()[0]["demanded_bytes"], "it is known")
        for verb, of_key in (("ps",
                              {"PID": "pid", "STATE": "state", "CLASS": "class", "JOB": "job"}),
                             ("gpu", {"UUID": "uuid", "GPU": "index", "HANDOVERS": "handovers"}),
                             ("events",
                              {"EVENT": "kind", "PID": "pid", "GPU": "gpu", "NAME": "name"})):
            for _ in tries(100, lambda: f"{verb} shows the same twice"):
                rows = json.loads(world.call(TANDEM, verb, "--json").stdout)
                lines = world.call(TANDEM, verb).stdout.splitlines()
                now = json.loads(world.call(TANDEM, verb, "--json").stdout)
                if [[row.get(key) for key in of_key.values()] for row in rows] == [
                        [row.get(key) for key in of_key.values()] for row in now]:
                    break
            assert (len(lines) == 1 + len(rows)
                    and not any(line.endswith(" ") for line in lines)), lines
            for title, key in of_key.items():
                spot = re.search(rf"(?<!\S){title}(?!\S)", lines[0])
                for line, row in zip(lines[1:], rows):
                    # Flush left or right, a cell shares its title's first or last column.
                    cells = ({(m.start(), m[0]) for m in re.finditer(r"\S+", line)}
                             | {(m.end(), m[0]) for m in re.finditer(r"\S+", line)})
                    shown = (str(row[key]) if row.get(key, "") != "" and (key != "pid" or row[key])
                             else "-")
                    assert ((spot.start(), shown) in cells
                            or (spot.end(), shown) in cells), (title, shown, lines[0], line)
        shell.end()


def ps_and_top_have_the_same_columns():
    with World() as world:
        shell = Shell(world, TANDEM, "run", "--name", "a" * 40, "--mem=30m", "--duty=30%", "--")
        shell.do("alloc", 4 * MIB)
        until(lambda: world.jobs() and world.jobs()[0]["demanded_bytes"], "it is known")
        titles, row = world.call(TANDEM, "ps").stdout.splitlines()
        assert row[titles.index("CLASS"):].startswith("besteffort "), (titles, row)
        in_ps = titles.split()
        done = world.call(TANDEM, "top", "--batch", "--ascii", "-n", "1", "-d", "100ms",
                          COLUMNS="400")
        titles = next(line for line in done.stdout.splitlines() if "STATE" in line)
        in_top = titles.replace("^", " ").split()
        # Rates, which take two looks, are in top alone; columns that nobody has are in neither.
        assert [t for t in in_top if t in in_ps] == in_ps, done
        assert set(in_top) - set(in_ps) - {"BUSY", "SM%"} == {"TIME", "IN/OUT", "LAUNCH/S"}, done
        assert {"DUTY", "LIMIT"} < set(in_ps) and not {"P99", "RESTARTS"} & set(in_ps), in_ps
        shell.end()


def an_explanation_is_as_long_as_it_has_to_be():
    with World() as world:
        world.call(TANDEM, "run", "--", "true")
        world.call(TANDEM, "set", "quota.jobs=0")
        shell = Shell(world, TANDEM, "run", "--mem", "30m", "--mem-soft", "8m", "--duty", "30%",
                      "--weight", "3", "--upgrade", "guaranteed", "--")
        shell.do("alloc", 16 * MIB)
        lines = []

        def is_explained():
            lines[:] = [line for job in world.jobs()
                        for line in world.call(TANDEM, "explain", job["job"]).stdout.splitlines()]
            said = " ".join(lines)
            return "Its duty is 30%" in said and "is on the host." in said

        until(is_explained, "it is let in, and so far as its limits go")
        said = " ".join(lines)
        assert len(said) > 300 and all(line.endswith(".") for line in lines[2:]), lines
        assert ("Its weight is 3." in said and "exceed its user's whole quota" in said
                and re.search(r"Soft limit 8.0 MiB on GPU 0: .* is on the host\.", said)), lines
        job = world.jobs()[0]
        for words in ((str(job["pid"]), "--json"), ("--json", str(job["pid"]))):
            done = world.call(TANDEM, "explain", *words)
            assert done.returncode == 0, done
            (process,) = json.loads(done.stdout)
        assert ((process["job"], process["pid"]) == (job["job"], job["pid"])
                and process["state"] in ("running", "idle")), process
        causes = {cause["id"]: cause for cause in process["causes"]}
        assert (causes["open"]["text"].startswith("It may use its GPU, since")
                and "gpu" not in causes["open"]), causes
        assert causes["duty"]["figures"] == {"duty_ppm": 300000}, causes
        soft = causes["soft_limit"]
        assert (soft["gpu"] == 0 and soft["figures"]["soft_bytes"] == 8 * MIB
                and soft["figures"]["spilled_bytes"] >= 8 * MIB), soft
        assert "memory" in causes["upgrade_exceeds_quota"]["todo"], causes
        shown = world.call(TANDEM, "explain", str(job["pid"])).stdout
        assert (all(f" {name} " in shown for name in causes)
                and f"-> {causes['upgrade_exceeds_quota']['todo']}" in shown), shown
        shell.end()


def explain_says_what_is_wrong_with_its_arguments():
    with World() as world:
        for words, said in (([], "a JOB is missing"), (["--json"], "a JOB is missing"),
                            (["--jsn", "x"], '"--jsn"'), (["a", "b"], '"b" is not expected')):
            done = world.call(TANDEM, "explain", *words)
            assert done.returncode == 125 and said in done.stderr and not done.stdout, done


def verbs_say_how_they_are_used_and_quote_what_they_do_not_take():
    with World() as world:
        for verb in ("run", "pause", "set"):
            done = world.call(TANDEM, "help", verb)
            assert (done.returncode == 0 and f"usage: tandem {verb}" in done.stdout
                    and world.call(TANDEM, verb, "--help").stdout == done.stdout), done
        assert "A JOB is named by" in done.stdout, done
        for words, quoted, expected in ((["status"], "status", "such as run, ps,"),
                                        (["help", "status"], "status", "such as run, ps,"),
                                        (["ps", "--jsn"], "--jsn", "--json: see tandem ps --help"),
                                        (["pause", "a", "b"], "b", "tandem pause --help"),
                                        (["pause", "a", "--jsn"], "--jsn", "--json: see tandem pa"),
                                        (["restart", "a", "5%", "c"], "c", "behind the job"),
                                        (["completion", "bash", "x"], "x", "behind the shell"),
                                        (["run", "--layers", "conv"], "conv", "or the counts")):
            refused(world, TANDEM, *words, quoted=quoted, expected=(expected,))
        refused(world, SOFTGPU, "fly", quoted="fly", expected=("such as start,",))
        whole = world.call(SOFTGPU, "--help").stdout
        assert max(map(len, whole.splitlines())) <= 100, whole
        for verb in re.findall(r"softgpu ([a-z-]+) \[", whole):
            done = world.call(SOFTGPU, "help", verb)
            assert done.returncode == 0 and len(done.stdout) < len(whole), done
            assert done.stdout.startswith(f"usage: softgpu {verb} "), done
            assert world.call(SOFTGPU, verb, "--help").stdout == done.stdout, done


def into(world, path, *command):
    with open(path, "w") as out:
        return subprocess.run(command, env=world.environment, stdout=out, stderr=subprocess.PIPE,
                              text=True, timeout=DEADLINE_S)


def what_cannot_be_written_is_said_and_ends_with_an_error():
    with World() as world:
        finish(world.start(TRAIN, *SMALL, wrap="plain"))
        shell = Shell(world, TANDEM, "run", "--name", "held", "--")
        shell.do("alloc", 4 * MIB)
        until(lambda: world.jobs() and world.jobs()[0]["demanded_bytes"], "it is known")
        for program, status, verbs in ((TANDEM, 125,
                                        (["--help"], ["--version"], ["ps"], ["ps", "--json"],
                                         ["gpu"], ["gpu", "--json"], ["events"],
                                         ["events", "--json"], ["events", "-f"], ["set"],
                                         ["set", "held"], ["explain", "held"], ["run", "--help"],
                                         ["ps", "--help"])),
                                       (TANDEMD, 1, (["--help"], ["--version"])),
                                       (SOFTGPU, 125,
                                        (["--help"], ["--version"], ["status"],
                                         ["status", "--json"], ["smi", "-L"],
                                         ["smi", "--help-query-gpu"]))):
            for words in verbs:
                done = into(world, "/dev/full", program, *words)
                name = os.path.basename(program)
                assert (done.returncode == status
                        and done.stderr
                        == f"{name}: its output could not be written completely: No space left on "
                        "device\n"), (program, words, done)
        # A check that has failed stays one.
        done = into(world, "/dev/full", TANDEM, "doctor", "/nowhere")
        assert done.returncode == 1 and "No space left" in done.stderr, done
        assert into(world, "/dev/null", TANDEM, "ps").returncode == 0
        shell.end()


def help_and_version_have_letters_too():
    with World() as world:
        for program in (TANDEM, TANDEMD, SOFTGPU):
            for word, letter in (("--help", "-h"), ("--version", "-V")):
                done = world.call(program, word)
                assert (done.returncode == 0 and done.stdout
                        and not done.stderr), (program, word, done)
                assert world.call(program, letter).stdout == done.stdout, (program, letter)
            assert re.fullmatch(os.path.basename(program) + r" \d+\.\d+\.\d+\n", done.stdout), done
        for words in ([TANDEM, "ps"], [TANDEM, "run"], [TANDEM, "set"], [SOFTGPU, "start"],
                      [SOFTGPU, "run"], [SOFTGPU, "smi"]):
            done = world.call(*words, "--help")
            assert (done.returncode == 0 and done.stdout
                    and world.call(*words, "-h").stdout == done.stdout), (words, done)


def an_option_does_not_take_the_end_of_options_for_its_value():
    with World() as world:
        for program, status, verb, options in ((TANDEM, 125, ["run"],
                                                ("--name", "--class", "--upgrade", "--weight",
                                                 "--backend", "--mem", "--mem-soft", "--duty",
                                                 "--slack", "--gpu")),
                                               (TANDEMD, 2, [],
                                                ("--socket", "--config", "--set", "--ready-fd")),
                                               (SOFTGPU, 125, ["start"],
                                                ("--gpus", "--model", "--memory", "--set",
                                                 "--dir")), (SOFTGPU, 125, ["run"], ("--dir",)),
                                               (SOFTGPU, 125, ["status"], ("--dir",)),
                                               (SOFTGPU, 125, ["fault"], ("--dir", "--gpu"))):
            for option in options:
                done = world.call(program, *verb, option, "--", "true")
                assert (done.returncode == status and not done.stdout
                        and len(done.stderr.splitlines()) == 1), (program, option, done)
                assert f'"{option}" needs a value: "--" ' in done.stderr, (program, option, done)
        done = world.call(TANDEM, "run", "--name=--", "--", "true")
        assert done.returncode == 125 and '"--name=--" needs a value' in done.stderr, done
        assert world.call(TANDEM, "run", "--name", "-", "--", "true").returncode == 0


def on_a_terminal(world, columns, *command):
    """What the command prints on a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    done = subprocess.Popen(command, env=world.environment, stdout=slave)
    os.close(slave)
    said = b""
    while True:
        try:
            said += os.read(master, 65536)
        except OSError:  # the command has ended
            break
    os.close(master)
    assert done.wait(DEADLINE_S) == 0, said
    return said.decode().replace("\r\n", "\n")


def options_keep_to_the_terminals_width():
    with World() as world:
        finish(world.start(TRAIN, *SMALL, wrap="plain"))
        whole = world.call(TANDEM, "set").stdout
        for columns in (80, 100):
            shown = on_a_terminal(world, columns, TANDEM, "set")
            assert max(map(len, shown.splitlines())) <= columns, shown
            assert re.sub(r"\n {38}", " ", shown) == whole, shown
        assert on_a_terminal(world, 40, TANDEM, "set") == whole


def an_options_name_alone_shows_it():
    with World() as world:
        shell = Shell(world, TANDEM, "run", "--name", "quantum", "--weight", "3", "--")
        until(lambda: world.jobs(), "it is known")
        rows = world.call(TANDEM, "set").stdout.splitlines()
        assert len(rows) > 10
        for row in rows:
            done = world.call(TANDEM, "set", row.split()[0])
            assert done.returncode == 0 and done.stdout.splitlines() == [row], (row, done)
        assert world.call(TANDEM, "set", "quantum", "weight=4").returncode == 0
        assert re.search(r"^weight +4 ", world.call(TANDEM, "set", world.jobs()[0]["job"]).stdout,
                         re.M)
        done = world.call(TANDEM, "set", "quantom")
        assert (done.returncode == 125 and 'there is no job "quantom"' in done.stderr
                and not done.stdout), done
        shell.end()


def is_locked(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def stop_a_late_one(world, lock, *stop):
    """Whoever is stopped is on this thread's processor, and runs only while nobody else does."""
    cpus = os.sched_getaffinity(0)
    with open(lock) as file:
        pid = file.read().strip()
    assert is_locked(lock)
    os.sched_setaffinity(0, {min(cpus)})
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        with contextlib.suppress(ProcessLookupError):  # a thread that closes files may have ended
            os.sched_setaffinity(thread, {min(cpus)})
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    done = world.call(*stop)
    locked = is_locked(lock)
    os.sched_setaffinity(0, cpus)
    assert done.returncode == 0 and not locked, done


def who_has_stopped_one_may_start_another_at_once():
    with World() as world:
        for _ in range(8):  # it is not late each time
            assert world.call(SOFTGPU, "run", "--", TANDEM, "run", "--", "true").returncode == 0
            stop_a_late_one(world, world.environment["TANDEM_SOCKET"] + ".lock", TANDEM, "stop")
        for _ in range(8):
            stop_a_late_one(world, f"{world.directory}/gpu/lock", SOFTGPU, "stop")
            assert world.call(SOFTGPU, "start").returncode == 0


run_cases([
    options_of_run_quote_what_they_refuse_and_say_what_they_take,
    the_doctor_says_that_the_gpus_are_software,
    variables_that_a_command_would_inherit_are_quoted_too,
    where_the_daemon_is_looked_for_is_quoted_if_nobody_can_be_there,
    of_a_sockets_path_the_last_directory_may_be_new,
    a_library_that_cannot_be_preloaded_is_named_and_nothing_runs_without_it,
    what_is_set_is_not_cut_off_and_options_are_told_from_jobs,
    options_that_would_have_no_effect_are_refused,
    settings_quote_what_they_refuse_and_say_what_they_take,
    what_is_wrong_with_a_daemons_arguments_is_quoted,
    what_softgpu_refuses_is_quoted_with_what_it_takes,
    softgpu_says_what_a_fault_lacks_and_why_a_program_does_not_run,
    options_that_there_are_not_are_quoted_by_every_program,
    a_server_that_cannot_start_is_tried_once,
    what_cannot_be_written_is_said_and_ends_with_an_error,
    help_and_version_have_letters_too,
    an_option_does_not_take_the_end_of_options_for_its_value,
    an_options_name_alone_shows_it,
    options_keep_to_the_terminals_width,
    titles_stand_above_their_columns,
    ps_and_top_have_the_same_columns,
    an_explanation_is_as_long_as_it_has_to_be,
    explain_says_what_is_wrong_with_its_arguments,
    verbs_say_how_they_are_used_and_quote_what_they_do_not_take,
    layers_of_an_onnx_file_are_shown_and_go_with_the_program,
    who_has_stopped_one_may_start_another_at_once,
])
