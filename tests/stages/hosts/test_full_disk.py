"""One file over two hosts, and the remote one's disk is full: its pictures are the durable end. By hand, with a recorder, it is in
test_lost_hosts.py. Usage: test_full_disk.py FOLDER_OF_PROGRAMS"""
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, PORT, World  # noqa: E402
from link_pair import check_report, hash_in, wait_for  # noqa: E402
from small_disk import NAMESPACE, need_mounts  # noqa: E402

PROGRAMS = sys.argv[1]
FRAMES, SIZE, FRAME_TIMEOUT_S = 60, 64 << 10, 1
CHAIN = f"""[pipeline]
size = [128, 128]
frame_timeout_ms = {FRAME_TIMEOUT_S * 1000}

[[stage]]
name = "geometry"
run = "carousel-geometry"
triangles = 500

[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]

[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]

[[stage]]
name = "display"
run = "carousel-display"
inputs = ["fragment"]
out = "{{out}}/frame_%05d.rgba"
"""
PICTURES = [f"frame_{n:05}.rgba" for n in range(FRAMES)]
# Room for ten pictures in addition to the filler. `exec`, so that the supervisor is the process that the test has started.
SMALL_DISK = f'mount -t tmpfs -o size=4m tmpfs "$0" && head -c {(4 << 20) - 10 * SIZE} /dev/zero >"$0/filler" && exec "$@"'


def pids(host):
    """The pids of that host's own stages."""
    return {s["name"]: s.get("pid") for s in host.ps().get("stages") or [] if "/" not in s["name"]}


def state(host):
    return (host.ps().get("pipeline") or {}).get("state")


class FullDisk(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def pictures_on_one_host(self):
        out = os.path.join(self.world.folder, "one")
        os.mkdir(out)
        one = self.world.coordinator(self.world.write("one.toml", CHAIN.format(out=out)), "--frames", str(FRAMES)).start()
        self.assertEqual(one.wait(), 0, one.text())
        self.assertEqual(sorted(os.listdir(out)), PICTURES)
        return out, one.report()["image_hash"]

    def started(self):
        """Both hosts, b on a small disk, which is a folder of only its mount namespace. Returns a descriptor
        of it, too."""
        disk = os.path.join(self.world.folder, "disk")
        os.mkdir(disk)
        file = self.world.write("full.toml", CHAIN.format(out=disk) + 'host = "b"\n\n'
                                + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none",
                                              more='release = "durable"'))
        coordinator, b = (make("--frames", str(FRAMES)) for make in (
            lambda *o: self.world.coordinator(file, *o),
            lambda *o: self.world.remote(file, "b", *o, inside=[*NAMESPACE, "sh", "-c", SMALL_DISK, disk])))
        coordinator.start()
        coordinator.expect_log("waiting for host b")
        self.started_at = time.monotonic()
        b.start()
        b.expect_log("waits for a full disk")
        inside = os.open(f"/proc/{b.process.pid}/root{disk}", os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, inside)
        return coordinator, b, inside

    def test_a_remote_sink_on_a_full_disk_reports_it_and_later_all_pictures_exist(self):
        one, expected = self.pictures_on_one_host()
        coordinator, b, disk = self.started()
        wait_for("b waits for its disk", lambda: b.stage("display").get("waits_for") == "full disk")
        wait_for("this host waits for b", lambda: coordinator.stage("fragment-to-b").get("waits_for") == "another host")
        before, alive = os.listdir(disk), {host: pids(host) for host in (coordinator, b)}
        self.assertEqual(sorted(alive[coordinator]), ["fragment", "fragment-to-b", "geometry", "vertex"])
        self.assertEqual(sorted(alive[b]), ["display", "fragment-from-here"])
        time.sleep(2 * FRAME_TIMEOUT_S)
        self.assertEqual({host: pids(host) for host in (coordinator, b)}, alive)
        self.assertEqual([host.process.poll() for host in (coordinator, b)], [None, None], coordinator.text() + b.text())
        wait_for("this host knows what b waits for", lambda: coordinator.stage("b/display").get("waits_for") == "full disk")
        self.assertEqual([state(coordinator), state(b)], ["running", "running"])
        self.assertEqual(sorted(os.listdir(disk)), sorted(before))
        self.assertLess(coordinator.stage("fragment-to-b").get("frames"), FRAMES - 16)   # frames in flight, and those not sent yet
        os.unlink("filler", dir_fd=disk)
        self.assertEqual([coordinator.wait(), b.wait()], [0, 0], coordinator.text() + b.text())
        ran_s = time.monotonic() - self.started_at
        for host in (coordinator, b):
            check_report(host, FRAMES)
            self.assertEqual(host.report()["restarts"], 0, host.text())
        # Each host logs the full disk once (this one has a copy of b's lines), and again every 5 s.
        for host in (coordinator, b):
            log_lines = re.findall(r".*waits for a full disk.*", host.text())
            self.assertTrue(1 <= len(log_lines) <= 1 + ran_s // 5, host.text())
            self.assertRegex(log_lines[0], r"KiB are free there\): .*/disk/frame_\d+\.rgba: No space left on device; free some space on "
                             "that disk, .*No frame is lost")
        self.assertEqual(hash_in(b, "display"), expected)
        self.assertEqual(sorted(os.listdir(disk)), PICTURES)
        for name in PICTURES:
            with open(os.open(name, os.O_RDONLY, dir_fd=disk), "rb") as there, open(os.path.join(one, name), "rb") as here:
                self.assertEqual(there.read(), here.read(), name)


if __name__ == "__main__":
    need_mounts()
    sys.argv.pop(1)
    unittest.main(verbosity=2)
