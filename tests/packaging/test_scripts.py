"""Python scripts use no undefined names, and import no unused modules. Usage: test_scripts.py ROOT

pyflakes says so. A name that is missing is seen by nothing else where its line runs on a GPU alone. Lines with noqa are let be.
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy"))
from processes import skip  # noqa: E402
from tidy import tracked_files  # noqa: E402

ROOT = sys.argv[1]
TOOL = shutil.which("pyflakes3")


def offences(paths):
    """Lines FILE:LINE:COLUMN: MESSAGE, except for lines with noqa; a file that cannot be parsed is an offence, too."""
    done = subprocess.run([TOOL, *paths], capture_output=True, text=True, check=False)
    found = done.stderr.splitlines()
    for finding in done.stdout.splitlines():
        path, line, _ = finding.split(":", 2)
        with open(path, encoding="utf-8") as f:
            if "# noqa" not in f.readlines()[int(line) - 1]:
                found.append(finding)
    return found


class Scripts(unittest.TestCase):
    def test_of_the_tree(self):
        paths = [os.path.join(ROOT, name) for name in tracked_files(ROOT) if name.endswith(".py")]
        self.assertGreater(len(paths), 100)
        self.assertEqual(offences(paths), [])


if not TOOL:
    skip("pyflakes isn't installed (package: pyflakes3)")
if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
