"""The API reference is generated without a warning.

Usage: test_docs.py ROOT CMAKE DOXYFILE
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

ROOT, CMAKE, DOXYFILE = sys.argv[1:4]


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="carousel-docs-")
        subprocess.run([CMAKE, f"-DSOURCE={ROOT}", "-DTO=" + os.path.join(cls.folder.name, "include"), "-P",
                        os.path.join(ROOT, "cmake/install_headers.cmake")], stdout=subprocess.DEVNULL, check=True)
        cls.done = cls.doxygen()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def doxygen(cls):
        return subprocess.run(["doxygen", DOXYFILE], cwd=cls.folder.name, capture_output=True, text=True, check=False)

    def test_it_is_made_without_a_warning(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))


if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        skip("doxygen is not installed (apt-get install doxygen)")
    sys.exit(unittest.main(argv=sys.argv[:1]))
