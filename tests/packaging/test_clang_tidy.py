"""clang_tidy.py looks at what changed, and at nothing else. Usage: test_clang_tidy.py"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import SKIPPED, skip  # noqa: E402

WRONG = "struct BadName {};\nint main() { return 0; }\n"


class ClangTidy(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="carousel-tidy-test-")
        self.root = os.path.realpath(self.folder.name)
        shutil.copy(os.path.join(HERE, "../../.clang-tidy"), self.root)
        self.git("init", "-q")
        for name in ("old.cpp", "changed.cpp"):
            self.write(name, WRONG)
        commands = [{"directory": self.root, "file": os.path.join(self.root, name), "command": f"c++ -std=c++20 -c {name}"}
                    for name in ("old.cpp", "changed.cpp", "new.cpp")]
        self.write("compile_commands.json", json.dumps(commands))
        self.git("add", "-A")
        self.git("commit", "-qm", "one")

    def tearDown(self):
        self.folder.cleanup()

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b.c", *words], check=True)

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as f:
            f.write(text)

    def look(self, *words):
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "clang_tidy.py"), self.root, self.root, *words],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_findings_are_those_of_changed_and_new_sources(self):
        self.assertEqual(self.look("--base", "HEAD")[0], 0)
        self.write("changed.cpp", WRONG + "\n")
        self.write("new.cpp", WRONG)
        code, text = self.look("--base", "HEAD")
        self.assertEqual(code, 1, text)
        self.assertIn("changed.cpp:1:8: warning: invalid case style for struct 'BadName'", text)
        self.assertIn("new.cpp:1:8", text)
        self.assertNotIn("old.cpp", text)
        self.assertIn("in 1 sources that changed since HEAD (1 more were not looked at", self.look("--base", "HEAD", "--most", "1")[1])

    def test_sources_that_are_compiled_together_are_looked_at_one_by_one(self):
        os.makedirs(os.path.join(self.root, "Unity"))
        together = os.path.join(self.root, "Unity/unity_0_cxx.cxx")
        with open(together, "w", encoding="utf-8") as f:
            f.writelines(f'/* {name} */\n#include "{os.path.join(self.root, name)}"\n' for name in ("old.cpp", "changed.cpp"))
        self.write("compile_commands.json", json.dumps([{"directory": self.root, "file": together, "command": f"c++ -std=c++20 -c {together}"}]))
        self.write("changed.cpp", WRONG + "\n")
        code, text = self.look("--base", "HEAD")
        self.assertEqual(code, 1, text)
        self.assertIn("changed.cpp:1:8", text)
        self.assertNotIn("old.cpp", text)

    def test_a_source_that_does_not_compile_is_a_finding(self):
        self.write("changed.cpp", "int main( {\n")
        self.assertEqual(self.look("--base", "HEAD")[0], 1)

    def test_a_base_that_git_does_not_know_is_a_skip_with_its_reason(self):
        code, text = self.look("--base", "HEAD~1")
        self.assertEqual(code, SKIPPED)
        self.assertIn("git knows no commit HEAD~1", text)


if not shutil.which("clang-tidy"):
    skip("clang-tidy isn't installed (package: clang-tidy)")
if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
