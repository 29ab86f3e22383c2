"""Checks the sink with pictures of its own, without a run."""
import os
import tempfile
import unittest

import carousel.testing
import numpy

from tally import tally

PICTURES = [{"color": numpy.full((2, 3, 4), 10 * n, "u1")} for n in range(4)]


class Tally(unittest.TestCase):
    def test_each_frame_has_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            carousel.testing.run(tally, PICTURES, output_directory=folder)
            with open(os.path.join(folder, "tally.csv"), encoding="utf-8") as file:
                lines = [[float(word) for word in line.split(",")] for line in file]
        self.assertEqual(lines, [[n, 10 * n, 10 * n, 10 * n] for n in range(4)])

    def test_frames_in_flight_do_not_mix(self):
        """In a run, process() of the next frames is called before finish() of this one."""
        carousel.testing.check_frames_in_flight(tally, PICTURES)


unittest.main()
