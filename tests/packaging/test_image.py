"""The images that `pipelines/package image` makes, on a bare root, run by podman with a container's usual limits: one container, and two
that share a folder. Usage: test_image.py BUILD"""
import json
import os
import random
import re
import subprocess
import sys
import time
import unittest

import containers
from bare_root import BareRoot, package, run, skip
from containers import is_whole, podman, write

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import wait_for  # noqa: E402
from seeds import scaled, seed  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
LIMITS = ("--network", "none", "--read-only", "--user", "1000910000:0", "--memory", "1g", "--cpus", "1.5", "--pids-limit", "200")
DEMO = ("run", "/opt/carousel/share/carousel/pipelines/demo.toml", "--device", "cpu", "--size", "320x180", "--set", "geometry.triangles=2000",
        "--out", "", "--no-color")
# Programs that the image does not have are mounted, and find their libraries in it.
APART = """[pipeline]
name = "apart"
device = "cpu"
[[stage]]
name = "camera"
run = "port"
output = { value = "u64[512]" }
[[stage]]
name = "middle"
run = "/number"
inputs = ["camera"]
[[stage]]
name = "sink"
run = "/number"
inputs = ["middle"]
sink = true
[[stage]]
name = "analysis"
run = "port"
inputs = ["camera"]
"""


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        root = BareRoot(BUILD)
        temporary = containers.set_up(cls)
        podman("import", os.path.join(BUILD, "bare-root.tar"), "localhost/bare")
        root.end()
        try:
            podman("run", "--rm", *LIMITS, "localhost/bare", "true")
        except AssertionError as refused:
            skip(f"podman runs no container with limits here: {refused}")
        cls.runtime, cls.cuda = package("image", BUILD, temporary, "--base", "localhost/bare")

    def test_the_images_differ_only_in_what_asks_for_the_driver(self):
        runtime, cuda = (json.loads(podman("image", "inspect", name))[0]["Config"] for name in (self.runtime, self.cuda))
        self.assertEqual(runtime["User"], "10001:0")
        self.assertEqual(set(cuda["Env"]) - set(runtime["Env"]), {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"})

    def test_the_demo_runs_under_limits_as_any_user(self):
        for image in (self.runtime, self.cuda):
            text = podman("run", "--rm", *LIMITS, image, *DEMO, "--frames", "60")
            print(text, file=sys.stderr)
            self.assertTrue(is_whole(text), text)

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
        self.assertTrue(is_whole(text), text)
        self.assertEqual(podman("inspect", "--format", "{{.State.ExitCode}}", "service").strip(), "0")   # a run without --frames

    def test_two_containers_with_limits_are_killed_without_loss(self):
        """Supervisor and stages in one, two programs of ports in others, which are killed and started again as containers."""
        shared = containers.shared_folder(self, uid=1000910000)
        write(os.path.join(shared, "apart.toml"), APART)
        mounts = ("-v", f"{shared}:/shared", "-e", "XDG_RUNTIME_DIR=/shared", "-e", "LD_LIBRARY_PATH=/opt/carousel/lib/carousel", "--ipc", "private",
                  "--uts", "private")
        podman("run", "-d", "--name", "run", *LIMITS, *mounts, "-v", f"{BUILD}/carousel-test-number:/number:ro", self.runtime, "run",
               "/shared/apart.toml", "--no-color")
        program = ("-v", f"{BUILD}/carousel-test-port-io:/port-io:ro", "--entrypoint", "/port-io")
        for name, what in (("camera", "write"), ("analysis", "read")):
            podman("run", "-d", "--name", name, *LIMITS, *mounts, *program, self.runtime, what, "/shared/carousel/apart", name, "2000")
        kills, chosen = scaled(20), seed()
        chance = random.Random(chosen)
        order = [("camera", "analysis", "stage", "stage")[k % 4] for k in range(kills)]
        chance.shuffle(order)

        def frames(name):
            return subprocess.run(["podman", "logs", "--tail", "3", name], capture_output=True, text=True, check=False).stdout
        for k, role in enumerate(order):
            if k % 4 == 0:
                seen = {name: frames(name) for name in ("camera", "analysis")}
                wait_for("frames", lambda seen=seen: all("frame" in frames(n) and frames(n) != text for n, text in seen.items()), 60)
            if role == "stage":
                podman("exec", "run", "carousel", "kill", chance.choice(("middle", "sink")))
            else:
                podman("kill", "--signal", "KILL", role)
                podman("wait", role)
                podman("start", role)
        seen = {name: frames(name) for name in ("camera", "analysis")}
        wait_for("frames", lambda: all("frame" in frames(n) and frames(n) != text for n, text in seen.items()), 60)
        podman("stop", "-t", "60", "run")
        text = podman("logs", "run")
        print(f"{kills} kills, seed {chosen}:", *text.splitlines()[-3:], sep="\n", file=sys.stderr)
        self.assertTrue(is_whole(text), text[-3000:])
        for name in ("camera", "analysis"):
            self.assertEqual(podman("wait", name).strip(), "0", run("podman", "logs", "--tail", "5", name))

    def test_a_space_is_shared_by_containers_and_gets_back_what_a_killed_one_held(self):
        shared = containers.shared_folder(self, uid=1000910000)
        mounts = ("-v", f"{shared}:/shared", "-e", "XDG_RUNTIME_DIR=/shared", "-e", "LD_LIBRARY_PATH=/opt/carousel/lib/carousel", "--ipc", "private",
                  "--uts", "private")
        podman("run", "-d", "--name", "hold", *LIMITS, *mounts, self.runtime, "hold", "lab", "--size", "4M")

        def lab():
            found = subprocess.run(["podman", "exec", "hold", "carousel", "ps", "--json"], capture_output=True, text=True, check=False).stdout
            return {p["name"]: p["figures"] for s in json.loads(found or "{}").get("spaces", []) for p in s["primitives"]}
        clients = ("first", "second", "third")
        for name in clients:   # each owns a block and a permit; an open standard input keeps it
            podman("run", "-d", "-i", "--name", name, *LIMITS, *mounts, "-v", f"{BUILD}/carousel-space-client:/client:ro", "--entrypoint", "/client",
                   self.runtime, "lab")
        wait_for("a block of each", lambda: (f := lab()) and f["frames"]["blocks"] == f["turn"]["taken"] == 3, 60)
        for left, name in ((2, "first"), (1, "third")):
            podman("kill", "--signal", "KILL", name)
            wait_for("the recovery", lambda left=left: (f := lab())["frames"]["blocks"] == f["turn"]["taken"] == left, 30)
        self.assertEqual(podman("inspect", "--format", "{{.State.Running}}", "second").strip(), "true")
        podman("rm", "-f", "-t", "0", "hold", *clients)



if __name__ == "__main__":
    containers.enter_own_mounts()
    unittest.main(argv=sys.argv[:1], verbosity=2)
