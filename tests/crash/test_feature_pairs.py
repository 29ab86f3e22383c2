"""Features in pairs, in real runs: do frames advance, and is every reason for a stop true?

Usage: test_feature_pairs.py FOLDER_OF_PROGRAMS [all]
Without `all`: a few runs that together have each pair of features in all four states (both, one, the other, none). With `all`: in addition
a separate run for each pair of features, for campaigns. The seed is CAROUSEL_TEST_SEED, or the clock; it is printed.

A run is numbers -> work -> [over] -> [fork] -> sink. Each feature adds something to the pipeline, an action on the run, or both. After each
action frames have to reach the sinks within a timeout. If a stage is taken down, the run has to report it as its reason, and that stage has
to be down. At the end every frame is accounted for in each sink that counts.
"""
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "hosts"))
from link_pair import Host, end_process, wait_for  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[1])
FEATURES = ("vacant", "optional", "durable", "sampled", "instances", "outputs", "down", "restart", "adoption", "tombstones", "end")
FPS = 250
BOUND_S = 20   # for a busy machine, too: a healthy run advances within a second
PORT = 21000 + os.getpid() % 80 * 130
NUMBER = '{"type": "test.number", "constants": {}, "planes": [{"name": "value", "element": "u64", "shape": [1]}]}'
LINK = f'address = "127.0.0.1"\nport = {PORT}\ntoken = "link.token"\n'


def head(name):
    return f'[pipeline]\nname = "{name}"\ndevice = "cpu"\nsupervisor_grace_s = 20\nstall_timeout_ms = 3000\nallow_dead_letters = true\n'


def stage(name, program, inputs=(), more=""):
    run = "port" if program == "port" else program if program in ("carousel-send", "carousel-receive") else f"{PROGRAMS}/{program}"
    reads = f"inputs = [{', '.join(chr(34) + i + chr(34) for i in inputs)}]\n" if inputs else ""
    return f'\n[[stage]]\nname = "{name}"\nrun = "{run}"\n{reads}{more}'


class Run:
    """One pipeline with some features, and the actions on it."""

    def __init__(self, features, dice, frames):
        self.features, self.dice, self.frames = features, dice, frames
        self.folder = tempfile.mkdtemp(prefix="carousel-pairs-")
        self.carousel = os.path.join(PROGRAMS, "carousel")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        self.program = None
        with open(os.open(os.path.join(self.folder, "link.token"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write("ab" * 32)
        source = stage("numbers", "carousel-test-number", more=f"ends_at = {frames}\n" if "end" in features else "")
        self.upstream = None
        if "durable" in features:
            self.upstream = Host(self, "a", head("a") + f"fps = {FPS}\n" + source
                             + stage("send", "carousel-send", ["numbers"], LINK + 'release = "durable"\nin_flight = 16\n'))
            source = stage("numbers", "carousel-receive", more=LINK + f"in_flight = 4\nformat = '{NUMBER}'\n")
        self.main = Host(self, "b", head("b") + ("" if self.upstream else f"fps = {FPS}\n") + source + self.graph())

    def graph(self):
        on = self.features.__contains__
        text = stage("work", "carousel-test-number", ["numbers"], ("instances = 2\n" if on("instances") else "")
                     + ("die_at = 40\nmax_attempts = 1\n" if on("tombstones") else ""))
        last = ["work"]
        if on("sampled"):
            text += stage("over", "carousel-test-number", last, 'sampled = ["numbers"]\n')
            last = ["over"]
        if on("outputs"):
            text += stage("fork", "carousel-test-fork", last)
            last = ["fork", "fork.square"]
        # Before the sink: so these are passed by frames that the sink has yet to write.
        if on("vacant"):
            text += stage("eye", "port", last, 'vacant = "skip"\n')
        if on("optional"):
            text += stage("extra", "carousel-test-number", last, 'sink = true\noptional = true\nrestart = "no"\ndie_at = 5\ndie_incarnations = 1\n')
        if on("outputs"):
            return text + stage("sink", "carousel-test-fork", last)
        return text + stage("sink", "carousel-test-number", last, "sink = true\nfinish_ms = 2\n")

    def hosts(self):
        return [h for h in (self.main, self.upstream) if h]

    def evidence(self):
        ps = self.main.ps()
        return f"{ps.get('pipeline')}\n{[(s['name'], s['state'], s.get('frames')) for s in ps.get('stages') or []]}\n{ps.get('problems')}\n" + "".join(
            f"--- {h.name}\n{h.text()[-2500:]}" for h in self.hosts())

    def ended(self):
        return self.main.process.poll() is not None

    def count(self, name):
        return sum(s.get("frames") or 0 for s in self.main.ps().get("stages") or [] if s["name"] == name and s.get("instance", 0) == 0)

    def advances(self, after, name="sink", by=12):
        """Waits until frames reach the stage, with a timeout."""
        then, end = self.count(name), time.monotonic() + BOUND_S
        while self.count(name) < then + by:
            if self.ended():
                raise EarlyEnd()
            if time.monotonic() > end:
                raise AssertionError(f"{name} got no {by} frames within {BOUND_S} s after: {after}\n{self.evidence()}")
            time.sleep(0.02)

    def command(self, *words):
        done = subprocess.run([self.carousel, *words, "-p", "b"], env=self.environment, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != 0:
            if self.ended():
                raise EarlyEnd()
            raise AssertionError(f"carousel {' '.join(words)}: {done.stdout}{done.stderr}\n{self.evidence()}")

    def wait(self, what, holds):
        try:
            wait_for(what, lambda: self.ended() or holds(), BOUND_S)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.evidence()}") from None
        if self.ended():
            raise EarlyEnd()

    def victims(self):
        names = ["work", "sink"] + [n for n, f in (("over", "sampled"), ("fork", "outputs"), ("numbers", "durable")) if f in self.features]
        return [n + (".0" if n == "work" and "instances" in self.features else "") for n in names]

    # The action for each feature. A structural one has none.
    def do_vacant(self):
        for how in ("its program attaches", "its program attaches again"):
            log = open(os.path.join(self.folder, "eye.log"), "a", encoding="utf-8")
            self.program = subprocess.Popen([self.carousel, "record", "-p", "b", "eye", "--out", os.path.join(self.folder, "eye.mcap")],
                                            env=self.environment, cwd=self.folder, stdout=log, stderr=log)
            log.close()
            self.wait("a program is in the port", lambda: self.main.stage("eye").get("state") == "running")
            self.advances(how)
            self.advances(how, "eye")
            if how.endswith("attaches"):
                self.program.kill()
                self.program.wait()
                self.wait("the port is vacant", lambda: self.main.stage("eye").get("state") == "vacant")
                self.advances("the program of the port is killed")

    def do_optional(self):
        self.wait("extra is left out", lambda: self.main.stage("extra").get("state") == "failed")
        self.advances("extra has failed")
        self.command("up", "extra")
        if "adoption" in self.features and self.dice.random() < 0.5:
            self.do_adoption()
        self.advances("carousel up extra", "extra")
        self.advances("carousel up extra")

    def do_down(self):
        victim = self.dice.choice(self.victims() + (["extra"] if self.main.stage("extra").get("state") == "running" else []))
        name = victim.split(".", maxsplit=1)[0]
        self.command("down", victim)
        if victim == name:
            # A true reason: the run waits, reports this stage and no other one, and the stage is down.
            self.wait(f"the run names {name} as its reason",
                      lambda: (self.main.ps().get("pipeline") or {}).get("waits_for") == [name] and self.main.stage(name).get("state") == "down")
        else:
            self.wait(f"{victim} is down", lambda: any(s["state"] == "down" for s in self.main.ps().get("stages") or [] if s["name"] == name))
            self.advances(f"carousel down {victim}")   # the other instance continues
        self.command("up", victim)
        self.advances(f"carousel up {victim}")

    def do_restart(self):
        victim = self.dice.choice(self.victims())
        self.command("restart", victim)
        self.advances(f"carousel restart {victim}")

    def do_adoption(self):
        host = self.dice.choice(self.hosts())
        if host.process.poll() is not None or not [s for s in host.ps().get("stages") or [] if s.get("pid")]:
            raise EarlyEnd()
        adopted = host.text().count("adopted ")
        host.process.kill()
        host.process.wait()
        host.start()
        self.wait("the run is adopted", lambda: host.text().count("adopted ") > adopted)
        self.advances(f"the supervisor of {host.name} was killed and the next one has adopted its run")

    def go(self):
        for host in self.hosts():
            host.start()
        self.wait("the first frames", lambda: self.count("sink") > 45)   # after the tombstone
        actions = [f for f in ("vacant", "optional", "down", "restart", "adoption") if f in self.features]
        self.dice.shuffle(actions)
        for action in actions:
            getattr(self, "do_" + action)()
        if "end" not in self.features:
            self.hosts()[-1].process.send_signal(2)
        codes = [h.wait(60) for h in self.hosts()]
        assert codes == [0] * len(codes), f"{codes}\n{self.evidence()}"
        self.check()

    def check(self):
        for host in self.hosts():
            r = host.report()
            assert [r[k] for k in ("lost", "repeated", "torn")] == [0, 0, 0], f"{host.name}: {host.text()[-2500:]}"
        r = self.main.report()
        assert "end" not in self.features or r["frames"] == self.frames, (r["frames"], self.frames)
        for sink in r["sinks"]:
            if sink["stage"] == "eye":
                assert not sink["counted"] and sink["skipped"] > 0, sink
            else:
                assert sink["counted"] and sink["records"] + sink.get("skipped", 0) == r["frames"], (sink, r["frames"])
                assert (sink.get("skipped", 0) > 0) == (sink["stage"] == "extra"), sink
                assert sink["stage"] != "sink" or (sink["tombstones"] == 1) == ("tombstones" in self.features), sink

    def close(self):
        if self.program:
            end_process(self.program)
        for host in self.hosts():
            if host.process:
                host.end()
        shutil.rmtree(self.folder, True)


class EarlyEnd(Exception):
    """The stream has ended before all actions were done: the machine is slow."""


def try_features(features, seed):
    began = time.monotonic()
    for longer in (1, 2, 4):
        run = Run(features, random.Random(seed), FPS * longer * (4 + 3 * len(features & {"vacant", "optional", "down", "restart", "adoption"})) // 2)
        try:
            run.go()
            break
        except EarlyEnd:
            if "end" not in features or longer == 4:
                raise AssertionError(f"the run has ended before it was to\n{run.evidence()}") from None
        finally:
            run.close()
    print(f"{'+'.join(f for f in FEATURES if f in features) or 'none'}: passed in {time.monotonic() - began:.1f} s", flush=True)


def covering(dice, features):
    """Rows in which each pair of features has all four states."""
    wanted = {(f, g, x, y) for f, g in itertools.combinations(features, 2) for x in (0, 1) for y in (0, 1)}

    def covered(row):
        return {(f, g, int(f in row), int(g in row)) for f, g in itertools.combinations(features, 2)}

    rows = []
    while wanted:
        tries = [frozenset(f for f in features if dice.random() < 0.5) for _ in range(400)]
        rows.append(max(tries, key=lambda row: (len(covered(row) & wanted), -len(row))))
        wanted -= covered(rows[-1])
    return rows


def main():
    seed = int(os.environ.get("CAROUSEL_TEST_SEED", time.time_ns() % 1_000_000))
    print(f"seed {seed} (CAROUSEL_TEST_SEED repeats it)", flush=True)
    features = [f for f in FEATURES if f != "durable" or os.path.exists(os.path.join(PROGRAMS, "carousel-send"))]
    rows = covering(random.Random(seed), features)
    if sys.argv[2:] == ["all"]:
        rows += [frozenset(pair) for pair in itertools.combinations(features, 2)]
    only = os.environ.get("CAROUSEL_TEST_FEATURES")   # a row of a failed run: "vacant+durable"
    if only:
        rows = [frozenset(only.split("+"))]
    failed = 0
    for k, row in enumerate(rows):
        try:
            try_features(row, seed + k)
        except AssertionError as e:
            failed += 1
            print(f"FAILED: CAROUSEL_TEST_FEATURES={'+'.join(f for f in FEATURES if f in row)} CAROUSEL_TEST_SEED={seed + k}\n{e}", flush=True)
    print(f"{len(rows)} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
