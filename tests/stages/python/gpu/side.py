"""copy_from of the input, with a look aside: the newest frame of another ring is whole, and never older than before."""
import carousel


@carousel.stage(output=carousel.like(0))
class side:
    def __init__(self):
        self.last = -1

    def process(self, frame, color, out):
        beside = frame.latest("beside")
        if beside is not None:
            values = bytes(memoryview(beside["color"].cpu()))   # carousel-test-copy fills a frame with one byte
            assert values == bytes([(beside.frame_number * 7 + 1) % 256]) * len(values), beside
            assert beside.frame_number >= self.last
            self.last = beside.frame_number
        out.copy_from(color)
