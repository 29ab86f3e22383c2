"""Each test that tiers.txt names exists, is named once, and each recovery path has a test in the everyday tier.

Usage: test_tiers.py BUILD CTEST
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, CTEST = sys.argv[1:3]
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiers.txt")
# Built only where UCX, Python's headers, nvcc, a window library or no sanitizer is present.
OPTIONAL = re.compile(r"hosts|python|packaging|viewer|ports|recordings|test_(viewer|link|durable_watch|transport|pieces|web_guard)\b")


def tiers():
    """{tier: {heading: [test, ...]}}; a heading is a line "# ..." directly before tests."""
    found, tier, heading = {}, None, ""
    with open(LIST, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if m := re.fullmatch(r"\[(\w+)\]", line):
                tier, heading = found.setdefault(m[1], {}), ""
            elif line.startswith("# "):
                heading = line[2:]
                if tier is not None:   # not the head of the file
                    tier.setdefault(heading, [])
            elif line:
                tier.setdefault(heading, []).append(line)
    return found


def tests_of_the_build():
    """{name: labels}. ctest is called from another folder: in BUILD it would overwrite the log of the run that this test belongs to."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as f:
            f.write(f"subdirs({json.dumps(BUILD)})\n")
        done = subprocess.run([CTEST, "--test-dir", folder, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {t["name"]: next((p["value"] for p in t["properties"] if p["name"] == "LABELS"), []) for t in json.loads(done.stdout)["tests"]}


class Tiers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tiers, cls.tests = tiers(), tests_of_the_build()
        # A program that this tier does not build represents all of its tests.
        cls.not_built = {name.split("_NOT_BUILT")[0] for name in cls.tests if "_NOT_BUILT" in name}

    def test_each_name_is_a_test(self):
        self.assertGreater(len(self.tests), 500, "the tests of this build are not known")
        for tier, paths in self.tiers.items():
            for name in sum(paths.values(), []):
                program = name.split(":")[0]
                if name not in self.tests and (OPTIONAL.match(program) or program in self.not_built):
                    continue
                self.assertIn(name, self.tests, f"tiers.txt [{tier}] names a test that does not exist")
                self.assertIn(tier, self.tests[name])

    def test_each_recovery_path_has_an_everyday_test(self):
        self.assertGreater(len(self.tiers["everyday"]), 20)
        for path, tests in self.tiers["everyday"].items():
            self.assertTrue(tests, f"tiers.txt lists no everyday test that proves: {path}")

    def test_each_name_stands_once(self):
        names = [name for paths in self.tiers.values() for tests in paths.values() for name in tests]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_a_test_outside_the_list_with_processes_is_not_everyday(self):
        everyday = {name for tests in self.tiers["everyday"].values() for name in tests}
        wrong = [name for name, labels in self.tests.items() if "processes" in labels and "everyday" in labels and name not in everyday]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
