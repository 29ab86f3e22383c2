"""A run whose runtime directory becomes full. Usage: test_full_runtime.py FOLDER_OF_PROGRAMS"""
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
PIPELINE = """[pipeline]
name = "full"
device = "cpu"
fps = 60
[[stage]]
name = "numbers"
run = "{0}/carousel-test-number"
[[stage]]
name = "sink"
run = "{0}/carousel-test-number"
inputs = ["numbers"]
sink = true
"""

# The disk is filled while the ledger is in its second page: there is no room for a further page.
SCRIPT = r"""
mount -t tmpfs -o size=8m tmpfs runtime || exit 100
"$1/carousel" run full.toml --no-color --report report.json >log 2>&1 & run=$!
fail() { kill -TERM $run; wait $run; exit 101; }
wait_for() { tries=0; until eval "$1"; do tries=$((tries + 1)); [ $tries -lt 1000 ] || fail; sleep 0.02; done; }
wait_for '[ "$(stat -c %s runtime/carousel/full/ledger-sink.bin 2>/dev/null || echo 0)" -gt 4200 ]'
dd if=/dev/zero of=runtime/filler bs=4096 2>/dev/null
wait_for 'grep -q "waits for a full disk" log'
kill -TERM $run; wait $run
"""


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class FullRuntime(unittest.TestCase):
    def test_account_and_report_are_whole_and_every_mark_is_read(self):
        folder = tempfile.mkdtemp(prefix="carousel-full-")
        self.addCleanup(shutil.rmtree, folder, True)
        os.mkdir(os.path.join(folder, "runtime"), 0o700)
        with open(os.path.join(folder, "full.toml"), "w", encoding="utf-8") as f:
            f.write(PIPELINE.format(PROGRAMS))
        done = subprocess.run([*NAMESPACE, "sh", "-c", SCRIPT, "sh", PROGRAMS], cwd=folder, capture_output=True, text=True, timeout=100,
                              env={**os.environ, "XDG_RUNTIME_DIR": os.path.join(folder, "runtime")})
        log = text_of(os.path.join(folder, "log"))
        self.assertEqual(done.returncode, 75, done.stderr + log)
        self.assertNotIn("older build", log)
        self.assertRegex(log, r"full: \d+ frames in .*; lost 0, repeated 0, torn 0; ")
        report = json.loads(text_of(os.path.join(folder, "report.json")))
        self.assertEqual((report["lost"], report["repeated"], report["exit_code"]), (0, 0, 75))
        self.assertGreater(report["frames"], 0)
        self.assertTrue(os.path.exists(os.path.join(folder, report["sinks"][0]["ledger"])))


if __name__ == "__main__":
    need_mounts()
    unittest.main(argv=sys.argv[:1], verbosity=2)
