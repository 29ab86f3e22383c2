#!/usr/bin/env python3
"""`carousel mesh-info`: a model per feature, its sizes, and what it reports as missing in pictures. Usage: test_mesh_info.py BUILD"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "stages", "assets"))
from make_models import MODELS, write_models  # noqa: E402
from moving_model import write_moving_model  # noqa: E402

CAROUSEL = os.path.join(os.path.abspath(sys.argv[1]), "carousel")


def mesh_info(*words):
    done = subprocess.run([CAROUSEL, "mesh-info", *words], capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, done.stdout, done.stderr


class MeshInfo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        write_models(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def info(self, name):
        code, out, err = mesh_info("--json", os.path.join(self.folder, name))
        self.assertEqual((code, err), (0, ""), name)
        return json.loads(out)

    def test_each_model_reports_exactly_the_feature_that_pictures_do_not_show(self):
        for name, (_, feature) in MODELS.items():
            with self.subTest(name):
                features = self.info(name + ".gltf")["features"]
                self.assertEqual([f["feature"] for f in features if not f["shown"] or f["needs_surface"]],
                                 [feature] if feature else [])
                self.assertTrue(all(f["shown"] for f in features if f["needs_surface"]))
                if feature in ("normal_maps", "alpha_mask", "unlit", "vertex_colors"):
                    self.assertTrue(features[0]["needs_surface"])
                if feature == "skins":
                    self.assertFalse(features[0]["shown"])

    def test_it_prints_sizes_of_the_scene_and_of_its_pictures(self):
        info = self.info("instances.gltf")
        self.assertEqual((info["triangles"], info["vertices"], info["instances"]), (6, 12, 3))
        self.assertEqual((info["low"], info["high"]), ([-1, -1, 0], [4, 4, 0]))
        self.assertEqual([(i["width"], i["height"]) for i in self.info("base_color.gltf")["images"]], [(2, 2)])

    def test_it_lists_the_animations_by_the_names_that_the_key_clip_takes(self):
        path = os.path.join(self.folder, "moving.gltf")
        write_moving_model(path)
        _, text, _ = mesh_info(path)
        self.assertIn("  clip       sway: 4 s\n  clip       rest: 4 s\n", text)
        self.assertEqual(self.info("animations.gltf")["clips"], [{"clip": "0", "seconds": 1}])

    def test_its_text_lists_what_is_missing_or_that_nothing_is(self):
        _, text, _ = mesh_info(os.path.join(self.folder, "cameras.gltf"))
        self.assertIn("2 triangles, 4 vertices", text)
        self.assertIn("Not in the picture:\n  1 camera of the file is not used: ", text)
        _, text, _ = mesh_info(os.path.join(self.folder, "normal_maps.gltf"))
        self.assertIn("Only with full_materials = true and a G-buffer (looks.toml):\n  normal_maps\n", text)
        self.assertNotIn("Not in the picture", text)
        _, text, _ = mesh_info(os.path.join(self.folder, "plain.gltf"))
        self.assertIn("The picture shows everything that the file contains.", text)
        with open(os.path.join(self.folder, "base_color.gltf"), encoding="utf-8") as file:
            model = json.load(file)
        model["images"] = [{"uri": "absent.png"}]
        path = os.path.join(self.folder, "no_image.gltf")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file)
        code, text, _ = mesh_info(path)
        self.assertEqual(code, 0)
        self.assertIn("absent.png", text)
        self.assertNotIn("shows everything", text)

    def test_a_file_that_cannot_be_read_is_one_error_message(self):
        path = os.path.join(self.folder, "broken.ply")
        with open(path, "w", encoding="utf-8") as file:
            file.write("ply\n")
        code, out, err = mesh_info(path)
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^error: .*broken\.ply: not a readable PLY file: its header has no end_header\n$")
        self.assertEqual(mesh_info("/absent.glb")[0], 2)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
