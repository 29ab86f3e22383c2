"""A source in Python: coloured balls that fly on straight lines, hide each other and bounce off the
borders. In a pipeline file: run = "balls.py"."""
import carousel
import numpy

COLORS = ((240, 90, 60), (90, 220, 90), (80, 140, 250), (240, 210, 70), (220, 110, 230), (110, 220, 220))


def places(frame_number, count, width, height, radius):
    """Returns the centres of all balls: f64[count][2]. A function of the frame's number alone, so a restarted source
    makes the same frames."""
    ball = numpy.arange(count)
    room = numpy.array([width, height]) - 2 * radius - 2
    start = numpy.stack([(0.37 * ball + 0.1) % 1, (0.61 * ball + 0.3) % 1], 1) * room
    step = numpy.stack([1.9 + 0.5 * (ball % 3), 1.4 + 0.3 * (ball % 4)], 1) * numpy.where(ball % 2, -1, 1)[:, None]
    at = (start + frame_number * step) % (2 * room)
    return numpy.where(at < room, at, 2 * room - at) + radius + 1


@carousel.stage(output={"color": "u8[height, width, 4]", "type": "carousel.image.rgba8"}, device="cpu")
def balls(frame, out, *, count: int = 5, radius: float = 14.0):
    picture = numpy.asarray(out)
    height, width = picture.shape[:2]
    picture[:] = (24, 26, 32, 255)
    y, x = numpy.ogrid[:height, :width]
    for k, (cx, cy) in enumerate(places(frame.frame_number, count, width, height, radius)):
        picture[(x - cx) ** 2 + (y - cy) ** 2 <= radius * radius, :3] = COLORS[k % len(COLORS)]
