"""A stage in Python that remembers: finds bright objects, and follows each of them from frame to frame under one
number. In a pipeline file: run = "tracker.py"."""
import carousel
import numpy

MOST = 16                                    # tracks at once
NUMBER, X, Y, STEP_X, STEP_Y, MISSED = range(6)   # columns of a track; number 0: the row is free


def _find_objects(picture, block=4, threshold=70):
    """Returns the centres of the bright objects: f64[n][2]. Blocks that touch, also at a corner, are one object."""
    height, width = (side // block * block for side in picture.shape[:2])
    bright = picture[:height, :width, :3].max(2) > threshold
    y, x = numpy.nonzero(bright)
    cells = bright.reshape(height // block, block, width // block, block).any((1, 3))
    label = numpy.where(cells, numpy.arange(1, cells.size + 1).reshape(cells.shape), 0)
    while True:   # each block gets the greatest number of its object
        around = numpy.pad(label, 1)
        greatest = numpy.max([around[dy:dy + cells.shape[0], dx:dx + cells.shape[1]] for dy in range(3) for dx in range(3)], 0) * cells
        if (greatest == label).all():
            break
        label = greatest
    names, of = numpy.unique(label[y // block, x // block], return_inverse=True)
    pixels = numpy.bincount(of, minlength=len(names))
    centres = numpy.stack([numpy.bincount(of, x, len(names)), numpy.bincount(of, y, len(names))], 1) / pixels[:, None]
    return centres[pixels >= block * block]


def _next_tracks(before, last_number, found, reach, patience):
    """Returns the tracks after this frame, and the last number that was given. A track moves on as it did; the object
    nearest to that place is its object. A track without one keeps its way for `patience` frames: it may be hidden."""
    tracks = before.copy()
    tracks[:, [X, Y]] += tracks[:, [STEP_X, STEP_Y]]
    far = numpy.hypot(tracks[:, None, X] - found[None, :, 0], tracks[:, None, Y] - found[None, :, 1])
    far[tracks[:, NUMBER] == 0] = numpy.inf
    tracks[:, MISSED] += 1
    while far.size and far.min() <= reach:
        track, of = numpy.unravel_index(far.argmin(), far.shape)   # the nearest pair first
        step = found[of] - before[track, [X, Y]]
        known = before[track, [STEP_X, STEP_Y]].any()
        tracks[track, [STEP_X, STEP_Y]] = 0.7 * before[track, [STEP_X, STEP_Y]] + 0.3 * step if known else step
        tracks[track, [X, Y]], tracks[track, MISSED] = found[of], 0
        far[track, :] = far[:, of] = numpy.inf
        found[of] = numpy.nan
    tracks[tracks[:, MISSED] > patience] = 0
    free = iter(numpy.flatnonzero(tracks[:, NUMBER] == 0))
    for place in found[~numpy.isnan(found[:, 0])]:
        row = next(free, None)
        if row is None:
            break
        last_number += 1
        tracks[row] = last_number, *place, 0, 0, 0
    return tracks, last_number


@carousel.stage(output=carousel.like(0), device="cpu", state={"tracks": f"f64[{MOST}, 6]", "numbers": "u64[1]"})
def tracker(frame, color, out, tracks, out_tracks, numbers, out_numbers, *, reach: float = 40.0, patience: int = 20):
    """Draws a cross for each object, in a colour of its track's number."""
    picture = numpy.asarray(color)
    after, last_number = _next_tracks(numpy.asarray(tracks), int(numpy.asarray(numbers)[0]), _find_objects(picture), reach, patience)
    numpy.asarray(out_tracks)[:], numpy.asarray(out_numbers)[0] = after, last_number
    drawn = numpy.asarray(out)
    numpy.copyto(drawn, picture)
    for number, x, y in after[after[:, NUMBER] > 0][:, [NUMBER, X, Y]].astype("i8"):
        shown = number * 97 % 256, number * 57 % 256, number * 151 % 256, 255
        drawn[max(y, 0), max(x - 20, 0):max(x + 21, 0)] = drawn[max(y - 20, 0):max(y + 21, 0), max(x, 0)] = shown
    frame.metadata["tracks"] = int((after[:, NUMBER] > 0).sum())
