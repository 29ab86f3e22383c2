#!/usr/bin/env python3
"""Kills the stages of a pipeline with real signals while it runs, and compares the frames of its sinks with a
run without faults.

  tests/crash/campaign.py --build build/release --pipeline pipelines/demo.toml --device cpu --kills 300

With --supervisor-kills N the supervisor itself is killed N times in between (SIGKILL); the same command is started again a moment
later and must take the run over. Every kill goes to a pid read from `carousel ps`, at a random moment; CAROUSEL_TEST_SEED repeats the plan, CAROUSEL_TEST_SCALE multiplies the kills; each kill is in the log (--log FILE). The run
ends when all kills were made. Exit code 0: lost = repeated = torn = 0, the same image_hash as the run without
faults, and the pids of
stages that were not killed never changed. The last output is a table with the kills by stage and by job
state, detection and fence.
"""
import argparse, json, os, random, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from seeds import scaled, seed  # noqa: E402

SUPERVISOR = "(supervisor)"
SIGNALS = {"kill": signal.SIGKILL, "abort": signal.SIGABRT, "segv": signal.SIGSEGV, "term": signal.SIGTERM, "stop": signal.SIGSTOP}


class campaign:
    def __init__(self, a):
        self.a = a
        a.seed, a.kills, a.supervisor_kills = seed(), scaled(a.kills), scaled(a.supervisor_kills)
        self.dir = tempfile.mkdtemp(prefix="carousel-campaign-")
        self.name = f"campaign-{os.getpid()}"
        self.random = random.Random(a.seed)
        self.log = open(a.log, "w") if a.log else None
        self.kills = {}
        self.hit_pids = set()
        self.not_adopted = 0

    def program(self, *args):
        return [os.path.join(self.a.build, "carousel"), *args]

    def run_command(self, frames, report, name, extra=()):
        a = self.a
        out = self.program("run", a.pipeline, "--name", name, "--frames", str(frames), "--report", report, "--out", "", "--no-color")
        if a.device: out += ["--device", a.device]
        if a.size: out += ["--size", a.size]
        for s in [*a.set, *extra]: out += ["--set", s]
        return out

    def note(self, **what):
        if self.log: print(json.dumps({"t": round(time.time(), 4), **what}), file=self.log, flush=True)

    def stages(self):
        p = subprocess.run(self.program("ps", "-p", self.name, "--json"), capture_output=True, text=True)
        if p.returncode != 0: return []
        try: answer = json.loads(p.stdout)
        except ValueError: return []
        if isinstance(answer, list): answer = answer[0] if answer else {}
        return [s for s in answer.get("stages", []) if s.get("pid")]

    def plan(self, stages):
        """The stages to hit, in random order, each equally often."""
        names = self.a.stages.split(",") if self.a.stages else sorted({s["name"] for s in stages})
        hits = [names[k % len(names)] for k in range(self.a.kills)]
        hits += [SUPERVISOR] * self.a.supervisor_kills
        self.random.shuffle(hits)
        return hits

    def start(self):
        command = self.run_command(self.a.frames, self.report, self.name, [f"display.delay_ms={self.a.delay_ms}"] if self.a.delay_ms else ())
        self.run = subprocess.Popen(command, stdout=self.run_log, stderr=self.run_log, start_new_session=True)

    def kill_supervisor(self):
        """Stages continue meanwhile; the successor is up once it replies."""
        self.run.kill()
        self.run.wait()
        self.note(supervisor=self.run.pid, signal="kill")
        time.sleep(self.random.uniform(0, 0.4))
        self.start()
        until = time.time() + 20
        while not self.stages() and self.run.poll() is None and time.time() < until: time.sleep(0.02)
        self.supervisors += 1

    def disturb(self):
        while not (stages := self.stages()) or any(s["state"] != "running" for s in stages):
            if self.run.poll() is not None: return
            time.sleep(0.05)
        last = {}  # (stage, instance) -> pid of those that have not been hit since
        hits = self.plan(stages)
        while hits and self.run.poll() is None:
            name = hits[-1]
            time.sleep(self.random.uniform(self.a.pause_ms * 0.2, self.a.pause_ms * 1.8) / 1000)
            if name == SUPERVISOR:
                self.kill_supervisor()
                hits.pop()
                continue
            now = self.stages()
            for s in now:
                key = (s["name"], s.get("instance", 0))
                if key in last and last[key] != s["pid"] and last[key] not in self.hit_pids:
                    self.innocent += 1
                    self.note(changed=key, before=last[key], now=s["pid"])
                last[key] = s["pid"]
            victims = [s for s in now if s["name"] == name and (not self.a.at_work or s.get("commits"))]
            if self.a.at_once and self.random.random() < 0.05: victims = now
            elif victims: victims = [self.random.choice(victims)]
            what = self.random.choice(self.a.signals.split(","))
            hit = [v for v in victims if self.hit(v, what)]
            for v in hit:
                self.hit_pids.add(v["pid"])
                self.kills[v["name"]] = self.kills.get(v["name"], 0) + 1
                self.note(stage=v["name"], pid=v["pid"], signal=what)
            if any(v["name"] == name for v in hit): hits.pop()

    def hit(self, v, what):
        """With --through-carousel the supervisor sends the signal and so knows the time: that gives the detection times."""
        if self.a.through_carousel:
            name = f"{v['name']}.{v['instance']}" if v.get("instance") else v["name"]
            return subprocess.run(self.program("kill", name, "-p", self.name), capture_output=True).returncode == 0
        try: os.kill(v["pid"], SIGNALS[what])
        except ProcessLookupError: return False
        return True

    def main(self):
        a = self.a
        self.innocent = self.supervisors = 0
        reports = os.path.join(self.dir, "disturbed.json"), os.path.join(self.dir, "calm.json")
        print(f"seed {a.seed} (CAROUSEL_TEST_SEED): {a.kills} x {a.signals} at {a.pipeline} on {a.device or 'its own device'}", flush=True)
        self.run_log = open(os.path.join(self.dir, "run.log"), "a")
        self.report = reports[0]
        self.start()
        try:
            self.disturb()
            subprocess.run(self.program("down", "-p", self.name), capture_output=True)
            self.run.wait(timeout=a.timeout)
        except subprocess.TimeoutExpired:
            print(f"the run did not end within {a.timeout} s:", self.stages())
            os.killpg(self.run.pid, signal.SIGTERM)
            self.run.wait(timeout=30)
        if not os.path.exists(reports[0]):
            print(f"no report (exit code {self.run.returncode}); the log:", open(self.run_log.name).read()[-3000:])
            return 1
        got = json.load(open(reports[0]))
        calm = subprocess.run(self.run_command(got["frames"], reports[1], self.name + "-calm"), capture_output=True, text=True, timeout=a.timeout)
        if calm.returncode != 0:
            print("the fault-free run failed:", calm.stderr[-2000:])
            return 1
        return self.judge(got, json.load(open(reports[1])), self.run.returncode)

    def judge(self, got, calm, code):
        total = sum(self.kills.values())
        # At this point, as a supervisor replies before its run's memory is released and it logs that.
        self.not_adopted = self.supervisors - open(self.run_log.name).read().count(f"adopted {self.name}")
        print(f"kills {total} ({', '.join(f'{k} {v}' for k, v in sorted(self.kills.items()))}), at job states {got.get('kills_at')}")
        print(f"frames {got['frames']}, lost {got['lost']}, repeated {got['repeated']}, torn {got['torn']}, dead letters "
              f"{got.get('dead_letter_count', 0)}, pids of others changed {self.innocent}")
        if self.supervisors: print(f"supervisors killed {self.supervisors}, their runs not taken over {self.not_adopted}, by the report {got.get('taken_over')}")
        for k in ("detection_ms", "fence_ms", "takeover_ms", "standby_takeover_ms", "standby_takeovers"):
            if k in got: print(f"{k}: {got[k]}")
        print(f"image_hash {got['image_hash']}, in the fault-free run {calm['image_hash']}; {got['frames_per_second']:.1f} frames/s, in the fault-free run "
              f"{calm['frames_per_second']:.1f}")
        names = got.get("image_hash_of"), calm.get("image_hash_of")
        if names[0] != names[1]: print(f"the hashes can't be compared: {names[0]}, in the fault-free run {names[1]}")
        same = names[0] == names[1] and got["image_hash"] == calm["image_hash"]
        bad = code != 0 or got["lost"] or got["repeated"] or got["torn"] or not same or self.innocent or self.not_adopted
        bad = bad or got.get("taken_over", 0) != self.supervisors
        few = total < self.a.kills
        if few: print(f"only {total} of {self.a.kills} kills were made before the run ended: give more --frames")
        print("FAILED" if bad or few else "OK", f"(exit code of the run {code}; {self.dir})")
        return 1 if bad or few else 0


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release"), p.add_argument("--pipeline", default="pipelines/demo.toml")
    p.add_argument("--device", default=""), p.add_argument("--size", default="")
    p.add_argument("--frames", type=int, default=100_000_000), p.add_argument("--kills", type=int, default=100)
    p.add_argument("--stages", default="")
    p.add_argument("--signals", default="kill"), p.add_argument("--pause-ms", type=float, default=60)
    p.add_argument("--delay-ms", type=int, default=0), p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--set", action="append", default=[]), p.add_argument("--log", default="")
    p.add_argument("--supervisor-kills", type=int, default=0, help="so many SIGKILLs of the supervisor, in between")
    p.add_argument("--at-work", action="store_true", help="only processes that have committed a frame: none that is only starting")
    p.add_argument("--at-once", action="store_true", help="now and then all stages at the same moment")
    p.add_argument("--through-carousel", action="store_true", help="by `carousel kill` (SIGKILL) instead of kill(2)")
    sys.exit(campaign(p.parse_args()).main())
