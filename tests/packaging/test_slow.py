"""Each test that the everyday run leaves out is one that there is. Usage: test_slow.py SOURCES BUILD CTEST"""
import json
import os
import subprocess
import sys
import unittest

SOURCES, BUILD, CTEST = sys.argv[1:4]


class Slow(unittest.TestCase):
    def test_each_name_is_a_tests(self):
        with open(os.path.join(SOURCES, "tests", "slow.txt"), encoding="utf-8") as f:
            names = [line.rstrip("\n") for line in f if not line.startswith("#")]
        done = subprocess.run([CTEST, "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True)
        tests = {t["name"]: {p["name"]: p["value"] for p in t["properties"]} for t in json.loads(done.stdout)["tests"]}
        self.assertGreater(len(tests), 500, "the tests of this build are not known")
        for name in names:
            # Those of programs that a build without UCX, Python or nvcc hasn't are not there.
            if name not in tests and name.split(":")[0] in ("hosts", "python", "packaging", "viewer"): continue
            self.assertIn(name, tests, "tests/slow.txt names a test that there isn't")
            self.assertNotIn("long", tests[name].get("LABELS", []), "it is a long test by its label")
        self.assertEqual(len(names), len(set(names)), "a name stands there twice")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
