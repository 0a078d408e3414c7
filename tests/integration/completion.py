"""Completion of shells: bash completes as it is told, and its words are those of each verb's
help."""
import re
import shutil

from world import *

# Prints what bash completes of the words that it gets as arguments, one on each line.
COMPLETE = """
eval "$(tandem completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tandem
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(world, *words):
    path = f"{os.path.dirname(TANDEM)}:{os.environ['PATH']}"
    done = world.call("bash", "--norc", "-c", COMPLETE, "bash", *words, PATH=path)
    assert done.returncode == 0 and not done.stderr, done
    return [word for word in done.stdout.split("\n") if word]


def verbs_options_and_values_are_completed():
    with World() as world:
        assert complete(world, "tandem", "pa") == ["pause"]
        assert {"run", "top", "web", "metrics", "completion"} <= set(complete(world, "tandem", ""))
        assert complete(world, "tandem", "run", "--cl") == ["--class"]
        assert complete(world, "tandem", "run", "--class", "g") == ["guaranteed"]
        assert complete(world, "tandem", "top", "--sort", "wai") == ["waited"]
        assert complete(world, "tandem", "stop", "--") == ["--force"]
        assert complete(world, "tandem", "completion", "z") == ["zsh"]
        assert "bash" in complete(world, "tandem", "run", "--class", "online", "--", "bas")
        assert "bash" in complete(world, "tandem", "run", "bas")
        file = f"{world.directory}/a-file"
        open(file, "w").close()
        assert complete(world, "tandem", "run", "cat", file[:-2]) == [file]
        assert complete(world, "tandem", "pause", "") == []  # there is no daemon


def jobs_and_keys_are_completed_as_words_alone():
    """A job's id is its user's word: nothing in it is run."""
    with World() as world:
        mark = f"{world.directory}/was-run"
        odd = f"odd$(touch {mark})"
        forever = [TRAIN, *SMALL[:-1], "1000000"]
        programs = [world.start(TANDEM, "run", "--", *forever)]
        until(lambda: complete(world, "tandem", "pause", ""), "one job is there")
        programs.append(world.start(*forever, LD_PRELOAD=LIBRARY, TANDEM_JOB=odd))
        until(lambda: len(world.jobs()) == 2, "two jobs are there")
        ids = {job["job"] for job in world.jobs()}
        got = complete(world, "tandem", "pause", "")
        assert odd in ids and len(got) == 2, (got, ids)
        assert [word[:3] for word in complete(world, "tandem", "pause", "odd")] == ["odd"]
        assert "quantum=" in complete(world, "tandem", "set", "quan")
        assert not os.path.exists(mark)
        for program in programs:
            program.kill()
            program.communicate()


def each_option_of_the_help_is_known():
    with World() as world:
        for verb in ("run", "top", "web", "profile", "ps", "gpu", "stop", "doctor", "explain",
                     "policies"):
            done = world.call(TANDEM, verb, "--help")
            if done.returncode == 125 and verb in ("top", "web", "profile"):
                continue  # it was not built
            lines = [line for line in done.stdout.splitlines() if re.match(r"usage:| +-", line)]
            told = {o for line in lines for o in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", line)
                    + re.findall(r"\[(--[a-z-]+)\]", line)} | {"--help"}
            known = set(complete(world, "tandem", verb, "--")) | {"--help"}
            assert told == known, f"src/view/options.def: {verb} has {sorted(told ^ known)}"


def other_shells_read_their_scripts():
    checked = False
    with World() as world:
        for shell, option in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
            file = f"{world.directory}/{shell}"
            done = world.call(TANDEM, "completion", shell)
            assert done.returncode == 0 and "explain" in done.stdout, done
            with open(file, "w") as f:
                f.write(done.stdout)
            if shutil.which(shell):
                done = world.call(shell, option, file)
                assert done.returncode == 0 and not done.stderr, (shell, done)
                checked = checked or shell != "bash"
        done = world.call(TANDEM, "completion", "tcsh")
        assert done.returncode == 125 and '"tcsh"' in done.stderr, done
    if not checked:
        raise Skip("neither zsh nor fish is here")


run_cases([
    verbs_options_and_values_are_completed,
    jobs_and_keys_are_completed_as_words_alone,
    each_option_of_the_help_is_known,
    other_shells_read_their_scripts,
], at_once=2)
