"""A full /dev/shm and a full disk, for real: small tmpfs mounts in a mount namespace of the test's own.
Usage: test_full_filesystems.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

PROGRAMS, PIPELINES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEMO = os.path.join(PIPELINES, "demo.toml")
NAMESPACE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


class FullFilesystems(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="carousel-full-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)
        os.mkdir(os.path.join(self.folder, "small"))

    def run_on(self, mount_at, size, *arguments, before="true"):
        """`carousel run demo.toml ARGUMENTS` where `mount_at` is a tmpfs of `size`; then what is left of it there."""
        script = (f'mount -t tmpfs -o size={size} tmpfs "$1" && mount_point=$1 && shift && {before} && "$@"; code=$?; '
                  'echo "LEFT:" $(ls -A "$mount_point"); exit $code')
        command = [*NAMESPACE, "sh", "-c", script, "sh", mount_at, os.path.join(PROGRAMS, "carousel"), "run", DEMO, "--device", "cpu",
                   "--size", "320x180", "--set", "geometry.triangles=500", "--frames", "60", "--no-color", *arguments]
        environment = {**os.environ, "XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime")}
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=100)
        left = next((line[5:].split() for line in done.stdout.splitlines() if line.startswith("LEFT:")), None)
        self.assertIsNotNone(left, done.stdout + done.stderr)
        return done.returncode, done.stdout + done.stderr, left

    def nothing_runs(self):
        runtime = os.path.join(self.folder, "runtime", "carousel")
        self.assertEqual(os.listdir(runtime) if os.path.isdir(runtime) else [], [])
        mine = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if self.folder.encode() in f.read():
                        mine.append(pid)
            except OSError:
                pass
        self.assertEqual(mine, [])

    def test_a_full_dev_shm_is_one_sentence_and_leaves_nothing(self):
        code, text, left = self.run_on("/dev/shm", "64k", "--out", "")
        self.assertNotIn(code, (0, -6, -7, -11, 135, 139), text)  # no SIGBUS on the first touch
        self.assertIn("/dev/shm", text)
        self.assertEqual(left, [])
        self.nothing_runs()

    def test_a_dev_shm_with_room_is_enough(self):
        code, text, left = self.run_on("/dev/shm", "64m", "--out", "")
        self.assertEqual(code, 0, text)
        self.assertEqual(left, [])

    def test_a_full_disk_under_the_pictures_ends_the_run_and_says_which(self):
        small = os.path.join(self.folder, "small")
        code, text, left = self.run_on(small, "256k", "--out", os.path.join(small, "frame_%05d.png"))
        self.assertNotEqual(code, 0, text)
        self.assertIn("No space left on device", text)
        self.assertIn("frame_", text)
        self.assertTrue(left, text)
        self.assertTrue(all(name.endswith(".png") for name in left), left)  # whole pictures, no half-written ones
        self.nothing_runs()

    def test_a_full_disk_under_the_report_is_said_and_nothing_else_suffers(self):
        small = os.path.join(self.folder, "small")
        fill = 'dd if=/dev/zero of="$mount_point/filler" bs=4096 count=64 2>/dev/null; true'
        code, text, left = self.run_on(small, "64k", "--out", "", "--report", os.path.join(small, "report.json"), before=f"{{ {fill}; }}")
        self.assertNotEqual(code, 0, text)
        self.assertIn("--report FILE", text)
        self.assertIn("No space left on device", text)
        self.nothing_runs()


if __name__ == "__main__":
    probe = subprocess.run([*NAMESPACE, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /dev/shm"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip("no mount namespace here: " + (probe.stderr.strip() or "unshare failed"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
