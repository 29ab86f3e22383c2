"""The tracks of balls whose places are known, without a run."""
import unittest

import carousel.testing
import numpy

from balls import balls, places
from tracker import MOST, NUMBER, X, Y, _find_objects, tracker

WIDTH, HEIGHT, COUNT, RADIUS = 320, 180, 4, 9.0


class Tracker(unittest.TestCase):
    def picture(self, n):
        picture = numpy.zeros((HEIGHT, WIDTH, 4), "u1")
        balls(carousel.testing.TestFrame(n, {}), picture, count=COUNT, radius=RADIUS)
        return picture

    def test_objects_are_found_where_the_balls_are(self):
        found = _find_objects(self.picture(0))
        self.assertEqual(len(found), COUNT)
        for place in places(0, COUNT, WIDTH, HEIGHT, RADIUS):
            self.assertLess(numpy.hypot(*(found - place).T).min(), 1.5)

    def test_each_ball_keeps_its_number(self):
        """Balls may exchange numbers only while they touch, because then they are one object."""
        tracks, numbers = numpy.zeros((MOST, 6)), numpy.zeros(1, "u8")
        seen, followed = {}, 0
        for n in range(100):
            picture, frame = self.picture(n), carousel.testing.TestFrame(n, {})
            out, out_tracks, out_numbers = numpy.zeros_like(picture), numpy.empty_like(tracks), numpy.empty_like(numbers)
            tracker(frame, picture, out, tracks, out_tracks, numbers, out_numbers)
            tracks, numbers = out_tracks, out_numbers
            at = places(n, COUNT, WIDTH, HEIGHT, RADIUS)
            apart = numpy.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + 1000 * numpy.eye(COUNT)
            for ball in numpy.flatnonzero(apart.min(1) > 6 * RADIUS):
                far = numpy.where(tracks[:, NUMBER] > 0, numpy.hypot(tracks[:, X] - at[ball, 0], tracks[:, Y] - at[ball, 1]), 1e9)
                self.assertLess(far.min(), 3, (n, ball))
                number = int(tracks[far.argmin(), NUMBER])
                followed += seen.setdefault(ball, number) == number
        self.assertEqual(sorted(seen), list(range(COUNT)))
        self.assertEqual(len(set(seen.values())), COUNT)
        self.assertGreater(followed, 120)
        self.assertLessEqual(int(numbers[0]), COUNT + 2, "numbers that were given in 100 frames")


unittest.main()
