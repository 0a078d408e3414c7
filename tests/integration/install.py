"""An installation of `meson install` works in place, with nothing in the environment to point at
it. TAP; arguments: the build, meson."""
from world import *

MESON = sys.argv.pop(2)


def installed_programs_find_what_they_load():
    with World() as world:
        root = f"{world.directory}/root"
        done = subprocess.run([MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet",
                               "--destdir", root], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        programs = {}
        for folder, _, files in os.walk(root):
            programs.update({name: f"{folder}/{name}" for name in files
                             if os.path.basename(folder) == "bin"})
        environment = {k: v for k,
                       v in world.environment.items()
                       if k not in ("TANDEM_LIB", "TANDEMD", "SOFTGPU_LIB", "LD_LIBRARY_PATH")}
        command = [programs["softgpu"], "run", "--", programs["tandem"], "run", "--backend", "swap",
                   "--", TRAIN, *SMALL]
        result = finish(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True))
        assert result["steps"] == 6 and world.events("opened"), result
        shown = subprocess.run([programs["tandem"], "gpu", "--json"], env=environment,
                               capture_output=True, text=True)
        assert shown.returncode == 0 and "softgpu" in shown.stdout, shown


run_cases([installed_programs_find_what_they_load])
