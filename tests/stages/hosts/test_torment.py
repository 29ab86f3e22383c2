"""torment.py where the network cannot be silenced: the kills are made, and it ends as skipped; and what counts as a link that is up again.
Usage: test_torment.py FOLDER_OF_PROGRAMS"""
import argparse
import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torment import add_words, parsed, print_summary, time_to_return, ups_and_downs  # noqa: E402
from processes import SKIPPED  # noqa: E402


class NoSilence:
    def can_be_silenced(self):
        return False


class LeftOut(unittest.TestCase):
    def torment(self, *words):
        """The exit code and the output of a campaign whose kills went well, on a machine without nft."""
        before, sys.argv = sys.argv, ["campaign", "programs", *words]
        self.addCleanup(setattr, sys, "argv", before)
        p = argparse.ArgumentParser()
        add_words(p)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                print_summary(parsed(p, NoSilence()), [], 1.0, "")
            except SystemExit as e:
                return e.code, output.getvalue()
        return 0, output.getvalue()

    def test_a_campaign_without_its_silences_is_skipped_with_the_cause(self):
        code, output = self.torment("--silences", "0.5,5")
        self.assertEqual(code, SKIPPED)
        self.assertRegex(output, "(?m)^skipped: 2 silences: nft takes no rules here")

    def test_one_that_was_to_have_none_passes(self):
        self.assertEqual(self.torment("--silences", "")[0], 0)

    def test_a_link_that_was_down_and_is_not_back_fails_and_one_that_is_back_is_timed(self):
        down, up = "the link to b port 1 is down: silence\n", "the link to b port 1 is up after 0.100 s\n"
        before = ups_and_downs(up)
        self.assertLess(time_to_return(lambda: up + down + up, before, bites=True), 1)
        self.assertLess(time_to_return(lambda: up + up, before, bites=True), 1)   # the link was started during the silence
        self.assertIsNone(time_to_return(lambda: up, before, bites=False))
        with self.assertRaisesRegex(AssertionError, "no link is up again"):
            time_to_return(lambda: up + down, before, bites=False, patience=0.1)
        with self.assertRaisesRegex(AssertionError, "it has not bitten"):
            time_to_return(lambda: up, before, bites=True, patience=0.1)

    def test_links_that_take_long_to_be_back_fail_the_campaign(self):
        p = argparse.ArgumentParser()
        add_words(p)
        a = p.parse_args(["programs", "--silences", "0.5"])
        a.left_out = 0
        with contextlib.redirect_stdout(io.StringIO()):
            print_summary(a, [], 1.0, "is up after 0.200 s, is up after 0.300 s, is up after 0.900 s, is up after 3.000 s")
            self.assertRaisesRegex(AssertionError, "as a median", print_summary, a, [], 1.0, "is up after 1.200 s, " * 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
