"""Every listed mutation still applies to the tree, and names existing tests and assertions that these tests contain. Text only."""
import glob
import os
import re
import sys
import unittest

import mutation

ROOT = os.path.dirname(os.path.dirname(mutation.HERE))
LEAST = 60


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def joined(text):
    """Text as a reader takes it: adjacent string literals are one, and so are runs of blanks."""
    return " ".join(re.sub(r'"\s*\n\s*"', "", text).split())


class Mutations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.entries = mutation.load()
        cls.tests = joined("\n".join(read(p) for kind in ("cpp", "hpp", "txt", "py")
                                     for p in glob.glob(os.path.join(ROOT, "tests", "**", "*." + kind), recursive=True)))

    def test_there_are_enough_and_each_is_sound(self):
        self.assertGreaterEqual(len(self.entries), LEAST)
        names = [e["name"] for e in self.entries]
        self.assertEqual(sorted(set(names)), sorted(names))
        for e in self.entries:
            self.assertEqual(mutation.check(e), "", e.get("name"))

    def test_each_applies_and_changes_the_file(self):
        for e in self.entries:
            with self.subTest(e["name"]):
                text = read(os.path.join(ROOT, e["file"]))
                self.assertNotEqual(mutation.apply(e, text), text)

    def test_each_names_tests_and_targets_that_there_are(self):
        words = set(re.findall(r"[\w-]+", self.tests))   # one expression per target, over all of the tests, takes a minute
        for e in self.entries:
            with self.subTest(e["name"]):
                for target in e["build"]:
                    self.assertIn(target, words)
                for test in e["tests"]:
                    target, _, case = test.partition(": ")
                    # Of tests that a function of CMake adds with a word in front of their names.
                    name = case if re.match(r"test_\w+$|hosts$|python$", target) else test
                    self.assertTrue('"' + name.replace('"', '\\"') in self.tests, name)

    def test_each_assertion_stands_in_a_test(self):
        everything = self.tests.replace(" ", "")
        for e in self.entries:
            if "kills" not in e or e["preset"] == "tsan":
                continue
            with self.subTest(e["name"]):
                self.assertTrue(joined(e["kills"]).replace(" ", "") in everything, e["kills"])

    def test_what_does_not_apply_is_refused(self):
        text = "int f(int a) {\n    return a + 1;  // }\n}\nint g() { return f(2) + 1; }\n"
        entry = {"function": "f", "find": "a + 1", "replace": "a"}
        self.assertEqual(mutation.apply(entry, text), text.replace("a + 1", "a"))
        for broken in ({**entry, "find": "a + 2"}, {**entry, "function": "h"}, {"find": "+ 1", "replace": ""}):
            self.assertRaises(mutation.Broken, mutation.apply, broken, text)
        self.assertEqual(mutation.apply({"function": "g", "find": "f(2)\n  +  1", "replace": "0"}, text), text.replace("f(2) + 1", "0"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
