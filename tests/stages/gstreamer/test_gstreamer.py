"""carouselsrc and carouselsink with gst-launch-1.0.
Usage: test_gstreamer.py FOLDER_OF_PROGRAMS [--kills N [--supervisors N] [--size 1920x1080]]"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gst_rig  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("build")
arguments.add_argument("--kills", type=int, default=0)
arguments.add_argument("--supervisors", type=int, default=0)
arguments.add_argument("--size", default="640x480")
ARGS = arguments.parse_args()
SEED = int(os.environ.get("CAROUSEL_TEST_SEED", "1"))
SIZE = tuple(int(n) for n in ARGS.size.split("x"))
FRAMES = 60
DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "pipelines", "docs", "gstreamer.md")


class Elements(unittest.TestCase):
    def test_frames_pass_once_and_in_order_under_kills(self):
        whole = gst_rig.reference(self, ARGS.build, SIZE, FRAMES)
        gst_rig.kill_each(self, ARGS.build, SIZE, 6, SEED, whole)
        # The same frames through elements that hold more buffers than the ring has.
        rig = gst_rig.Rig(self, ARGS.build, SIZE)
        reader = rig.read("held", "queue max-size-buffers=40 max-size-bytes=0 ! identity sleep-time=8000 !")
        self.assertEqual((rig.feed("feed", FRAMES).wait(30), reader.wait(30)), (0, 0), rig.text("feed") + rig.text("held"))
        rig.end()
        self.assertEqual(rig.frames_in("held"), whole)

    def test_formats_pass_unchanged(self):
        for caps, planes, format_, width, height in (
                ("NV12", 'y = "u8[240,320]", uv = "u8[120,160,2]"', "nv12", 320, 240),
                ("GRAY8", 'gray = "u8[50,98]"', "gray8", 98, 50),   # GStreamer's own rows have another length
                ("RGBA64_LE", 'color = "u16[50,98,4]"', "rgba16", 98, 50)):
            rig = gst_rig.Rig(self, ARGS.build, text=gst_rig.PORTS.format(planes=planes, format=format_, read="camera"))
            source = f"videotestsrc pattern=ball num-buffers=5 ! video/x-raw,format={caps},width={width},height={height} !"
            direct = rig.launch("direct", f"{source} filesink location={rig.path('direct')}")
            reader = rig.launch("passed", f"carouselsrc pipeline=gst ring=out ! filesink location={rig.path('passed')}")
            feeder = rig.launch("feed", f"{source} carouselsink pipeline=gst port=camera")
            self.assertEqual([p.wait(20) for p in (direct, feeder, reader)], [0, 0, 0], rig.text("feed") + rig.text("passed"))
            rig.end()
            with open(rig.path("direct"), "rb") as expected, open(rig.path("passed"), "rb") as passed:
                used = width * (8 if caps == "RGBA64_LE" else 1)
                row = (used + 3) // 4 * 4   # the bytes at its end mean nothing
                pictures = [[f[k:k + used] for k in range(0, len(f), row)]
                            for f in (expected.read(), passed.read())]
                self.assertEqual(len(pictures[0]), len(pictures[1]))
                self.assertTrue(pictures[0] == pictures[1], caps)

    def test_a_pipeline_that_stands_still_keeps_no_frame(self):
        text = gst_rig.PORTS.format(planes='gray = "u8[48,64]"', format="gray8", read="camera").replace("[[stage]]", "frame_timeout_ms = 500\n[[stage]]", 1)
        rig = gst_rig.Rig(self, ARGS.build, text=text)
        reader = rig.launch("still", "carouselsrc pipeline=gst ring=out ! identity sleep-time=800000 ! fakesink")
        feeder = rig.launch("feed", "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=64,height=48 ! carouselsink pipeline=gst port=camera")
        self.assertEqual((feeder.wait(20), reader.wait(20)), (0, 0), rig.text("feed") + rig.text("still"))
        self.assertEqual(rig.end()["frames"], 3)
        self.assertNotIn("takes longer than frame_timeout_ms", rig.log())

    def test_the_lines_of_the_document_run(self):
        with open(DOCUMENT, encoding="utf-8") as f:
            text = f.read()
        rig = gst_rig.Rig(self, ARGS.build, text=re.search(r"```toml\n(.*?)```", text, re.S).group(1))
        write, read = re.findall(r"^gst-launch-1.0 (.*(?:port=camera|film.mp4))$", text, re.M)[:2]
        missing = []
        for element in ("x264enc", "mp4mux"):
            if subprocess.run(["gst-inspect-1.0", element], env=rig.environment, capture_output=True, check=False).returncode != 0:
                read = "carouselsrc pipeline=media ring=tint ! fakesink"
                missing.append(element)
        feeder = rig.launch("feed", write.replace("300", "30"))
        reader = rig.launch("film", read.replace("film.mp4", rig.path("film.mp4")))
        self.assertEqual((feeder.wait(30), reader.wait(30)), (0, 0), rig.text("feed") + rig.text("film"))
        self.assertEqual(rig.end()["frames"], 30)
        if missing:
            self.skipTest(f"{' and '.join(missing)} missing (gstreamer1.0-plugins-ugly, -good): the second line ran without an encoder")
        if shutil.which("ffprobe"):
            counted = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames,duration", "-of", "csv=p=0",
                                      rig.path("film.mp4")], capture_output=True, text=True, timeout=30, check=False)
            duration, frames = counted.stdout.strip().split(",")
            self.assertEqual((frames, round(float(duration), 2)), ("30", 0.97), counted.stderr)   # the times of the first line: 29 steps

    def test_what_cannot_be_is_one_sentence(self):
        rig = gst_rig.Rig(self, ARGS.build, SIZE)
        for line, sentence in (
                ("carouselsrc pipeline=gst ring=absent wait=1 ! fakesink", 'no stage "absent" with an output in gst'),
                ("carouselsrc pipeline=nothing ring=tint wait=0 ! fakesink", 'no pipeline "nothing" is running'),
                ("carouselsrc pipeline=gst ring=camera ! fakesink", 'no port of gst reads every frame of "camera"'),
                ("carouselsrc ! fakesink", "carouselsrc needs pipeline=NAME and ring=STAGE"),
                ("videotestsrc ! carouselsink pipeline=gst port=tint wait=0.2", "tint"),
                ("videotestsrc ! video/x-raw,width=16,height=16 ! carouselsink pipeline=gst port=camera", "not-negotiated")):
            refused = rig.launch("refused", line)
            self.assertNotEqual(refused.wait(20), 0, line)
            self.assertIn(sentence, rig.text("refused"))
        newest = rig.launch("newest", "carouselsrc pipeline=gst ring=tint mode=newest num-buffers=5 ! fakesink sync=true")
        reader, feeder = rig.read("whole"), rig.feed("feed", FRAMES)
        self.assertEqual((newest.wait(20), feeder.wait(20), reader.wait(20)), (0, 0, 0), rig.text("newest") + rig.text("feed"))
        rig.end()

    def test_inspection_is_clean(self):
        rig = gst_rig.Rig(self, ARGS.build, SIZE)
        for what in ("carousel", "carouselsrc", "carouselsink"):
            shown = subprocess.run(["gst-inspect-1.0", what], env=rig.environment, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), shown.stdout)
        rig.run.terminate()


class Campaign(unittest.TestCase):
    def test_kills(self):
        whole = gst_rig.reference(self, ARGS.build, SIZE, FRAMES)
        gst_rig.kill_each(self, ARGS.build, SIZE, ARGS.kills, SEED, whole, ARGS.supervisors)


if __name__ == "__main__":
    gst_rig.require_tools(ARGS.build)
    unittest.main(argv=sys.argv[:1] + ["Campaign" if ARGS.kills else "Elements"], verbosity=2)
