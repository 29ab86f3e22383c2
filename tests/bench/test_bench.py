"""`carousel bench raster` as a user starts it. Usage: test_bench.py FOLDER_OF_PROGRAMS."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAMS = os.path.abspath(sys.argv[1])
SMALL = ["--triangles", "300,2k", "--size", "96x54", "--frames", "3", "--threads", "2"]


def bench(*words, program="carousel", **environment):
    command = [os.path.join(PROGRAMS, program)] + (["bench"] if program == "carousel" else []) + ["raster", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, **environment})


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carousel-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_json_has_all_keys_and_its_figures_agree(self):
        done = bench(*SMALL, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual(report["frames"], 3)
        self.assertIsNone(report["peer"])
        self.assertIn(report["simd"], ("baseline", "avx2", "avx512"))
        self.assertGreater(report["copy_bytes_per_s"], 0)
        self.assertEqual([c["triangles_wanted"] for c in report["results"]], [300, 2000])
        for c in report["results"]:
            self.assertEqual((c["width"], c["height"]), (96, 54))
            self.assertEqual(c["listed"] + c["culled"] + c["dropped"], c["triangles"])
            self.assertLessEqual(c["triangles"], c["triangles_wanted"])
            for part in ("vertex_ms", "fragment_ms", "frame_ms", "cpu_ms"):
                self.assertGreater(c[part]["median"], 0)
                self.assertGreaterEqual(c[part]["p95"], c[part]["median"])
            self.assertGreaterEqual(c["frame_ms"]["p95"], max(c["vertex_ms"]["median"], c["fragment_ms"]["median"]))
            self.assertGreater(c["ring_bytes"], 96 * 54 * 4)
            self.assertGreater(c["floor_bytes"], c["ring_bytes"])
            self.assertAlmostEqual(c["floor_ms"], c["floor_bytes"] / report["copy_bytes_per_s"] * 1000)
            self.assertAlmostEqual(c["fraction_of_floor"], c["floor_ms"] / c["frame_ms"]["median"])
            for absent in ("raster_ms", "resolve_ms", "peer_frame_ms", "ratio_to_peer"):
                self.assertIsNone(c[absent])

    def test_the_picture_does_not_depend_on_threads_or_instruction_set(self):
        hashes = {}
        for words in (["--threads", "1"], ["--threads", "3"], ["--simd", "baseline"], ["--simd", "avx2"], ["--simd", "avx512"]):
            done = bench("--triangles", "2k", "--size", "96x54", "--frames", "1", "--json", *words)
            if done.returncode == 3 and words[0] == "--simd":
                self.assertIn("does not support it", done.stderr)
                print(f"{words[1]}: not on this processor")
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            hashes[" ".join(words)] = json.loads(done.stdout)["results"][0]["image_hash"]
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def test_the_stages_of_looks_are_measured_one_by_one(self):
        done = bench("--stages", "--scene", "torus-knots", "--triangles", "500", "--instances", "3", "--size", "96x54", "--frames", "1", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        [cell] = json.loads(done.stdout)["results"]
        parts = [cell[part]["median"] for part in ("vertex_ms", "fragment_ms", "shadow_ms", "light_ms", "taa_ms", "post_ms")]
        self.assertGreater(min(parts), 0)
        self.assertAlmostEqual(cell["frame_ms"]["median"], sum(parts))
        self.assertIsNone(cell["floor_ms"])
        self.assertIn("--stages excludes", bench("--stages", "--peer", "opengl").stderr)

    def test_files_are_written_and_the_plot_is_well_formed(self):
        plot, report, picture = (os.path.join(self.folder, name) for name in ("p.svg", "r.json", "p.png"))
        done = bench(*SMALL, "--plot", plot, "--json", report, "--picture", picture)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fragment", done.stdout)
        root = xml.parse(plot).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}circle")), 2)
        with open(report, encoding="utf-8") as f:
            self.assertEqual(len(json.load(f)["results"]), 2)
        with open(picture, "rb") as f:
            self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

    def test_a_peer_gives_the_ratio_of_the_medians_and_the_same_picture(self):
        done = bench(*SMALL, "--peer", "opengl", "--json")
        if done.returncode == 3:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["peer"]["api"], report["peer"]["timing"]), ("opengl", "wall"))
        self.assertTrue(report["peer"]["renderer"])
        for c in report["results"]:
            self.assertAlmostEqual(c["ratio_to_peer"], c["frame_ms"]["median"] / c["peer_frame_ms"]["median"])
            self.assertLess(c["peer_unlike"], 0.02)

    def test_errors_name_the_cause_and_start_nothing(self):
        for words, expected in ((["--triangels", "5"], 'did you mean "--triangles"'), (["--size", "12"], "is not a size"),
                                (["--frames", "many"], "--frames"), (["--peer", "vulkan"], "not one of opengl")):
            done = bench(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        done = bench("--scene", "teapot")
        self.assertEqual(done.returncode, 2)
        self.assertIn("teapot", done.stderr)
        done = bench(*SMALL, "--json", os.path.join(self.folder, "none", "r.json"))
        self.assertEqual(done.returncode, 75)
        self.assertIn("r.json", done.stderr)
        self.assertEqual(bench("--device", "cuda:77").returncode, 3)

    def test_without_its_program_carousel_names_what_to_build(self):
        lonely = os.path.join(self.folder, "carousel")
        try:
            os.link(os.path.join(PROGRAMS, "carousel"), lonely)
        except OSError:   # another file system, or another mount of this one
            shutil.copy(os.path.join(PROGRAMS, "carousel"), lonely)
        done = subprocess.run([lonely, "bench", "raster"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("carousel-bench does not exist", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
