"""The images that `pipelines/package image` makes, on a bare root, run by podman with a container's usual limits. Usage: test_image.py BUILD"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from bare_root import BareRoot, package, run, skip

BUILD = os.path.abspath(sys.argv[1])
LIMITS = ("--network", "none", "--read-only", "--user", "1000910000:0", "--memory", "1g", "--cpus", "1.5", "--pids-limit", "200")
DEMO = ("run", "/opt/carousel/share/carousel/pipelines/demo.toml", "--device", "cpu", "--size", "320x180", "--set", "geometry.triangles=2000",
        "--out", "", "--no-color")
# Limits of processes that no container may raise where podman itself may not.
CONFIGURATION = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


def podman(*words):
    return run("podman", *words)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        root = BareRoot(BUILD)
        temporary = tempfile.mkdtemp(prefix="carousel-images-")
        cls.addClassCleanup(shutil.rmtree, temporary, True)
        os.environ.update(CONTAINERS_CONF=f"{temporary}/containers.conf", CONTAINERS_STORAGE_CONF=f"{temporary}/storage.conf")
        write(os.environ["CONTAINERS_CONF"], CONFIGURATION)
        for driver in ("overlay", "vfs"):   # vfs, which copies each layer, works everywhere
            write(os.environ["CONTAINERS_STORAGE_CONF"],
                  f'[storage]\ndriver = "{driver}"\ngraphroot = "{temporary}/{driver}"\nrunroot = "{temporary}/{driver}-run"\n')
            if subprocess.run(["podman", "info"], capture_output=True, check=False).returncode == 0:
                break
        podman("import", os.path.join(BUILD, "bare-root.tar"), "localhost/bare")
        root.end()
        try:
            podman("run", "--rm", *LIMITS, "localhost/bare", "true")
        except AssertionError as refused:
            skip(f"podman runs no container with limits here: {refused}")
        cls.runtime, cls.cuda = package("image", BUILD, temporary, "--base", "localhost/bare")
        cls.addClassCleanup(subprocess.run, ["podman", "rm", "-af", "-t", "0"], capture_output=True, check=False)

    def test_the_images_differ_only_in_what_asks_for_the_driver(self):
        runtime, cuda = (json.loads(podman("image", "inspect", name))[0]["Config"] for name in (self.runtime, self.cuda))
        self.assertEqual(runtime["User"], "10001:0")
        self.assertEqual(set(cuda["Env"]) - set(runtime["Env"]), {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"})

    def test_the_demo_runs_under_limits_as_any_user(self):
        for image in (self.runtime, self.cuda):
            text = podman("run", "--rm", *LIMITS, image, *DEMO, "--frames", "60")
            print(text, file=sys.stderr)
            self.assertRegex(text, r"lost 0, repeated 0, torn 0|0 lost, 0 repeated, 0 torn")

    def test_process_1_reaps_orphans_and_ends_the_run_at_sigterm(self):
        podman("run", "-d", "--name", "service", *LIMITS, self.runtime, *DEMO, "--fps", "30")
        deadline = time.monotonic() + 30
        while "running" not in subprocess.run(["podman", "exec", "service", "carousel", "ps"], capture_output=True, text=True, check=False).stdout:
            self.assertLess(time.monotonic(), deadline, "the run did not start: " + podman("logs", "service"))
            time.sleep(0.5)
        self.assertEqual(podman("exec", "service", "cat", "/proc/1/comm").strip(), "carousel")
        for _ in range(5):
            podman("exec", "service", "sh", "-c", "(sleep 0.2 &)")
        time.sleep(2)
        states = podman("exec", "service", "sh", "-c", "cat /proc/[0-9]*/status")
        self.assertEqual(re.findall(r"^State:\s+Z.*$", states, re.M), [])
        podman("exec", "service", "carousel", "kill", "fragment")
        time.sleep(2)
        began = time.monotonic()
        podman("stop", "-t", "30", "service")
        self.assertLess(time.monotonic() - began, 20)
        text = run("podman", "logs", "service")
        print(text, file=sys.stderr)
        self.assertRegex(text, r"lost 0, repeated 0, torn 0|0 lost, 0 repeated, 0 torn")
        self.assertEqual(podman("inspect", "--format", "{{.State.ExitCode}}", "service").strip(), "0")   # a run without --frames


if __name__ == "__main__":
    if not shutil.which("podman"):
        skip("podman is not installed (package: podman)")
    if "OWN_MOUNTS" not in os.environ and os.geteuid() == 0:
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, "OWN_MOUNTS": "1"})
    # Where cgroup v1 and v2 are mounted side by side, crun refuses both: only v1 is left here, with the controllers.
    subprocess.run(["umount", "/sys/fs/cgroup/unified"], capture_output=True, check=False)
    unittest.main(argv=sys.argv[:1], verbosity=2)
