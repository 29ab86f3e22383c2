"""The library exports the symbols that space.map lists, each with its version, and <carousel/space.h> declares them.

Usage: test_symbols.py LIBRARY ROOT
"""
import os
import re
import subprocess
import sys
import unittest

LIBRARY, ROOT = sys.argv[1:]
FOLDER = os.path.join(ROOT, "shared/ipc/c")


def text_of(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def listed():
    """{symbol: version} of space.map."""
    found = {}
    for version, body in re.findall(r"^(\w+) \{\n(.*?)^\}", text_of("space.map"), re.M | re.S):
        found.update({symbol: version for symbol in re.findall(r"^\s+(carousel_\w+);", body, re.M)})
    return found


class Symbols(unittest.TestCase):
    def test_the_library_exports_the_listed_symbols_and_no_other(self):
        lines = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout.splitlines()
        exported = dict(line.split()[-1].split("@@") for line in lines if line.split()[1] != "A")
        self.assertEqual(exported, listed())
        self.assertGreater(len(exported), 40)

    def test_the_header_declares_the_listed_symbols(self):
        declared = set(re.findall(r"\b(carousel_\w+)\(", re.sub(r"/\*.*?\*/", "", text_of("carousel/space.h"), flags=re.S)))
        self.assertEqual(declared, set(listed()))

    def test_the_library_has_its_name_and_needs_no_cuda(self):
        dynamic = subprocess.run(["objdump", "-p", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertRegex(dynamic, r"SONAME\s+libcarousel-space\.so\.0\b")
        self.assertNotRegex(dynamic, r"NEEDED\s+lib(cuda|nv)")


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
