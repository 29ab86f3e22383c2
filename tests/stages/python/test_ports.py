"""Programs in Python that take part in a run through its ports: carried metadata, ends, kills, and refusals.

Usage: test_ports.py BUILD [--kills N | --interrupted MODULE]
"""
import argparse
import gc
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import interpreter
import port_rig

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from seeds import scaled, seed  # noqa: E402

words = argparse.ArgumentParser()
words.add_argument("build")
words.add_argument("--kills", type=int, default=0, help="kill readers and writers N times, and run no other test")
words.add_argument("--interrupted", default="", help="preload this module, which interrupts system calls, and run two tests only")
ARGS = words.parse_args()
SEED = seed(1)


class Ports(unittest.TestCase):
    def test_two_programs_carry_a_runs_frames_and_both_see_its_end(self):
        rig = port_rig.Rig(self, frames=300)
        reads, writes = rig.program("read"), rig.program("write")
        report = rig.end()
        self.assertEqual(report["frames"], 300)
        for each in (reads, writes):
            self.assertEqual(each.process.wait(20), 0, each.output())
            self.assertIn("ended, 300 frames", each.output())
        self.assertGreater(report["stages"][1]["from_capture_ms"]["p50"], 0)

    def test_a_rebuild_is_a_pause_for_both_programs(self):
        rig = port_rig.Rig(self, frames=300)
        reads, writes = rig.program("read"), rig.program("write", 0.003)
        for _ in range(2):
            then = reads.frames()
            self.assertTrue(port_rig.until(lambda before=then: reads.frames() > before + 20), reads.output())
            rig.rebuild()
        report = rig.end()
        self.assertEqual([report["frames"], report["rebuilds"]], [300, 2])
        for each in (reads, writes):
            self.assertEqual(each.process.wait(20), 0, each.output())
            self.assertIn("ended, 300 frames", each.output())

    def test_a_writer_ends_its_stream(self):
        rig = port_rig.Rig(self)
        view = carousel.open(rig.name)
        with view.writer("camera") as writer, view.reader("analysis") as reader:
            self.assertEqual(repr(writer), '<carousel.Writer "camera": port.camera {part: f32[64], value: u64[512]}>')
            for n in range(5):
                with writer.next() as frame:
                    numpy.asarray(frame["out_value"])[:] = n
                    frame.metadata.update({"n": n, "who": "me", "exact": 0.5, "yes": True, "raw": b"\0\1", "big": 2**64 - 1})
                    frame.capture_ns = 1000 + n
                with reader.next() as got:
                    self.assertEqual(dict(got.metadata), {"n": n, "who": "me", "exact": 0.5, "yes": True, "raw": b"\0\1", "big": 2**64 - 1})
                    self.assertIs(type(got.metadata["yes"]), bool)
                    self.assertEqual((got.frame_number, got.capture_ns, int(numpy.asarray(got["value"])[7])), (n, 1000 + n, n))
                    kept = got.copy()
                self.assertEqual((kept.metadata["who"], kept.capture_ns), ("me", 1000 + n))
            dropped = writer.next()
            dropped.metadata["lost"] = 1
            writer.end()
            self.assertTrue(writer.ended)
            self.assertIsNone(writer.next(0))
            with self.assertRaises(carousel.FrameEnded):
                dropped.commit()
            self.assertIsNone(reader.next(20))
            self.assertTrue(reader.ended)
        self.assertEqual(rig.end()["frames"], 5)

    def test_what_a_frame_carries_is_checked_and_replaced(self):
        rig = port_rig.Rig(self)
        view = carousel.open(rig.name)
        writer, reader = view.writer("camera"), view.reader("analysis")
        with self.assertRaises(ZeroDivisionError):
            with writer.next() as frame:
                frame.metadata["first"] = 1
                frame["out_part"].set_used(3)
                frame.capture_ns = 5
                1 / 0
        with writer.next() as again:   # the same number, and no data of the dropped frame
            self.assertEqual((again.frame_number, len(again.metadata), again.capture_ns), (0, 0, 0))
            again.metadata["second"] = numpy.float32(2)
            del again.metadata["second"]
            with self.assertRaises(KeyError):
                del again.metadata["second"]
            again.metadata["n"] = numpy.int64(-7)
            for key, value, expected in (("", 1, "expected a key of 1 to 63 characters"), ("k", "\a", "expected a UTF-8 text without control"),
                                     ("k", b"x" * 1024, "does not fit")):
                with self.assertRaisesRegex(carousel.ConfigError, expected):
                    again.metadata[key] = value
            with self.assertRaisesRegex(TypeError, "expected bool, int, float, str or bytes, got list"):
                again.metadata["k"] = [1]
            self.assertFalse(5 in again.metadata or "\udc80" in again.metadata)
            with self.assertRaisesRegex(TypeError, "a plane's name: expected a text in UTF-8, got 5"):
                again[5]
            self.assertEqual(repr(again), "<carousel.Frame 0 {out_part: f32(64,), out_value: u64(512,)}>")
            with self.assertRaisesRegex(carousel.ConfigError, "part"):
                again["out_part"].set_used(65)
        with reader.next() as got:
            self.assertEqual((dict(got.metadata), got["part"].shape, got.capture_ns), ({"n": -7}, (64,), 0))
            self.assertEqual(got.parameters, {})   # this run has none
            with self.assertRaisesRegex(TypeError, r"set_hash\(hash\): expected a whole number from 0"):
                got.set_hash(-1)
            self.assertIn('-7', repr(got.metadata))
            with self.assertRaisesRegex(RuntimeError, "set in process"):
                got.metadata["n"] = 1
            with self.assertRaisesRegex(RuntimeError, "is only valid for an output plane"):
                got["part"].set_used(1)
            with self.assertRaisesRegex(ValueError, "read-only"):
                numpy.asarray(got["part"])[0] = 1
        with self.assertRaises(carousel.FrameEnded):
            got.metadata["n"]
        writer.end()
        writer.close()
        self.assertIsNone(reader.next(20))
        reader.close()
        rig.end()

    def test_an_array_that_is_held_keeps_its_frame_from_its_commit(self):
        rig = port_rig.Rig(self)
        view = carousel.open(rig.name)
        writer, reader = view.writer("camera"), view.reader("analysis")
        frame = writer.next()
        held = numpy.asarray(frame["out_value"])
        for call in (frame.commit, writer.next, writer.end):
            with self.assertRaisesRegex(carousel.Error, 'an array of plane "value" of frame 0 is held beyond'):
                call()
        held[:] = 11
        del held
        frame.commit()
        with self.assertRaises(carousel.FrameEnded):
            numpy.asarray(frame["out_value"])
        got = reader.next()
        held = numpy.asarray(got["value"])
        reader.close()   # the memory stays for as long as the array does
        self.assertEqual(held.sum(), 11 * 512)
        with self.assertRaisesRegex(carousel.ConfigError, "port analysis already has a program"):
            carousel.open(rig.name, wait_s=0).reader("analysis")
        del held   # the slot is free with the last array, although `got` still exists
        gc.collect()
        began = time.monotonic()
        with view.reader("analysis") as other, other.next() as same:   # what was not committed goes to the next one
            self.assertEqual(same.frame_number, 0)
        self.assertLess(time.monotonic() - began, 5)   # and not by first_frame_timeout_ms
        self.assertIn(", ended>", repr(got))
        writer.end()
        writer.close()
        rig.end()

    def test_what_cannot_be_is_one_sentence_and_the_run_lives(self):
        rig = port_rig.Rig(self, keys="frame_timeout_ms = 2000")
        view = carousel.open(rig.name, wait_s=0.2)
        with self.assertRaisesRegex(carousel.ConfigError, r'port "camera" has frames of .*value: u64\[512\].*expects value = "f32\[512\]"'):
            view.writer("camera", planes={"value": "f32[512]"})
        with self.assertRaisesRegex(carousel.ConfigError, 'port "analysis" has frames of .* expects color'):
            view.reader("analysis", planes={"color": "u8[1,1,4]"})
        with self.assertRaisesRegex(carousel.ConfigError, 'port camera is for a writer: open it with writer'):
            view.reader("camera")
        with self.assertRaisesRegex(TypeError, r"^planes: expected a dict of texts, got \{'value': 3\}$"):
            view.writer("camera", planes={"value": 3})
        with self.assertRaisesRegex(TypeError, r"^open\(name\): expected a text in UTF-8, got 5$"):
            carousel.open(5)
        writer = view.writer("camera", planes={"value": "u64[512]"})
        with self.assertRaisesRegex(carousel.ConfigError, "port camera already has a program"):
            view.writer("camera")
        frame = writer.next()
        for array, expected in ((numpy.zeros(512, "f4"), "has elements of u64, but the array has elements of f32: convert the array first"),
                            (numpy.zeros(511, "u8"), r"is \[512\], the array \[511\]"),
                            (numpy.zeros(1024, "u8")[::2], r"strides of \(2\) elements and is not dense"),
                            (Elsewhere(), "is on cpu, the array on cuda:0")):
            with self.assertRaisesRegex((TypeError, ValueError), expected):
                frame["out_value"].copy_from(array)
        frame.commit()
        # A reader that never commits: its request for the next frame fails with an error; eventually its port is given to another program.
        with writer.next() as frame:
            frame["out_value"].copy_from(numpy.zeros(512, "u8"))
        never = view.reader("analysis")
        with never.next() as frame:   # a program's first frame has first_frame_timeout_ms
            self.assertEqual(frame.frame_number, 0)
        taken = never.next()
        with self.assertRaisesRegex(carousel.ConfigError, "frame 1 of port \"analysis\" was not committed before the next one"):
            never.next()
        patient = carousel.open(rig.name, wait_s=20)
        with patient.reader("analysis") as other, other.next() as same:   # a frame that is over occupies no slot
            self.assertEqual(same.frame_number, 1)
        with self.assertRaisesRegex(carousel.PortRevoked, "frame 1 was not committed, because port \"analysis\" was given to another"):
            taken.commit()
        self.assertIn("process() of a frame takes longer than frame_timeout_ms = 2000: its seat now belongs to another process", rig.run.log_text(40))
        with writer.next() as frame:   # the run continues
            frame["out_value"].copy_from(numpy.zeros(512, "u8"))
        with never.next(20) as frame:
            self.assertEqual(frame.frame_number, 2)
        child = os.fork()   # it does not touch the ports, also at its end
        if child == 0:
            try:
                writer.next()
            except RuntimeError as refused:
                os._exit(0 if "a forked child can't use it" in str(refused) else 1)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        with writer.next() as frame:
            pass
        with never.next(20) as frame:
            self.assertEqual(frame.frame_number, 3)
        with self.assertRaisesRegex(carousel.NothingNew, "no frame for port \"analysis\" in 0.01 s"):
            never.close()
            next(view.reader("analysis", patience_s=0.01))
        self.assertEqual(repr(never), "<carousel.Reader, closed>")
        writer.end()
        writer.close()
        rig.end()

    def test_a_wait_of_a_port_leaves_other_threads_and_ctrl_c_alone(self):
        rig = port_rig.Rig(self)
        program = ("import carousel, threading, time\n"
                   f"reader = carousel.open({rig.name!r}, wait_s=20).reader('analysis')\n"
                   "def count():\n"
                   "    global n\n"
                   "    while True: n += 1; time.sleep(0.001)\n"
                   "n = 0\n"
                   "threading.Thread(target=count, daemon=True).start()\n"
                   "print('waits', flush=True)\n"
                   "try: reader.next(60)\n"
                   "except KeyboardInterrupt: print('interrupted', n > 20, flush=True)\n")
        waits = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(waits.kill)
        self.assertEqual(waits.stdout.readline(), "waits\n")
        time.sleep(0.5)
        waits.send_signal(signal.SIGINT)
        self.assertEqual(waits.communicate(timeout=20)[0], "interrupted True\n")
        rig.run.end()
        rig.end()

    def test_the_examples_run_as_they_are(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../stages/examples/port")
        with carousel.Pipeline(os.path.join(folder, "ports.toml")).start(name=f"ports-example-{os.getpid()}") as run:
            feed, count = (subprocess.Popen([sys.executable, "-B", os.path.join(folder, file), run.name, port, *more], text=True,
                                            stdout=subprocess.PIPE) for file, port, *more in (("feed.py", "camera", "20"), ("count.py", "analysis")))
            output = count.communicate(timeout=60)[0]
            self.assertIn("frame 19: mean 19.0, exposure 3.5 ms\n20 frames", output)
            self.assertEqual((feed.wait(20), count.returncode, run.wait(60)), (0, 0, 0))
            feed.stdout.close()

    def test_frames_skip_a_port_that_skips_while_it_has_no_program(self):
        rig = port_rig.Rig(self, more=port_rig.SKIPS)
        view = carousel.open(rig.name)
        read, written = [], 0
        with view.writer("camera") as writer:
            def write(count):
                for _ in range(count):
                    with writer.next() as frame:
                        numpy.asarray(frame["out_value"])[:] = frame.frame_number
                return writer.next(0.3) is not None   # its number is reused
            for _ in range(3):
                write(200)   # more than the ring holds, and no reader is attached
                written += 200
                with view.reader("analysis") as reader:
                    while write(1):   # until the ring is full of frames that wait for the reader
                        written += 1
                    written += 1
                    seen = []
                    while (frame := reader.next(0.3)) is not None:
                        with frame:
                            self.assertTrue((numpy.asarray(frame["value"]) == frame.frame_number).all())
                            seen.append(frame.frame_number)
                    self.assertEqual(seen, list(range(seen[0], written)))
                    read += seen
            writer.end()
        report = rig.end()
        port, = (s for s in report["sinks"] if s["stage"] == "analysis")
        self.assertEqual((report["frames"], port["counted"], port["skipped"]), (written, False, written - len(read)))
        self.assertGreaterEqual(port["skipped"], 600 - 3 * 64)
        self.assertIn(f'analysis not counted: frames skip it while it has no program (vacant = "skip"): {port["skipped"]} of them',
                      rig.run.log_text(40))

    def test_readers_of_a_port_that_skips_may_be_killed_at_any_time(self):
        kills(self, 6, SEED + 1, ("read",), port_rig.SKIPS)

    def test_readers_and_writers_that_are_killed_lose_repeat_and_tear_nothing(self):
        kills(self, 10, SEED)


class Elsewhere:
    """An array that reports a GPU as its device."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        return numpy.zeros(512, "u8").__dlpack__()


def kills(test, count, seed, roles=("read", "write"), more=""):
    chance = random.Random(seed)
    rig = port_rig.Rig(test, keys="supervisor_grace_s = 20", more=more)
    at = {"read": rig.program("read"), "write": rig.program("write", 0.0005)}
    order = [roles[k % len(roles)] for k in range(count)]   # each equally often
    chance.shuffle(order)
    for k in range(count):
        what = order[k]
        if k % 3 == 0:   # after it has certainly begun to work
            test.assertTrue(port_rig.until(lambda: at[what].frames() > 0), at[what].output() + rig.run.log_text(40))
        time.sleep(chance.random() * 0.25)
        test.assertEqual(at[what].kill(), -signal.SIGKILL, at[what].output())
        at[what] = rig.program(what, 0.0005 if what == "write" else 0.0)
    test.assertTrue(port_rig.until(lambda: all(p.frames() > 3 for p in at.values())), rig.run.log_text(40))
    rig.run.end(60)
    report = rig.end()
    print(f"{count} kills, seed {seed}: {report['frames']} frames, lost {report['lost']}, repeated {report['repeated']}, "
          f"torn {report['torn']}")
    for program in at.values():
        test.assertEqual(program.process.wait(20), 0, program.output())
    if more:   # each frame was read or skipped; a reader that is killed after a commit has not counted it
        gone = report["sinks"][0]["skipped"] + report["stages"][1]["frames"]
        test.assertTrue(report["frames"] - count <= gone <= report["frames"], (gone, report["frames"]))


class Campaign(unittest.TestCase):
    def test_kills(self):
        kills(self, scaled(ARGS.kills), SEED)


if __name__ == "__main__":
    interpreter.use(ARGS.build, ARGS.interrupted)
    import carousel
    import numpy
    names = ["Campaign"] if ARGS.kills else ["Ports"]
    if ARGS.interrupted:
        names = ["Ports.test_two_programs_carry_a_runs_frames_and_both_see_its_end", "Ports.test_a_writer_ends_its_stream"]
    unittest.main(argv=sys.argv[:1] + names, verbosity=2)
