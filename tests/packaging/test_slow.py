"""Each test that the everyday run leaves out is one that there is. Usage: test_slow.py SOURCES BUILD CTEST"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCES, BUILD, CTEST = sys.argv[1:4]


class Slow(unittest.TestCase):
    def logs(self):
        """Which files ctest's log of BUILD is in, while it runs and afterwards."""
        names = [os.path.join(BUILD, "Testing", "Temporary", name) for name in ("LastTest.log", "LastTest.log.tmp")]
        return [os.stat(name).st_ino if os.path.exists(name) else None for name in names]

    def test_each_name_is_a_tests(self):
        before = self.logs()
        with open(os.path.join(SOURCES, "tests", "slow.txt"), encoding="utf-8") as f:
            names = [line.rstrip("\n") for line in f if not line.startswith("#")]
        # Asked from a folder of its own: whatever ctest is asked in BUILD, it begins BUILD's log anew, which tells why tests failed.
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as f:
                f.write(f"subdirs({json.dumps(BUILD)})\n")
            done = subprocess.run([CTEST, "--test-dir", folder, "--show-only=json-v1"], capture_output=True, text=True, check=True)
        self.assertEqual(self.logs(), before)
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
