"""carousel-encode in real runs: kills, an HLS folder, refused settings, outputs that can't be written.
Usage: test_encode.py FOLDER_OF_PROGRAMS"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import encoded  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[1])
FRAMES = 100


class Encode(unittest.TestCase):
    def test_a_killed_encoder_leaves_each_frame_once_next_to_an_hls_folder(self):
        encoders = {"killed": 'url = "x.mkv"\ncodec = "ffv1"', "quiet": 'url = "hls/x.m3u8"\ngop = 15\nsegment_s = 0.5\nquality = 10'}
        with encoded.Run(PROGRAMS, encoders, FRAMES) as run:
            killed = run.kill("killed", 3, 15)
            output = run.finish()["output_directory"]
            self.assertEqual(killed, 3, run.log())
            lossless, playlist = os.path.join(output, "x.mkv"), os.path.join(output, "hls", "x.m3u8")
            for path in (lossless, playlist):
                self.assertEqual(encoded.frame_numbers(path), list(range(FRAMES)), path)
            self.assertEqual(encoded.decoded(lossless), FRAMES)
            self.assertGreater(encoded.psnr(playlist, lossless), 40.0)
            with open(playlist, encoding="utf-8") as f:
                lines = f.read().splitlines()
            self.assertEqual([x for x in lines if x.endswith(".m4s")], [f"x_{n:010}.m4s" for n in range(0, FRAMES, 30)])
            self.assertEqual((lines[0], lines[-1]), ("#EXTM3U", "#EXT-X-ENDLIST"))
            self.assertEqual([pts for pts, key in encoded.packets(playlist) if key], [n / encoded.FPS for n in range(0, FRAMES, 15)])

    def test_frames_keep_the_irregular_times_of_their_video(self):
        if not os.path.exists(os.path.join(PROGRAMS, "carousel-video")):
            self.skipTest("this build has no carousel-video")
        with tempfile.TemporaryDirectory(prefix="carousel-encoded-") as folder:
            source = os.path.join(folder, "irregular.mkv")
            subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=30", "-vf", "select='not(eq(mod(n,7),3))'",
                            "-fps_mode", "vfr", "-frames:v", "40", "-c:v", "ffv1", source], stdin=subprocess.DEVNULL, timeout=60, check=True)
            scene = f'[pipeline]\nname = "encoded"\ndevice = "cpu"\n[[stage]]\nname = "fragment"\nrun = "carousel-video"\nurl = "{source}"\npixel_format = "nv12"\n'
            with encoded.Run(PROGRAMS, {"encode": 'url = "x.mp4"\nfps = "frames"'}, 40, scene=scene) as run:
                output = os.path.join(run.finish()["output_directory"], "x.mp4")
                times = [[pts for pts, _ in encoded.packets(p)] for p in (source, output)]
        self.assertEqual(len(times[1]), 40)
        for a, b in zip(*times):
            self.assertAlmostEqual(a, b, delta=0.0011)

    def refused(self, keys):
        with encoded.Run(PROGRAMS, {"encode": keys}, 1, more=("--out", "")) as run:
            self.assertEqual(run.process.wait(30), 2, run.log())
            return run.log()

    def test_settings_that_no_encoder_supports_are_refused_with_one_sentence(self):
        for keys, cause in (('url = "x.mkv"\noptions = { bf = 2 }', "only after later ones"),
                            ('url = "x.mkv"\nencoder = "nothing"', 'encoder = "nothing"'),
                            ('url = "x.mp4"\ncodec = "ffv1"', "ffv1 can't be stored in mp4"),
                            ('url = "x.avi"', "does not determine a container"),
                            ('url = "x.mkv"\ncodec = "h265"', 'did you mean "h26')):
            self.assertIn(cause, self.refused(keys))


if __name__ == "__main__":
    encoded.require(PROGRAMS)
    unittest.main(argv=sys.argv[:1], verbosity=2)
