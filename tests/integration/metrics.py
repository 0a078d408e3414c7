"""Another parser reads what `tandem metrics` prints; dashboards and alerts use names that exist."""
import re

from promtool import promtool
from world import *

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOREVER = [*SMALL[:-1], "1000000"]
UNITS = ("bytes", "ratio", "seconds", "celsius", "watts", "hertz")


def source(path):
    with open(f"{ROOT}/{path}") as f:
        return f.read()


def table():
    """{name: (type, unit)} of metrics.def."""
    row = r"^METRIC\((\w+), (\w+), (\w+), (\w+),"
    found = re.findall(row, source("src/view/metrics.def"), re.M)
    assert len(found) > 30, found
    return {"tandem_" + name: (kind, unit) for _, name, kind, unit in found}


def names_end_with_their_unit():
    for name, (kind, unit) in table().items():
        assert unit == "none" or unit in UNITS, unit
        end = ("" if unit == "none" else f"_{unit}") + ("_total" if kind == "counter" else "")
        assert name.endswith(end) and (kind == "counter") == name.endswith("_total"), name


def another_parser_reads_it():
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, if another python runs this
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        raise Skip("python3-prometheus-client is not installed") from None
    with World("--gpus", "2") as world:
        odd = 'odd "name"\\'
        program = world.start(TANDEM, "run", "--name", odd, "--mem", "200m", "--", TRAIN, *FOREVER)
        until(lambda: world.jobs() and "gpu" in world.jobs()[0], "the job uses a GPU")
        done = world.call(TANDEM, "metrics")
        program.kill()
        program.communicate()
        assert done.returncode == 0, done
        families = {f.name: f for f in text_string_to_metric_families(done.stdout)}
        known = table()
        seen = set()
        for family in families.values():
            for sample in family.samples:
                kind, _ = known[sample.name]
                assert kind == family.type, sample
                key = (sample.name, *sorted(sample.labels.items()))
                assert key not in seen, f"twice: {key}"
                seen.add(key)
        assert families["tandem_up"].samples[0].value == 1
        assert len(families["tandem_gpu_info"].samples) == 2
        limit = families["tandem_job_limit_bytes"].samples[0]
        assert limit.value == 200 << 20 and limit.labels["name"] == odd, limit
        uuids = {s.labels["gpu"] for s in families["tandem_gpu_info"].samples}
        assert limit.labels["gpu"] in uuids, (limit, uuids)


def without_a_daemon_there_is_no_text():
    """A collector of text files keeps what it had."""
    with World() as world:
        done = world.call(TANDEM, "metrics")
        assert done.returncode == 125 and not done.stdout and "no daemon at" in done.stderr, done


def dashboards_and_alerts_use_metrics_that_exist():
    known = table()
    for path in ("packaging/grafana/tandem.json", "packaging/prometheus/tandem.rules.yml"):
        used = set(re.findall(r"\btandem_[a-z_]+\b", source(path)))
        assert len(used) > 4, path
        assert used <= set(known), f"{path}: {used - set(known)}"
    dashboard = json.loads(source("packaging/grafana/tandem.json"))
    expressions = [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
    expressions += re.findall(r"expr: (.*)", source("packaging/prometheus/tandem.rules.yml"))
    for expression in expressions:
        for name in re.findall(r"\btandem_[a-z_]+\b", expression):
            is_counter = known[name][0] == "counter"
            assert (f"rate({name}" in expression) == is_counter, f"rate() of {name}: {expression}"
    ids = [p["id"] for p in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def promtool_reads_metrics():
    with World() as world:
        program = world.start(TANDEM, "run", "--mem", "200m", "--", TRAIN, *FOREVER)
        until(lambda: world.jobs() and "gpu" in world.jobs()[0], "the job uses a GPU")
        text = world.call(TANDEM, "metrics").stdout
        program.kill()
        program.communicate()
    said = promtool("check", "metrics", input=text)
    assert not said.strip(), said


def each_alert_fires_when_it_should():
    alerts = re.findall(r"alert: (\w+)", source("packaging/prometheus/tandem.rules.yml"))
    tests = source("packaging/prometheus/tandem.test.yml")
    assert all(f"alertname: {alert}," in tests for alert in alerts), "an alert has no test"
    assert f"value: {len(alerts)}" in tests, "not all of them fire in the test"
    folder = f"{ROOT}/packaging/prometheus"
    promtool("check", "rules", f"{folder}/tandem.rules.yml")
    promtool("test", "rules", f"{folder}/tandem.test.yml")


def promtool_reads_each_query_of_the_dashboard():
    dashboard = json.loads(source("packaging/grafana/tandem.json"))
    queries = [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
    for variable, value in (("$node", ".*"), ("$gpu", ".*"), ("$__rate_interval", "5m")):
        queries = [query.replace(variable, value) for query in queries]
    assert len(queries) > 15 and not any("$" in query for query in queries), queries
    rules = {"groups": [{"name": "dashboard", "rules": [
        {"record": f"query:{i}", "expr": query} for i, query in enumerate(queries)]}]}
    # JSON is YAML.
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
        json.dump(rules, f)
        f.flush()
        said = promtool("check", "rules", f.name)
    assert f"{len(queries)} rules found" in said, said


run_cases([
    names_end_with_their_unit,
    another_parser_reads_it,
    without_a_daemon_there_is_no_text,
    dashboards_and_alerts_use_metrics_that_exist,
    promtool_reads_metrics,
    each_alert_fires_when_it_should,
    promtool_reads_each_query_of_the_dashboard,
], at_once=2)
