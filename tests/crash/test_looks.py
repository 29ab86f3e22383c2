"""Each stage of pipelines/looks.toml is killed, while a compare stage joins its pictures with a recording of an
undisturbed run: every picture of the comparison is black. A changed parameter is the control: it must be visible. The
state of taa has all earlier pictures and matrices, so a wrong one would show in all that follow. The same with a mesh
that moves (nodes, a skin, morph targets), of which the stages that make and use its pose are killed.
Usage: test_looks.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER [ROUNDS]"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "assets"))
from finished_run import finished_run, pipeline_text  # noqa: E402
from looks import COMPARED_STAGES, compared, without_taa  # noqa: E402
from moving_model import write_moving_model  # noqa: E402
from processes import end_process, wait_for  # noqa: E402

CAROUSEL = os.path.join(os.path.abspath(sys.argv[1]), "carousel")
LOOKS = os.path.join(os.path.abspath(sys.argv[2]), "looks.toml")
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 1
STAGES = [*COMPARED_STAGES, "display"]
FRAMES = 24 if ROUNDS == 1 else 20 * ROUNDS
WIDTH, HEIGHT = 96, 54
SMALL = ["--device", "cpu", "--size", f"{WIDTH}x{HEIGHT}", "--set", "geometry.triangles=300", "--set", "shadow.side=128", "--no-color"]


class Looks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-looks-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        with open(LOOKS, encoding="utf-8") as f:
            self.write_files(f.read())

    def write_files(self, text):
        """Writes the pipeline that is recorded, the one that is compared with the recording, and the control."""
        joined = compared(text, "run.mcap")
        for name, content in (("plain", text), ("compared", joined), ("changed", joined.replace("spin = 0.012\n", "spin = 0.0121\n"))):
            file = os.path.join(self.folder, f"{name}.toml")
            with open(file, "w", encoding="utf-8") as f:
                f.write(content)
            setattr(self, name, file)

    def run_frames(self, file, *more, frames=FRAMES):
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "w", encoding="utf-8") as log:
            run = subprocess.Popen([CAROUSEL, "run", file, *SMALL, "--frames", str(frames), "--report", os.path.join(self.folder, "report.json"), *more],
                                   env=self.environment, cwd=self.folder, stderr=log)
        self.addCleanup(end_process, run)
        return run

    def ended(self, run):
        code = run.wait(30 + 10 * ROUNDS)
        with open(self.log, encoding="utf-8") as f:
            self.assertEqual(code, 0, f.read())
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as f:
            return json.load(f)

    def stages(self):
        out = subprocess.run([CAROUSEL, "ps", "--json"], env=self.environment, capture_output=True, timeout=20, check=False).stdout
        return {s["name"]: s for s in json.loads(out or "{}").get("stages", [])}

    def bright_pictures(self, folder):
        black = bytes([0, 0, 0, 255]) * (WIDTH * HEIGHT)
        files = sorted(os.listdir(os.path.join(self.folder, folder)))
        bright = []
        for name in files:
            with open(os.path.join(self.folder, folder, name), "rb") as f:
                if f.read() != black:
                    bright.append(name)
        return len(files), bright

    def kill_while_comparing(self, killed, *more, recorded=()):
        """Records an undisturbed run, then kills the stages while a second run is compared with it."""
        self.ended(self.run_frames(self.plain, "--out", "", "--record", "post", "--record-to", os.path.join(self.folder, "run.mcap"), *recorded, *more))
        run = self.run_frames(self.compared, "--out", os.path.join(self.folder, "killed", "p_%04d.rgba"), "--fps", "12", *more)
        wait_for("all stages", lambda: len(self.stages()) == len(STAGES) and all(s.get("pid") for s in self.stages().values()))
        for _ in range(ROUNDS):
            for stage in killed:
                done = subprocess.run([CAROUSEL, "kill", stage], env=self.environment, capture_output=True, text=True, timeout=20, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            wait_for("the successors", lambda: all(s.get("state") == "running" for s in self.stages().values()))
        report = self.ended(run)
        self.assertGreaterEqual(report["restarts"], len(killed))
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])
        self.assertEqual(self.bright_pictures("killed"), (FRAMES, []))

    def test_a_mesh_that_moves_has_the_same_poses_after_kills(self):
        model = os.path.join(self.folder, "moving.gltf")
        write_moving_model(model)
        moving = ["--set", f"geometry.mesh={model}", "--set", "geometry.copies=2"]
        # The time of a frame is its number / fps, so all runs need the same fps.
        self.kill_while_comparing(["geometry", "vertex", "shadow", "fragment", "light", "taa", "post"], *moving, recorded=["--fps", "12"])
        self.ended(self.run_frames(self.compared, *moving, "--fps", "12", "--set", "geometry.speed=1.05", "--out", os.path.join(self.folder, "control", "p_%04d.rgba"), frames=3))
        count, bright = self.bright_pictures("control")
        self.assertEqual((count, len(bright)), (3, 2))   # the pose of frame 0 does not depend on the speed

    def pictures(self, folder):
        out = []
        for number in range(FRAMES):
            with open(os.path.join(self.folder, folder, f"p_{number:04d}.rgba"), "rb") as f:
                out.append(f.read())
        return out

    def test_changed_light_and_materials_apply_from_one_frame_on_also_after_kills_and_in_a_replay(self):
        def out(name):
            return ["--out", os.path.join(self.folder, name, "p_%04d.rgba")]
        # With taa, pictures after the change would also show those before it.
        file = os.path.join(self.folder, "single.toml")
        with open(LOOKS, encoding="utf-8") as looks, open(file, "w", encoding="utf-8") as f:
            f.write(without_taa(looks.read()))
        values = ["light=[0.2, 0.9, 0.4]", "sun=1.5", "fog=9", "tint=[1, 0.5, 0.25]", "roughness=0.3", "metallic=0.5", "bloom=0.4", "tone_map=aces", "exposure=1.2"]
        run = self.run_frames(file, *out("live"), "--fps", "12", "--record", "light", "--record-to", os.path.join(self.folder, "light.mcap"))
        wait_for("pictures", lambda: os.path.exists(os.path.join(self.folder, "live", "p_0002.rgba")))
        done = subprocess.run([CAROUSEL, "set", *values], env=self.environment, capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        first = int(re.search(r"from frame (\d+) on", done.stdout)[1])
        self.assertTrue(2 < first < FRAMES, done.stdout)
        for stage in ("light", "post", "geometry"):
            subprocess.run([CAROUSEL, "kill", stage], env=self.environment, capture_output=True, timeout=20, check=True)
        report = self.ended(run)
        self.assertEqual([report[k] for k in ("lost", "repeated", "torn")], [0, 0, 0])
        self.assertGreaterEqual(report["restarts"], 3)
        self.ended(self.run_frames(file, *out("before")))
        self.ended(self.run_frames(file, *out("after"), *(word for value in values for word in ("--set", f"parameters.{value}"))))
        live, before, after = (self.pictures(name) for name in ("live", "before", "after"))
        self.assertTrue(all(a != b for a, b in zip(before, after)))
        self.assertEqual([k for k in range(FRAMES) if live[k] != (before if k < first else after)[k]], [])
        # The recording has the values of each frame; post alone makes the same pictures from it.
        replay = os.path.join(self.folder, "replay.toml")
        with open(replay, "w", encoding="utf-8") as f:
            f.write(pipeline_text({"light": {"run": "carousel-replay", "file": "light.mcap"}, "post": {"run": "carousel-post", "inputs": ["light"]},
                                   "display": {"run": "carousel-display", "inputs": ["post"]}}, name="replay"))
        code, log = finished_run(os.path.dirname(CAROUSEL), self.folder, replay, "--size", f"{WIDTH}x{HEIGHT}", *out("replayed"))
        self.assertEqual(code, 0, log)
        self.assertEqual(self.pictures("replayed"), live)

    def test_the_comparison_stays_black_while_every_stage_is_killed(self):
        self.kill_while_comparing(STAGES)
        self.ended(self.run_frames(self.changed, "--out", os.path.join(self.folder, "control", "p_%04d.rgba"), frames=3))
        count, bright = self.bright_pictures("control")
        self.assertEqual((count, len(bright)), (3, 2))   # frame 0 does not depend on the spin


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
