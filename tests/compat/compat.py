"""Programs reach the driver by many ways, and libtandem is on each; programs that it must not
disturb. TAP on stdout; arguments: the folder of this test in the build, libtandem.so, the folder of
the sources, the compiler."""
import os
import shutil
import subprocess
import sys
import tempfile

FOLDER, LIBRARY, SOURCES, CC = sys.argv[1:5]
FOLDER, LIBRARY = os.path.abspath(FOLDER), os.path.abspath(LIBRARY)
CAUGHT = ["linked", "linked_threads", "dlsym", "dlsym_of_dlsym", "dlsym_of_libc", "dlsym_of_dlvsym",
          "default", "dlvsym", "deepbind", "plugin", "plugin_deepbind", "proc_address",
          "proc_address_threads"]


class Skip(Exception):
    pass


def run(command, preload, **extra):
    environment = dict(os.environ, LD_LIBRARY_PATH=FOLDER, LD_PRELOAD=preload,
                       TANDEM_SOCKET="/nonexistent", **extra)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)


def route(way, preload=LIBRARY, **extra):
    done = run([f"{FOLDER}/routes", way], preload, **extra)
    assert done.returncode == 0 and not done.stderr, f"{way}: exit {done.returncode}: {done.stderr}"
    return done.stdout.strip()


def every_way_of_the_table_meets_libtandem():
    for way in CAUGHT:
        assert route(way) == "libtandem", f"{way}: {route(way)}"


def without_the_preload_they_all_meet_the_driver():
    for way in CAUGHT:
        assert route(way, preload="") == "driver", f"{way}: {route(way, preload='')}"


def a_namespace_of_its_own_is_the_known_limit():
    assert route("plugin_namespace") == "driver", route("plugin_namespace")


def a_symbol_that_the_driver_lacks_is_not_offered():
    assert route("absent") == "nothing", route("absent")


def switched_off_look_ups_meet_the_driver():
    for way in ("dlsym", "dlvsym", "proc_address"):
        assert route(way, TANDEM_DISABLE="1") == "driver", way


def beside_another_preload_in_both_orders():
    other = f"{FOLDER}/libother.so"
    for preload in (f"{LIBRARY}:{other}", f"{other}:{LIBRARY}"):
        for way in CAUGHT:
            assert route(way, preload) == "libtandem", f"{preload}: {way}: {route(way, preload)}"


def built(name, *options):
    folder = tempfile.mkdtemp(prefix="tandem-compat-")
    program = f"{folder}/{name}"
    done = subprocess.run([*options, "-o", program, f"{SOURCES}/hello.c"], capture_output=True,
                          text=True)
    if done.returncode:
        shutil.rmtree(folder)
        raise Skip(f"{' '.join(options)} does not build here")
    return folder, program


def is_undisturbed(name, *options):
    folder, program = built(name, *options)
    try:
        done = run([program], LIBRARY)
        assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", ""), done
    finally:
        shutil.rmtree(folder)


def a_static_program_is_undisturbed():
    is_undisturbed("static", CC, "-static")


def a_program_on_musl_is_undisturbed():
    if not shutil.which("musl-gcc"):
        raise Skip("no musl-gcc here")
    is_undisturbed("musl", "musl-gcc")


def a_program_without_a_gpu_is_undisturbed():
    is_undisturbed("plain", CC)


def a_shell_full_of_programs_is_undisturbed():
    script = "for i in 1 2 3; do (exit $i); echo $?; done | sort -r | tr -d '\\n'"
    done = run(["sh", "-c", script], LIBRARY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "321", ""), done


CASES = [
    every_way_of_the_table_meets_libtandem,
    without_the_preload_they_all_meet_the_driver,
    a_namespace_of_its_own_is_the_known_limit,
    a_symbol_that_the_driver_lacks_is_not_offered,
    switched_off_look_ups_meet_the_driver,
    beside_another_preload_in_both_orders,
    a_static_program_is_undisturbed,
    a_program_on_musl_is_undisturbed,
    a_program_without_a_gpu_is_undisturbed,
    a_shell_full_of_programs_is_undisturbed,
]

print(f"1..{len(CASES)}")
for number, case in enumerate(CASES, 1):
    try:
        case()
        print(f"ok {number} - {case.__name__}")
    except Skip as why:
        print(f"ok {number} - {case.__name__} # SKIP {why}")
    except (AssertionError, subprocess.TimeoutExpired) as problem:
        print(f"not ok {number} - {case.__name__}\n# " + str(problem).replace("\n", "\n# "))
