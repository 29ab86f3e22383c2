"""A real Prometheus scrapes a run while its stages, its supervisor and its web UI are killed.
Usage: prometheus_chaos.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [picture.png]

First stages and supervisors are killed: no scrape may fail. Then the web UI is killed as well. In the whole time no counter may
decrease, and at the end the counters must equal what was done. CAROUSEL_TEST_SEED: the kills; CAROUSEL_TEST_SCALE: the duration."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
import urllib.parse
import urllib.request

import dashboard_picture
from web_rig import Rig, free_port, wait_for
import seeds  # web_rig has made it findable
from processes import end_process, skip

Rig.programs, Rig.pipelines = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PICTURE = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
MONITORING = os.path.join(Rig.pipelines, "monitoring")
PHASE_S = seeds.scaled(40)
CONFIGURATION = """global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs: [{{job_name: carousel, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
"""
COUNTERS = '{__name__=~"carousel_.*_(total|bucket|count|sum)"}'


class Prometheus:
    def __init__(self, folder, scraped_port):
        self.port = free_port()
        self.log = os.path.join(folder, "prometheus.log")
        configuration = os.path.join(folder, "prometheus.yml")
        with open(configuration, "w", encoding="utf-8") as f:
            f.write(CONFIGURATION.format(rules=os.path.join(MONITORING, "alerts.yaml"), port=scraped_port))
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder}/prometheus", "--log.level=warn",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def ask(self, path, **words):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def is_ready(self):
        try:
            return self.ask("query", query="up")["result"] != []
        except OSError:
            return False

    def query(self, expression):
        """[(labels, value)] at present."""
        return [(r["metric"], float(r["value"][1])) for r in self.ask("query", query=expression)["result"]]

    def value(self, expression):
        found = self.query(expression)
        return found[0][1] if found else None


class Chaos(Rig):
    def setUp(self):
        super().setUp()
        self.dice = random.Random(seeds.seed())
        self.port = free_port()
        self.kills = {"stage": 0, "supervisor": 0, "web": 0}
        self.web_kills = 0   # since the present supervisor started

    def start_supervisor(self):
        return self.start_run("--http", str(self.port), "--set", "supervisor_grace_s=60", "--set", "vertex.standby=true")

    def living(self):
        """{stage: pid of its process}, by the web UI."""
        return {s["name"]: p["pid"] for s in self.dashboard.json()["stages"] for p in s["processes"] if p["state"] == "running" and p["pid"]}

    def kill_stage(self):
        stages = self.living()
        if not stages:
            return
        try:
            os.kill(stages[self.dice.choice(sorted(stages))], signal.SIGKILL)
            self.kills["stage"] += 1
        except ProcessLookupError:
            pass

    def replace_supervisor(self):
        self.run_process.kill()
        self.run_process.wait()
        self.kills["supervisor"] += 1
        self.web_kills = 0
        time.sleep(self.dice.uniform(0, 2))
        if self.dice.random() < 0.5:
            self.kill_stage()   # the next supervisor finds it dead
        self.run_process = self.start_supervisor()
        self.wait_for_supervisor()

    def wait_for_supervisor(self):
        wait_for("a supervisor", lambda: self.answers(self.dashboard) and self.dashboard.json()["pipeline"]["state"] == "running", 60)

    def web_pid(self):
        """The process that serves this run, which may be a child of an earlier supervisor."""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    words = f.read().decode().split("\0")
            except OSError:
                continue
            if words[0].endswith("carousel-web") and any(word.rpartition(":")[2] == str(self.port) for word in words):
                return int(name)
        raise AssertionError("no web UI")

    def kill_web(self):
        if self.web_kills == 3:   # a supervisor abandons one that dies four times in a row
            self.replace_supervisor()
        self.web_kills += 1
        os.kill(self.web_pid(), signal.SIGKILL)
        self.kills["web"] += 1
        time.sleep(0.5)
        wait_for("the next web UI", lambda: self.answers(self.dashboard), 20)

    def harm(self, actions, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.dice.choice(actions)()
            time.sleep(self.dice.uniform(0.5, 3))

    def all_work(self):
        """Every stage runs, and the supervisor has counted every kill."""
        counted = self.prometheus.value('sum(carousel_stage_exits_total{reason="signal"})') or 0
        return len(self.living()) == 4 and counted >= self.kills["stage"]

    def test_no_counter_decreases_and_no_scrape_fails_while_stages_and_supervisors_are_killed(self):
        self.run_process = self.start_supervisor()
        self.dashboard = self.dashboard_of(self.run_process)
        wait_for("frames", lambda: self.dashboard.json()["phase"] == "running" and self.dashboard.frames() > 5)
        prometheus = self.prometheus = Prometheus(self.folder, self.port)
        self.addCleanup(end_process, prometheus.process)
        wait_for("the first scrape", prometheus.is_ready)
        began = time.time()
        self.harm([self.kill_stage, self.kill_stage, self.replace_supervisor], PHASE_S)
        wait_for("all stages", self.all_work)
        passed = int(time.time() - began)
        self.assertEqual(prometheus.value(f"min_over_time(up[{passed}s])"), 1, "a scrape has failed")
        self.assertGreater(prometheus.value(f"count_over_time(up[{passed}s])"), 1.8 * passed)
        self.harm([self.kill_stage, self.replace_supervisor, self.kill_web], PHASE_S / 2)
        self.kill_web()
        wait_for("all stages", self.all_work)
        time.sleep(3)   # two readings of the ledgers, and a scrape
        passed = int(time.time() - began) + 5
        print(f"{passed} s, killed: {self.kills}; {prometheus.value('count(' + COUNTERS + ')'):.0f} series of counters")
        self.check_counters(prometheus, passed)
        self.check_rules(prometheus)
        panels = dashboard_picture.panels_of(prometheus.ask, MONITORING, "demo", began, time.time())
        self.assertEqual([p.title for p in panels if p.is_empty() and not p.is_optional()], [])
        if PICTURE:
            dashboard_picture.draw(panels, PICTURE)
        self.run_process.send_signal(signal.SIGINT)
        self.assertEqual(self.run_process.wait(60), 0, self.log(self.run_process))

    def check_counters(self, prometheus, passed):
        names = [labels["__name__"] for labels, _ in prometheus.query(f"group by (__name__) ({COUNTERS})")]
        resets = [(name, labels, n) for name in names for labels, n in prometheus.query(f"resets({name}[{passed}s])")]
        self.assertGreater(len(resets), 100)
        self.assertEqual([r for r in resets if r[2] != 0], [])
        for metric in ("lost", "repeated", "torn"):
            found = prometheus.query(f"carousel_{metric}_frames_total")
            self.assertGreater(len(found), 0, metric)
            self.assertEqual([labels for labels, n in found if n != 0], [])
        self.assertEqual(prometheus.value("carousel_supervisor_adoptions_total"), self.kills["supervisor"])
        self.assertEqual(prometheus.value('sum(carousel_stage_exits_total{reason="signal"})'), self.kills["stage"])
        self.assertEqual(prometheus.value("sum(carousel_stage_restarts_total)"), self.kills["stage"])
        known = prometheus.value("sum(carousel_takeover_duration_seconds_count)")
        self.assertGreater(known, 0)
        self.assertLessEqual(known, self.kills["stage"])

    def check_rules(self, prometheus):
        rules = [r for g in prometheus.ask("rules")["groups"] for r in g["rules"]]
        self.assertGreater(len(rules), 10)
        self.assertEqual([(r["name"], r.get("lastError")) for r in rules if r["health"] != "ok"], [])
        self.assertEqual(next(r for r in rules if r["name"] == "CarouselFramesDamaged")["state"], "inactive")


if __name__ == "__main__":
    if shutil.which("prometheus") is None:
        skip("prometheus is not installed (Debian: apt-get install prometheus)")
    unittest.main(argv=sys.argv[:1], verbosity=2)
