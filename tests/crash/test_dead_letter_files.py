"""Dead letters on a full disk. Usage: test_dead_letter_files.py FOLDER_OF_PROGRAMS"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from small_disk import NAMESPACE, need_mounts  # noqa: E402

PROGRAMS = os.path.abspath(sys.argv[1])

# The source is a port: no frame is made before the folder of the dead letters is on the small disk.
PIPELINE = """[pipeline]
name = "full"
device = "cpu"
[[stage]]
name = "numbers"
run = "port"
output = {{ value = "u64[512]" }}
type = "test.number"
ends = true
[[stage]]
name = "dies"
run = "{0}/carousel-test-number"
inputs = ["numbers"]
die_at = 7
max_attempts = 1
[[stage]]
name = "sink"
run = "{0}/carousel-test-number"
inputs = ["dies"]
sink = true
"""


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class DeadLetterFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-letters-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)
        with open(os.path.join(self.folder, "full.toml"), "w", encoding="utf-8") as f:
            f.write(PIPELINE.format(PROGRAMS))

    def run_with_dead_letters_on_a_small_disk(self, fill):
        """A run whose frame 7 is abandoned: returns its log, and the content of its folder of dead letters at the end."""
        script = (
            'letters=runtime/carousel/full/dead-letters; '
            '"$1/carousel" run full.toml --no-color --report report.json >log 2>&1 & run=$!; '
            '"$1/carousel" ps -p full --wait 20 >/dev/null || { kill -TERM $run; wait $run; exit 1; }; '
            'mkdir -p $letters && mount -t tmpfs -o size=1m tmpfs $letters || { kill -TERM $run; wait $run; exit 1; }; '
            f'{fill}; '
            '"$1/carousel-test-port-io" end full numbers 0 30 0; wait $run; code=$?; ls $letters >kept; exit $code')
        done = subprocess.run([*NAMESPACE, "sh", "-c", script, "sh", PROGRAMS], cwd=self.folder, capture_output=True, text=True, timeout=100,
                              env={**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")})
        log = os.path.join(self.folder, "log")
        self.assertEqual(done.returncode, 4, done.stderr + text_of(log))
        report = json.loads(text_of(os.path.join(self.folder, "report.json")))
        self.assertEqual((report["frames"], report["lost"], report["repeated"], report["torn"]), (30, 0, 0, 0))
        self.assertEqual([dead_letter["ring_sequence"] for dead_letter in report["dead_letters"]], [7])
        return text_of(log), text_of(os.path.join(self.folder, "kept")).split()

    def test_a_given_up_frame_continues_when_the_disk_has_no_room_for_it(self):
        log, kept = self.run_with_dead_letters_on_a_small_disk("dd if=/dev/zero of=$letters/filler bs=4096 2>/dev/null")
        self.assertRegex(log, r"warning: frame 7 is given up and not saved: (writing|creating) .*: No space left on device")
        self.assertEqual(kept, ["filler"])

    def test_it_is_kept_where_there_is_room(self):
        log, kept = self.run_with_dead_letters_on_a_small_disk("true")
        self.assertIn("frame 7 is saved for replay", log)
        self.assertEqual(kept, ["dies-7"])


if __name__ == "__main__":
    need_mounts()
    unittest.main(argv=sys.argv[:1], verbosity=2)
