"""FLIP and the cut of a picture to its model, by known answers. Skipped without numpy."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

try:
    import numpy as np
except ImportError:
    skip("no numpy")
import flip  # noqa: E402
import tiles  # noqa: E402


def plain(*colour):
    return np.full((64, 64, 3), 1.0) * np.array(colour)


class Flip(unittest.TestCase):
    def test_equal_pictures_do_not_differ(self):
        noise = np.random.default_rng(7).random((64, 64, 3))
        self.assertEqual(flip.flip(noise, noise).max(), 0)

    def test_blue_and_green_differ_most_and_white_and_black_as_published(self):
        self.assertAlmostEqual(flip.flip(plain(0, 1, 0), plain(0, 0, 1)).mean(), 1, places=6)
        self.assertAlmostEqual(flip.flip(plain(0, 0, 0), plain(1, 1, 1)).mean(), 0.967, places=3)

    def test_a_line_that_is_missing_is_seen_near_the_line_only(self):
        line = plain(0.5, 0.5, 0.5)
        line[:, 32] = 0.8
        error = flip.flip(line, plain(0.5, 0.5, 0.5))
        self.assertGreater(error[:, 32].mean(), 0.2)
        self.assertLess(error[:, :8].max(), 0.01)

    def test_a_model_is_cut_out_wherever_it_is_in_the_picture(self):
        def disc(x, y, radius):
            rows, columns = np.mgrid[0:320, 0:320]
            inside = np.hypot(rows - y, columns - x) < radius
            return np.concatenate([inside[..., None] * np.array([0.8, 0.2, 0.1]), inside[..., None]], -1)
        a, b = tiles.cut(disc(160, 160, 140)), tiles.cut(disc(90, 200, 70))
        self.assertEqual(a.shape, (tiles.TILE, tiles.TILE, 3))
        self.assertLess(flip.flip(a, b).mean(), 0.02)
        self.assertIsNone(tiles.cut(np.zeros((320, 320, 4))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
