"""A stage can be called with arrays instead of planes."""
import unittest

import numpy

from tint import tint


class Tint(unittest.TestCase):
    def test_blue_is_taken_away_and_nothing_else(self):
        picture = numpy.full((2, 3, 4), 100, "u1")
        out = numpy.zeros_like(picture)
        tint(picture, out, warmth=0.5)
        self.assertTrue((out == [100, 100, 50, 100]).all(), out)


unittest.main()
