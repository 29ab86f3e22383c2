"""The commands of stages/README.md, one after the other in one shell, as a reader types them. Its blocks of commands are those that
begin with ```sh.

Usage: test_tutorial.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import os
import re
import subprocess
import sys
import unittest

import document_commands
from installed import Installation


class Tutorial(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])
        with open(os.path.join(cls.all.root, "stages/README.md"), encoding="utf-8") as f:
            cls.commands = document_commands.commands_of(f.read())
        cls.transcript = cls.follow()

    @classmethod
    def tearDownClass(cls):
        for name in ("blur", "lidar"):
            subprocess.run([cls.all.program("carousel"), "down", "-p", name], env=cls.all.environment, capture_output=True, check=False)
        cls.all.end()

    @classmethod
    def follow(cls):
        """(command, exit code, what it printed) for each, up to the first that fails."""
        steps = [(command, command.replace("/opt/carousel", cls.all.prefix).replace("build/release", cls.all.build), 0) for command in cls.commands]
        done = document_commands.follow(steps, cls.all.folder, {**cls.all.environment, "CXX": cls.all.cxx}, 550)
        return [(command, code, text) for command, _, code, text in done]

    def printed(self, pattern):
        return [text for command, _, text in self.transcript if re.search(pattern, command)]

    def test_1_every_command_succeeds(self):
        for command, code, text in self.transcript:
            self.assertEqual(code, 0, f"{command}\n{text}")
        self.assertEqual(len(self.transcript), len(self.commands))

    def test_2_the_commands_do_what_the_text_states(self):
        self.assertRegex(self.printed(r"run blur")[0], r"lost 0")
        pids = [dict(re.findall(r"^(\w+)\s+(\d+)\s", text, re.M)) for text in self.printed(r"carousel ps")]
        self.assertEqual(pids[0]["fragment"], pids[1]["fragment"])
        logs = self.printed(r"carousel logs")[0]   # later than the second table, which may still show the gap
        # By its signal where its process had ended before its death was reported, as on a busy machine.
        self.assertRegex(logs, rf"blur \(pid {pids[0]['blur']}\) died: (killed|signal 9)")
        self.assertRegex(logs, r"blur is back as pid \d+")
        for text in self.printed(r"ctest"):
            self.assertIn("100% tests passed", text)
        self.assertIn("range", self.printed(r"carousel set$")[0])

    def test_3_the_page_shows_the_stage_as_it_is(self):
        with open(os.path.join(self.all.root, "stages/sharpen/sharpen.hpp"), encoding="utf-8") as f:
            code = re.sub(r"\s+", "", f.read())
        with open(os.path.join(self.all.root, "README.md"), encoding="utf-8") as f:
            shown = re.search(r"```cpp\n(class sharpen.*?)int main", f.read(), re.S)[1]
        for line in shown.splitlines():
            self.assertIn(re.sub(r"\s+", "", re.sub(r"//.*", "", line)), code, line)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
