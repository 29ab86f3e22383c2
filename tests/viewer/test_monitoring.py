"""The dashboard for Grafana and the alert rules: they name existing metrics and labels, and promtool accepts them.
Usage: test_monitoring.py ROOT [test]"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = sys.argv[1]
FOLDER = os.path.join(ROOT, "pipelines", "monitoring")
# Labels that Prometheus adds, and that of a histogram's buckets.
EVERYWHERE = {"pipeline", "instance", "job", "le"}
WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def table():
    """{name of a series: its labels}, from the reference, which test_metrics compares with the program's table."""
    series = {}
    for name, kind, labels in re.findall(r"^\| `(carousel_\w+)` \| (\w+) \| \w* \| ([\w, ]*) \|", text_of("pipelines/docs/metrics.md"), re.M):
        for suffix in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            series[name + suffix] = set(WORD.findall(labels)) | EVERYWHERE
    return series


def misuses(expression, series):
    """What an expression of PromQL names that does not exist."""
    wrong = []
    for name, _, selector in re.findall(r"\b(carousel_\w+)(\{([^}]*)\})?", expression):
        if name not in series:
            wrong.append(f"no metric {name}")
            continue
        used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
        wrong += [f"{name} has no label {label}" for label in used - series[name]]
    for inner in re.findall(r"\bby \(([^)]*)\)", expression):
        known = set.union(*(series.get(name, set()) for name in re.findall(r"\bcarousel_\w+", expression))) | EVERYWHERE
        wrong += [f"by ({inner}): no metric of the expression has {label}" for label in WORD.findall(inner) if label not in known]
    return wrong


def promtool(*words, **options):
    tool = shutil.which("promtool")
    if tool is None:
        raise unittest.SkipTest("promtool is not installed (Debian: apt-get install prometheus)")
    return subprocess.run([tool, *words], capture_output=True, text=True, check=False, timeout=60, **options)


class Monitoring(unittest.TestCase):
    def setUp(self):
        self.series = table()
        self.assertGreater(len(self.series), 40)

    def test_the_check_finds_unknown_metrics_and_labels(self):
        self.assertEqual(misuses('rate(carousel_frames_total{pipeline="x"}[1m])', self.series), [])
        self.assertEqual(misuses("carousel_frames", self.series), ["no metric carousel_frames"])
        self.assertEqual(misuses('carousel_frames_total{ring="x"}', self.series), ["carousel_frames_total has no label ring"])
        self.assertEqual(len(misuses("sum by (ring) (carousel_frames_total)", self.series)), 1)

    def test_the_dashboard_names_existing_metrics_and_labels_and_its_panels_do_not_overlap(self):
        dashboard = json.loads(text_of("pipelines/monitoring/grafana.json"))
        variables = {v["name"] for v in dashboard["templating"]["list"]} | {"__rate_interval"}
        taken, ids = set(), set()
        for panel in dashboard["panels"]:
            self.assertNotIn(panel["id"], ids)
            ids.add(panel["id"])
            for target in panel["targets"]:
                self.assertEqual(misuses(target["expr"], self.series), [], panel["title"])
                self.assertIn("carousel_", target["expr"])
                self.assertLessEqual(set(re.findall(r"\$\{?(\w+)", target["expr"])), variables)
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), set.union(*self.series.values()))
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_each_alert_names_existing_metrics_and_has_a_test(self):
        rules = text_of("pipelines/monitoring/alerts.yaml")
        alerts = re.findall(r"- alert: (\w+)\n\s+expr: (.*)\n", rules)
        self.assertEqual(len(alerts), rules.count("- alert:"))
        tests = text_of("pipelines/monitoring/alerts.test.yaml")
        for name, expression in alerts:
            self.assertEqual(misuses(expression, self.series), [], name)
            self.assertRegex(tests, rf"alertname: {name}, exp_alerts: \[\]")
            self.assertRegex(tests, rf"alertname: {name}\n\s+exp_alerts:\n")
            self.assertIn(f"`{name}`", text_of("pipelines/docs/metrics.md"))

    def test_promtool_accepts_the_alert_rules_and_their_tests_pass(self):
        for words in (("check", "rules", "alerts.yaml"), ("test", "rules", "alerts.test.yaml")):
            done = promtool(*words, cwd=FOLDER)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("SUCCESS", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
