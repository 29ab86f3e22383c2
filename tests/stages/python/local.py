"""A sink whose finish() checks that frame.local is what process() of the same frame has left; it is slow, so that frames wait for it."""
import time

import carousel


@carousel.stage
class mixer:
    def __init__(self):
        self.last, self.overtaken = -1, 0

    def process(self, frame):
        assert not vars(frame.local), vars(frame.local)
        frame.local.number = self.last = frame.frame_number

    def finish(self, frame):
        time.sleep(0.001)
        assert frame.local.number == frame.frame_number, (frame.local.number, frame.frame_number)
        self.overtaken += self.last > frame.frame_number
        assert frame.frame_number < 299 or self.overtaken > 0, "no frame waited: the test shows nothing"
