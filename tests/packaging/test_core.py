"""The core without the extras (CAROUSEL_EXTRAS=OFF): its libraries link alone, its command line reports what is missing, its build
compiles no source of an extra, and the layer check refuses each include of an extra in the core.

Usage: test_core.py ROOT CMAKE CAROUSEL, where CAROUSEL is the program `carousel`, linked without the extras
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT, CMAKE, CAROUSEL = os.path.abspath(sys.argv[1]), *sys.argv[2:4]
sys.path.insert(0, os.path.join(ROOT, "tests", "packaging", "tidy"))
from tidy import CORE, EXTRAS, check_includes, layer_of, tracked_files  # noqa: E402

ABSENT = ("bench", "chaos", "doctor", "explain", "export", "hold", "host", "lab", "mesh-info", "new", "record", "recover")


def carousel(*words):
    done = subprocess.run([CAROUSEL, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class CommandLine(unittest.TestCase):
    def test_its_help_lists_the_commands_of_the_core_only(self):
        code, out, _ = carousel("--help")
        self.assertEqual(code, 0)
        self.assertIn("\n  run ", out)
        for name in ABSENT:
            self.assertNotIn(f"\n  {name} ", out)
            self.assertNotIn(f"carousel {name} ", out)

    def test_a_command_of_an_extra_is_answered_with_the_option_that_builds_it(self):
        for name in ABSENT:
            code, out, err = carousel(name)
            self.assertEqual((code, out), (2, ""))
            self.assertEqual(err, f"error: this build has no `carousel {name}`: configure with -DCAROUSEL_EXTRAS=ON\n")

    def test_a_pipeline_over_hosts_is_refused_with_the_option(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "two.toml")
            with open(file, "w", encoding="utf-8") as f:
                f.write('[pipeline]\nname = "two"\n[hosts.b]\naddress = "10.0.0.2"\n[[stage]]\nname = "a"\nrun = "x"\n'
                        '[[stage]]\nname = "c"\nrun = "x"\ninputs = ["a"]\nhost = "b"\n')
            code, _, err = carousel("run", file)
            self.assertEqual(code, 2, err)
            self.assertIn("this build has no links between hosts: configure with -DCAROUSEL_EXTRAS=ON", err)


class Build(unittest.TestCase):
    def test_it_is_configured_and_compiles_no_source_of_an_extra(self):
        with tempfile.TemporaryDirectory() as build:
            made = subprocess.run([CMAKE, "-S", ROOT, "-B", build, "-G", "Ninja", "-DCAROUSEL_EXTRAS=OFF", "-DCAROUSEL_CUDA=OFF",
                                   "-DCAROUSEL_UNITY=OFF", "-DCAROUSEL_TESTS=ON"], capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, made.stdout[-3000:] + made.stderr[-3000:])
            with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
                sources = [os.path.relpath(each["file"], ROOT) for each in json.load(f)]
            self.assertGreater(len(sources), 400)
            self.assertEqual([s for s in sources if not s.startswith("..") and layer_of(s) in EXTRAS], [])
            planned = subprocess.run(["ninja", "-C", build, "-n"], capture_output=True, text=True, check=False)
            self.assertEqual(planned.returncode, 0, planned.stdout[-3000:])


class Layers(unittest.TestCase):
    def test_no_folder_of_the_core_may_include_an_extra(self):
        folders = {layer_of(name): os.path.dirname(name) for name in tracked_files(ROOT) if name.endswith((".cpp", ".hpp", ".cu", ".cuh"))}
        self.assertEqual(set(CORE) - set(folders), set())
        for layer in CORE:
            for extra in set(EXTRAS) & set(folders):
                for path in (extra, os.path.relpath(folders[extra], folders[layer])):   # from the root, or from the file
                    found = list(check_includes(f"{folders[layer]}/file.cpp", f'#include "{path}/header.hpp"\n'))
                    self.assertEqual(len(found), 1, f"{layer} includes {path}/header.hpp")
                    self.assertIn("the core is built without extras", found[0][1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
