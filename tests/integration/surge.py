"""The memory of a guaranteed job surges beside a besteffort one that had the rest (AntMan, figures
3 and 4): the job has it in that step, the besteffort one shrinks and grows again, and nobody fails.
TAP on stdout; argument: the build."""
from world import *

MIB = 1 << 20
ALLOCATOR = f"{BUILD}/src/alloc/libtandem_alloc.so"
# MiB of 64: the guaranteed program's memory, its surge for some steps, the besteffort one's memory.
OWN, MORE, OTHERS = 2, 40, 44
AT, SURGE, STEPS = 150, 10, 200
KINDS = {"unmodified": [], "told": ["--tell", "on"],
         "told, by its allocator": ["--tell", "on", "--allocator", ALLOCATOR]}


def begin(world, name, kind, *arguments):
    command = [SOFTGPU, "run", "--", TANDEM, "run", "--name", name, "--class", kind, "--", TRAIN,
               "--kernel", "1ms", *arguments]
    return subprocess.Popen(command, env=dict(world.environment, TANDEM_ALLOC_SEGMENT="2Mi"),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def named(world, name):
    return next((job for job in world.jobs() if job["name"] == name), {})


def surge(policy, kind):
    with World() as world:
        assert world.call(TANDEM, "run", "--", "true").returncode == 0
        assert world.call(TANDEM, "set", f"policy={policy}").returncode == 0
        other = begin(world, "other", "besteffort", "--size", f"{OTHERS}m", "--gpu", "4ms", "--cpu",
                      "1ms", "--steps", "60")
        until(lambda: named(world, "other").get("resident_bytes",
                                                0) >= OTHERS * MIB and world.status()[
                  "kernels"] > 10, "the besteffort one has its memory")
        surging = begin(world, "surging", "guaranteed", "--size", f"{OWN}m", "--gpu", "2ms",
                        "--cpu", "5ms", "--steps", str(STEPS), "--times", "on", "--surge",
                        f"{MORE}m", "--surge-at", str(AT), "--surge-steps", str(SURGE),
                        *KINDS[kind])
        looks = []

        def has_ended():
            jobs = {job["name"]: job for job in world.jobs()}
            if "surging" in jobs and "other" in jobs:
                looks.append(jobs)
            return surging.poll() is not None

        until(has_ended, "the guaranteed one ends")
        result = finish(surging)
        times, ends = result["step_ms"], result["ends_ns"]
        # Its memory left the GPU only in pauses where both take turns; and while it had all of its
        # memory, the other one had at most the rest.
        if policy == "antman":
            assert not any(look["surging"]["host_bytes"] or look["surging"]["out_bytes"]
                           for look in looks), [look["surging"] for look in looks][-1]
        surged = [i for i,
                  look in enumerate(looks)
                  if look["surging"]["resident_bytes"] >= (OWN + MORE) * MIB]
        assert (surged
                and all(looks[i]["other"]["resident_bytes"] <= (64 - OWN - MORE) * MIB
                        for i in surged)), (len(looks), surged)
        # By the events, the other one gave the missing part between the two ends of the step of the
        # surge. The amount depends on how much of the rest it had by then.
        given = sum(e["value_bytes"] for e in world.events("shrunk")
                    if e["name"] == "other" and ends[AT - 1] < e["time_ns"] < ends[AT])
        assert given > 0, (ends[AT - 1], ends[AT], world.events("shrunk"))
        until(lambda: named(world, "other").get("resident_bytes", 0) >= OTHERS * MIB,
              "what it had to give comes back")
        finish(other)
        assert not [e for e in world.events() if e["kind"] in ("refused", "killed", "error")], (
            world.events())
        usual = sorted(times[:AT - 1])[AT // 2]
        say(f"# {policy}, {kind}: steps of {usual:.0f} ms; with the surge {times[AT - 1]:.0f}, "
            f"then {times[AT]:.0f} and {times[AT + 1]:.0f}; the median while it lasts "
            "" f"{sorted(times[AT:AT + SURGE - 1])[SURGE // 2]:.0f}")
        nothing_is_left(world)


def case(policy, kind):
    def run():
        surge(policy, kind)
    run.__name__ = f"under_{policy}_a_surge_is_served_{kind.replace(', ', '_').replace(' ', '_')}"
    return run


run_cases([case(policy, kind) for policy in ("antman", "tandem") for kind in KINDS], at_once=2)
