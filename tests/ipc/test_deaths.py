"""DEATHS.md compared with the sources: what it lists for each step exists. Usage: test_deaths.py SOURCE_FOLDER."""
import os
import re
import sys
import unittest

ROOT = sys.argv[1]


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def names_of_tests():
    """Of all test cases of tests/ipc, with the pieces of a long one put together, and of the model's seeded set-ups."""
    found = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "tests", "ipc")):
        for name in files:
            if name.endswith(".cpp"):
                for pieces in re.findall(r'TEST_CASE\(((?:\s*"(?:[^"\\]|\\.)*")+)', read(folder, name)):
                    found.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', pieces)))
                found.update(re.findall(r'^    add\("([^"]*)"', read(folder, name), re.MULTILINE))
    lists = read("tests", "ipc", "CMakeLists.txt")
    return found | set(re.findall(r'add_test\(NAME "([^"$]*)"', lists)) | set(re.findall(r'set\(name "([^"(]*) \(', lists))


PAGE = read("tests", "ipc", "DEATHS.md")
ROWS = {m[1]: m for m in re.finditer(r"^\| `(\w+)` \| ([HKG ]+) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)}
DIES = {"H": read("tests", "ipc", "test_histories.cpp"), "K": read("tests", "ipc", "test_kills.cpp"),
        "G": read("tests", "ipc", "cuda", "gpu_kills.cpp")}


class Deaths(unittest.TestCase):
    def test_each_step_has_its_row_and_no_row_is_of_none(self):
        steps = re.findall(r"^    (\w+),", read("shared", "ipc", "steps.hpp"), re.MULTILINE)
        self.assertGreater(len(steps), 40)
        self.assertEqual(sorted(steps), sorted(ROWS))

    def test_each_dead_letter_is_correct(self):
        for step, row in ROWS.items():
            for letter, text in DIES.items():
                self.assertEqual((step, letter, letter in row[2]), (step, letter, f"step::{step}" in text))

    def test_each_row_has_a_test_by_hand_and_a_rule_without_which_something_fails(self):
        for step, row in ROWS.items():
            self.assertRegex(row[3], r'^".+"$', step)
            self.assertRegex(row[4], r"`\w+`", step)

    def test_each_test_that_is_named_is_there(self):
        tests = names_of_tests()
        named = re.findall(r'"([^"]+)"', PAGE.replace("\n", " "))
        self.assertGreater(len(named), 40)
        self.assertEqual([n for n in named if n not in tests], [])

    def test_each_control_is_there_and_none_is_left_out(self):
        controls = re.findall(r"^carousel_ipc_control\(\w+ (\w+) ", read("tests", "ipc", "CMakeLists.txt"), re.MULTILINE)
        named = [c for row in ROWS.values() for c in re.findall(r"(?<!\*mutation\* )`(\w+)`", row[4])]
        self.assertEqual(sorted(set(controls)), sorted(set(named)))
        mutations = re.findall(r'^name = "(\w+)"', read("tests", "mutations", "ipc.toml"), re.MULTILINE)
        self.assertEqual([m for m in re.findall(r"\*mutation\* `(\w+)`", PAGE) if m not in mutations], [])

    def test_each_rule_names_controls_and_mutations_that_there_are(self):
        rules = PAGE.split("## The rules, one by one")[1].split("## Limits")[0]
        lines = [line.rsplit(" | ", 1)[1] for line in rules.splitlines() if line.startswith("| ") and "built without" not in line]
        self.assertGreater(len(lines), 15)
        known = set(re.findall(r"^carousel_ipc_control\(\w+ (\w+) ", read("tests", "ipc", "CMakeLists.txt"), re.MULTILINE))
        known |= set(re.findall(r'^name = "(\w+)"', read("tests", "mutations", "ipc.toml"), re.MULTILINE))
        for line in lines:
            names = re.findall(r"`(\w+)`", line)
            self.assertTrue(names or '"' in line, line)
            self.assertEqual([n for n in names if n not in known], [], line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
