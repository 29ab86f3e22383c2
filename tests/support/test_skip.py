"""What ctest reports for a test that skips or does not exist: a check that failed before the skip is a failure.
Usage: test_skip.py PROGRAM PROPERTY VALUE, where PROGRAM is skip_control and PROPERTY VALUE are those that every test of this tree has."""
import os
import subprocess
import sys
import tempfile
import unittest

from processes import skip

EXPECTED = {"passes": "Passed", "skips": "***Skipped", "fails": "***Failed", "fails and then skips": "***Failed",
            "fails as often as the exit code of a skip": "***Failed", "is not there": "***Failed"}


class Skip(unittest.TestCase):
    def ctest(self, commands):
        """ctest's verdict on each command, by name."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as f:
                for name, command in commands.items():
                    words = " ".join(f"[==[{word}]==]" for word in command)
                    f.write(f"add_test([==[{name}]==] {words})\nset_tests_properties([==[{name}]==] PROPERTIES {PROPERTY})\n")
            output = subprocess.run(["ctest", "--test-dir", folder], capture_output=True, text=True, check=False).stdout
        verdicts = {}
        for line in output.splitlines():
            for name in commands:
                if f": {name} ." in line:
                    verdicts[name] = line[line.index(f": {name} .") + len(name) + 3:].lstrip(".").split()[0]
        return verdicts

    def test_a_failed_check_before_a_skip_is_a_failure(self):
        self.assertEqual(self.ctest({name: [PROGRAM, name] for name in EXPECTED}), EXPECTED)

    def test_a_python_program_skips_the_same_way(self):
        here = os.path.dirname(os.path.abspath(__file__))
        code = f"import sys; sys.path.insert(0, {here!r}); import processes; processes.skip('as told')"
        self.assertEqual(self.ctest({"skips": [sys.executable, "-c", code]}), {"skips": "***Skipped"})
        self.assertRaises(SystemExit, skip, "as told")


if __name__ == "__main__":
    PROGRAM, PROPERTY = os.path.abspath(sys.argv[1]), " ".join(sys.argv[2:])
    unittest.main(argv=sys.argv[:1], verbosity=2)
