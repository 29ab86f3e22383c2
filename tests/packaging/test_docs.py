"""The API reference is made without a warning, and knows what a user looks for.

Usage: test_docs.py ROOT CMAKE DOXYFILE
"""
import html
import os
import re
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
        cls.pages = {}
        for name in os.listdir(os.path.join(cls.folder.name, "html")):
            if name.endswith(".html"):
                with open(os.path.join(cls.folder.name, "html", name), encoding="utf-8") as f:
                    cls.pages[name] = html.unescape(re.sub(r"<[^>]*>", "", f.read()))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def doxygen(cls):
        return subprocess.run(["doxygen", DOXYFILE], cwd=cls.folder.name, capture_output=True, text=True, check=False)

    def test_1_it_is_made_without_a_warning(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))

    def test_2_what_a_user_writes_is_in_it(self):
        for page, words in {"classcarousel_1_1stage.html": ("configure", "process", "commits_on_host"),
                            "classcarousel_1_1frame.html": ("set_hash", "parameters"),
                            "classcarousel_1_1settings.html": ("integer", "did you mean"),
                            "classcarousel_1_1testing_1_1chain.html": ("fill", "give"),
                            "structcarousel_1_1ring_1_1parameter__schema.html": ("fields",),
                            "index.html": ("carousel new stage",)}.items():
            for word in words:
                self.assertIn(word, self.pages[page], page)
        self.assertIn("Life of a stage object", self.pages["stage_8hpp.html"])   # the head of the header
        self.assertFalse([name for name in self.pages if "find_plane" in name or "1_1detail_1" in name])

    def test_3_a_comment_that_is_wrong_is_an_error(self):
        with open(os.path.join(self.folder.name, "include/carousel/stage.hpp"), "a", encoding="utf-8") as f:
            f.write("namespace carousel {\n/// @nosuchcommand\nvoid wrong();\n}\n")
        self.assertNotEqual(self.doxygen().returncode, 0)


if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        skip("doxygen is not installed (apt-get install doxygen)")
    sys.exit(unittest.main(argv=sys.argv[:1]))
