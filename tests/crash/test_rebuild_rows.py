"""DEATHS.md compared with the sources: each crash point of a rebuild has a row, and each test that it names exists.
Usage: test_rebuild_rows.py SOURCE_FOLDER"""
import os
import re
import sys
import unittest

ROOT = sys.argv.pop(1)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


PAGE = read("tests", "crash", "DEATHS.md")
TESTS = read("tests", "crash", "test_rebuild_deaths.cpp") + read("tests", "crash", "test_fallback.cpp")


class Rows(unittest.TestCase):
    def test_each_crash_point_of_a_rebuild_has_a_row_and_dies_in_a_test(self):
        points = re.findall(r"^    (\w+),", read("shared", "core", "crash_point.hpp").split("a rebuild (B1 to B4)")[1], re.MULTILINE)
        self.assertGreater(len(points), 5)
        for point in points:
            self.assertRegex(PAGE, rf"\| B\d \| `{point}` \|")
        for point in re.findall(r"`(\w+)`", "".join(line.split("|")[2] for line in PAGE.splitlines() if line.startswith("| ") and "`" in line)):
            self.assertRegex(TESTS, rf"\b{point}\b")

    def test_each_test_that_is_named_is_there(self):
        named = set(re.findall(r'"([^"]+)"', PAGE))
        self.assertGreater(len(named), 4)
        cases = {"".join(re.findall(r'"((?:[^"\\]|\\.)*)"', pieces)) for pieces in re.findall(r'TEST_CASE\(((?:\s*"(?:[^"\\]|\\.)*")+)', TESTS)}
        self.assertEqual(named - cases, set())


if __name__ == "__main__":
    unittest.main()
