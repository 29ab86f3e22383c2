"""`carousel set` with real pipelines: each change counts from exactly one frame on, under deaths; bad input changes nothing.
Usage: test_set.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import random
import struct

from live import PIPELINES, Live, is_alive, main, os, seeds, signal, time, wait_for

RECORD = struct.Struct("<QQIIIIQI20x")  # ledger/ledger.hpp
FRAMES = 400


class Set(Live):
    def hashes(self, report):
        """Of each frame, as the display has committed it."""
        with open(report.replace(".json", "-ledger-display.bin"), "rb") as f:
            data = f.read()
        return [RECORD.unpack_from(data, at)[6] for at in range(0, len(data), RECORD.size)]

    def finished(self, report):
        wait_for("the report", lambda: os.path.exists(report), 60)
        with open(report, encoding="utf-8") as f:
            return json.load(f)

    def calm(self, name, *settings):
        """A run without faults that begins with these parameters."""
        report = os.path.join(self.folder, name + ".json")
        words = [w for s in settings for w in ("--set", s)]
        done = self.carousel("run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu", "--size", "96x64", "--out", "", "--set", "geometry.triangles=500", "--frames",
                             str(FRAMES), "--report", report, "--name", name, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.hashes(report)

    def set_json(self, *words):
        done = self.carousel("set", *words, "-p", self.name, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_change_counts_from_the_frame_that_is_named_and_no_death_moves_it(self):
        seed = seeds.seed()
        print(f"seed {seed} (CAROUSEL_TEST_SEED)", flush=True)
        chance = random.Random(seed)
        report = os.path.join(self.folder, "run.json")
        self.up("--frames", str(FRAMES), "--fps", "60", "--report", report)
        wait_for("twenty frames", lambda: self.stage("display")["frames"] > 20, 30)
        changes = []
        for values in (("exposure=2.5",), ("exposure=0.5", "shading=normals"), ("wireframe=true",)):
            changes.append((self.set_json(*values)["from"], values))
            for _ in range(3):
                pid = self.stage(chance.choice(["geometry", "vertex", "fragment"]))["pid"]
                if pid:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(chance.uniform(0.05, 0.3))
        result = self.finished(report)
        self.assertEqual((result["lost"], result["repeated"], result["torn"]), (0, 0, 0))
        self.assertGreater(result["restarts"], 2)
        self.assertEqual([c["frame"] for c in result["parameters"]["changes"]], [frame for frame, _ in changes])
        self.assertEqual(result["parameters"]["changes"][1]["values"], {"exposure": 0.5, "shading": "normals"})
        got, settings, begin = self.hashes(report), {}, 0
        self.assertEqual(len(got), FRAMES)
        for k, (frame, values) in enumerate([*changes, (FRAMES, ())]):
            expected = self.calm(f"calm{k}", *(f"parameters.{key}={value}" for key, value in settings.items()))
            wrong = [n for n in range(begin, frame) if got[n] != expected[n]]
            self.assertEqual(wrong, [], f"frames {begin} to {frame - 1} with {settings}")
            settings.update(v.split("=") for v in values)
            begin = frame
        self.assertGreater(len(set(got)), FRAMES // 2)  # pictures that are all the same would prove nothing

    def test_what_is_set_is_shown_and_outlives_the_supervisor(self):
        self.up()
        self.assertIn("all parameters have their initial values", self.carousel("set").stdout)
        first = self.carousel("set", "spin=0.5", "eye=[0, 1, 3]")
        self.assertRegex(first.stdout, r"eye = \[0.0,1.0,3.0\], spin = 0.5 from frame \d+ on")
        self.assertIn("no change", self.carousel("set", "spin=0.5").stdout)
        pid = self.ps()["pipeline"]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for("the end of the supervisor", lambda: not is_alive(pid), 10)
        refused = self.carousel("set", "spin=0.1")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("was killed", refused.stderr)
        self.up()
        self.assertRegex(self.carousel("set").stdout, r"spin +0\.5 ")
        self.assertEqual(self.set_json("--reset")["number"], 2)
        self.assertRegex(self.carousel("set").stdout, r"spin +0\.01 ")

    def test_bad_input_is_refused_by_its_name_and_changes_nothing(self):
        self.up()
        for words, expected in ((("exposre=2",), 'did you mean "exposure"?'), (("exposure=5000",), "expected a number from 0 to 1000"),
                            (("spin=1", "light=[0,0,0]"), "a direction other than [0, 0, 0]"), (("near=200",), "near must be below far"),
                            (("shading=lift",), 'did you mean "lit"?'), (("eye=[1,2]",), "a list of 3 numbers"), (("exposure",), "expected KEY=VALUE"),
                            (("--reset", "spin=1"), "--reset can't be combined with KEY=VALUE")):
            done = self.carousel("set", *words, "-p", self.name)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(expected, done.stderr)
        self.assertEqual(self.set_json()["number"], 0)
        self.assertEqual(self.carousel("__complete", "set", "shading=n").stdout.split(), ["shading=normals"])
        self.assertEqual(self.carousel("__complete", "set", "expo").stdout.split(), ["exposure="])


if __name__ == "__main__":
    main()
