"""Tests a stage's class without a run: process() and finish() on frames of the test, in the order of a run.

    carousel.testing.run(tally, [{"color": picture}, ...])                  # returns the frames, each with its hash
    carousel.testing.check_frames_in_flight(tally, [{"color": picture}, ...])
"""
import tempfile
import types


class TestFrame:
    """A stand-in for the frame in process() and finish(). planes: arrays by plane name, including outputs ("out")."""
    __test__ = False   # the class is not a test case, despite its name

    def __init__(self, frame_number, planes):
        self.frame_number, self.planes = frame_number, planes
        self.time_s, self.born_ns, self.capture_ns, self.stream, self.tombstone_reason = frame_number / 60, 0, 0, None, ""
        self.metadata, self.parameters, self.local = {}, {}, types.SimpleNamespace()
        self.inputs = [planes]
        self.hash = self.hash_name = None

    def __getitem__(self, name):
        return self.planes[name]

    def sampled(self, name):
        return None

    def set_hash(self, hash, name="own"):
        self.hash, self.hash_name = hash, name


class _Watch:
    """Records, for each attribute of an object, the frame whose process() has set it; also records the frame whose call is running."""

    def __init__(self):
        self.set_by, self.call, self.frame = {}, "", None

    def enter(self, call, frame):
        self.call, self.frame = call, frame

    def has_set(self, name):
        if self.call == "process":
            self.set_by[name] = self.frame
        else:
            self.set_by.pop(name, None)

    def reads(self, name):
        by = self.set_by.get(name, self.frame)
        if self.call == "finish" and by != self.frame:
            raise AssertionError(
                f"finish() of frame {self.frame} reads self.{name}, which process() of frame {by} has set: several frames are in flight in "
                f"a run, and process() of later frames runs before finish(); set frame.local.{name} instead")


def _watched(made):
    """Makes `made` report the attributes that it sets and reads. Returns its _Watch."""
    watch, kind = _Watch(), type(made)

    class Watched(kind):
        def __setattr__(self, name, value):
            watch.has_set(name)
            super().__setattr__(name, value)

        def __getattribute__(self, name):
            watch.reads(name)
            return super().__getattribute__(name)

    Watched.__name__ = Watched.__qualname__ = kind.__name__
    made.__class__ = Watched
    return watch


def run(stage, frames, *, in_flight=1, output_directory=None, **settings):
    """Calls process() and finish() of a stage's class for `frames`, one dict of planes per frame, with `in_flight` frames at once:
    process() of frame n + in_flight - 1 runs before finish() of frame n. settings: the stage's settings. Without output_directory the
    stage's files are written to a temporary directory, which is removed. Returns the TestFrames. Raises what the stage raises, and
    AssertionError if finish() of a frame reads an attribute of self that process() of another frame has set."""
    with tempfile.TemporaryDirectory() as scratch:
        made = stage(**settings)
        watch = _watched(made)
        if hasattr(made, "prepare"):
            made.prepare({"device": "cpu", "instance": 0, "in_flight": in_flight, "output_directory": output_directory or scratch,
                          "runtime_directory": scratch})
        todo, submitted, done = [TestFrame(n, planes) for n, planes in enumerate(frames)], [], []
        while todo or submitted:
            if todo and len(submitted) < in_flight:
                frame = todo.pop(0)
                watch.enter("process", frame.frame_number)
                made.process(*[frame if name == "frame" else frame[name] for name in stage.arguments])
                submitted.append(frame)
                continue
            frame = submitted.pop(0)
            watch.enter("finish", frame.frame_number)
            if stage.finishes:
                made.finish(frame)
            done.append(frame)
        return done


def check_frames_in_flight(stage, frames, *, in_flight=2, **settings):
    """Raises AssertionError unless the hashes of all frames (frame.set_hash) are the same with one frame and with `in_flight` frames at
    once. The hashes differ if process() passes data to finish() in self, because in a run self contains data
    of another frame by then. Takes at least two
    different frames. Returns the hashes.
    """
    if len(frames) < 2:
        raise ValueError(f"check_frames_in_flight: {len(frames)} frame; expected 2 or more that differ, since one frame can't mix with another")
    alone = [frame.hash for frame in run(stage, frames, **settings)]
    together = [frame.hash for frame in run(stage, frames, in_flight=in_flight, **settings)]
    for n, (one, other) in enumerate(zip(alone, together)):
        if one != other:
            raise AssertionError(
                f"the hash of frame {n} is {one} with one frame in flight and {other} with {in_flight}, so process() changes something that "
                "finish() of another frame reads; keep what belongs to a frame in frame.local")
    return alone
