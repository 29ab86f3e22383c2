"""The campaign on a GPU and the pack, where there is none: rows name tests, scripts and words that there are.

Usage: test_gpu_campaign.py BUILD"""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpu_campaign as campaign  # noqa: E402
import pack  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=campaign.ROOT, check=False)


class Campaign(unittest.TestCase):
    def test_each_row_is_a_command_that_there_is_with_words_that_it_knows(self):
        for name in campaign.ROWS:
            words = campaign.command_of(name, BUILD)
            words = words[2:] if words[0] == "env" else words
            with self.subTest(name):
                if words[0] == "ctest":
                    found = said(*words, "-N")
                    self.assertRegex(found.stdout, "Total Tests: [1-9]", found.stdout + found.stderr)
                    continue
                program = words[:3] if words[1] == "-B" else words[:2]   # of `carousel chaos`
                help_text = said(*program, "--help")
                self.assertEqual(help_text.returncode, 0, help_text.stderr)
                for flag in re.findall(r"--[a-z-]+", " ".join(words)):
                    self.assertIn(flag, help_text.stdout, name)

    def test_a_pack_has_the_programs_and_makes_the_module_of_files_that_there_are(self):
        names = {os.path.basename(p) for p in pack.programs_of(BUILD)}
        self.assertLessEqual({"carousel", "carousel-fragment", "test_gpu_runs", "test_device_cuda"}, names)
        here = {os.path.basename(p) for p in pack.modules_of(BUILD)}
        self.assertIn("libcarousel_nvtx_tool.so", here)
        script, archives, sources = pack.module_maker(BUILD)
        for path in [os.path.join(BUILD, a) for a in archives] + sources:
            self.assertTrue(os.path.exists(path), path)
        self.assertEqual(script.count("-o gpu/objects/"), len(re.findall(r" -c \S+$", script, re.M)))
        self.assertIn("-I", script)
        self.assertNotIn("/objects/0.o.d", script)

    def test_a_pack_leaves_the_runtime_of_c_plus_plus_to_the_machine_and_takes_other_libraries_along(self):
        taken = pack.libraries_of([os.path.join(BUILD, name) for name in ("carousel", "carousel-replay")])
        self.assertFalse([name for name in taken if name.startswith(("libstdc++", "libc.", "libgcc_s", "libm."))], taken)
        self.assertTrue([name for name in taken if name.startswith("libfmt.so")], taken)

    def test_a_row_of_ctest_tells_what_it_skipped_and_is_skipped_where_all_was(self):
        row = "\n100% tests passed, 0 tests failed out of {}\nThe following tests did not run:\n\t1867 - test_gpu_runs:a (b) (Skipped)\n"
        self.assertEqual(campaign.judged("passed", row.format(1)), ("skipped", 1))
        self.assertEqual(campaign.judged("passed", row.format(1).replace(", 0 tests failed", "")), ("skipped", 1))   # ctest of 2025
        self.assertEqual(campaign.judged("passed", row.format(3)), ("passed", 1))
        self.assertEqual(campaign.judged("failed", row.format(1)), ("failed", 1))
        self.assertEqual(campaign.judged("passed", "40 kills, lost 0"), ("passed", 0))

    def test_rows_of_two_gpus_are_rows(self):
        self.assertLessEqual(set(campaign.OF_TWO), set(campaign.ROWS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
