"""The C++ lines of stages/README.md about ports compile as they stand there. Usage: test_port_lines.py ROOT CXX"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, CXX = os.path.abspath(sys.argv[1]), sys.argv[2]
# The parts that the page leaves to its reader.
AROUND = """#include <carousel/port.hpp>
using carousel::u8;
void use(carousel::u64, const carousel::plane_view<const u8>&, const void*);
void look_at(const carousel::plane_view<const u8>&);
void fill(const carousel::plane_view<u8>&);
void lines() {
%s}
"""


class PortLines(unittest.TestCase):
    def compiles(self, lines):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "lines.cpp")
            with open(file, "w", encoding="utf-8") as out:
                out.write(AROUND % lines)
            return subprocess.run([CXX, "-std=c++20", "-fsyntax-only", *(f"-I{ROOT}/{at}" for at in ("", "shared", "stages", "stages/sdk")), file],
                                  capture_output=True, text=True)

    def test_they_compile(self):
        with open(os.path.join(ROOT, "stages/README.md"), encoding="utf-8") as text:
            blocks = [b for b in re.findall(r"^```cpp\n(.*?)^```$", text.read(), re.M | re.S) if "carousel::open(" in b]
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            lines = "".join(line for line in block.splitlines(True) if not line.startswith("#include"))
            done = self.compiles(lines)
            self.assertEqual(done.returncode, 0, lines + done.stderr)
            self.assertNotEqual(self.compiles(lines.replace("f.plane<", "f.plnae<")).returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
