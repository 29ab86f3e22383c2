"""The sources are formatted as .clang-format says. Usage: test_format.py ROOT

clang-format's output differs between versions: the tree is formatted by version 14, the one of Debian 12.
Another version is reported and no file is judged.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy"))
from processes import skip  # noqa: E402
from tidy import SOURCE, tracked_files  # noqa: E402

ROOT = sys.argv[1]
VERSION = "14"


def formatter():
    """The program, or None where this version isn't installed."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path and re.search(rf"version {VERSION}\.", subprocess.run([path, "--version"], capture_output=True, text=True,
                                                                      check=True).stdout):
            return path
    return None


def offences(tool, paths):
    done = subprocess.run([tool, f"--style=file:{ROOT}/.clang-format", "--dry-run", *paths], capture_output=True, text=True,
                          check=False)
    return [line for line in done.stderr.split("\n") if "-Wclang-format-violations" in line]


class Format(unittest.TestCase):
    def test_the_tree_is_formatted(self):
        paths = [os.path.join(ROOT, name) for name in tracked_files(ROOT) if name.endswith(SOURCE)]
        self.assertGreater(len(paths), 500)
        found = offences(TOOL, paths)
        self.assertEqual(found, [], f"{TOOL} -i FILE mends it")

    def test_a_line_of_111_columns_is_found(self):
        with tempfile.TemporaryDirectory(prefix="carousel-format-") as folder:
            path = os.path.join(folder, "long.cpp")
            with open(path, "w", encoding="utf-8") as f:
                f.write("int sum(int a, int b) { return a + b; }\nint x = " + " + ".join(["sum(1, 2)"] * 9) + ";\n")
            self.assertNotEqual(offences(TOOL, [path]), [])


TOOL = formatter()
if not TOOL:
    skip(f"clang-format {VERSION} isn't installed (package: clang-format on Debian 12, clang-format-14 elsewhere)")
if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
