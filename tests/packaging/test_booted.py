"""The Debian package and its unit in a booted container: systemd as process 1, journald, an account of its own for the service.
Usage: test_booted.py BUILD [TRANSCRIPT]     TRANSCRIPT: a file that receives the commands and what they print"""
import json
import os
import re
import subprocess
import sys
import unittest

import containers
from bare_root import BareRoot, package, skip
from containers import podman, write

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import wait_for  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
TRANSCRIPT = sys.argv[2] if len(sys.argv) > 2 else None
OPTIONS = "--device cpu --size 96x64 --fps 30 --set geometry.triangles=500"
# Its first process prints 9 MB of lines, more than two log files hold.
TALKER = """#!/bin/sh
case "$*" in *--describe*) ;; *) mkdir /tmp/talked 2>/dev/null && yes "a line of the log" | head -c 9000000 >&2 ;; esac
exec carousel-fragment "$@"
"""


class Booted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        root = BareRoot(BUILD)
        cls.addClassCleanup(root.end)
        root.apt_install("systemd", "systemd-sysv", "dbus")
        deb = next(path for path in package("deb", BUILD, os.path.join(root.temporary.name, "packages")) if "/carousel_" in path)
        root.put(deb, "/srv/packages")
        root.apt_install("/srv/packages/*.deb")
        root.shell("useradd --system --no-create-home frames && mkdir -p /etc/carousel /etc/systemd/system/carousel@.service.d", root=True)
        write(root.folder + "/etc/systemd/system/carousel@.service.d/test.conf", "[Service]\nUser=frames\nWatchdogSec=6s\nTimeoutAbortSec=1s\n")
        write(root.folder + "/etc/carousel/demo.env", f"CAROUSEL_RUN_OPTIONS={OPTIONS}\n")
        write(root.folder + "/etc/carousel/talks.env", f"CAROUSEL_RUN_OPTIONS={OPTIONS}\n")
        write(root.folder + "/usr/local/bin/talker", TALKER)
        os.chmod(root.folder + "/usr/local/bin/talker", 0o755)
        with open(root.folder + "/usr/share/carousel/pipelines/demo.toml", encoding="utf-8") as file:
            demo = file.read()
        write(root.folder + "/etc/carousel/demo.toml", demo)
        write(root.folder + "/etc/carousel/talks.toml", demo.replace('run = "carousel-fragment"', 'run = "/usr/local/bin/talker"'))
        containers.set_up(cls)
        try:
            podman("run", "-d", "--name", "booted", "--network", "none", "--systemd=always", "--memory", "1g", "--pids-limit", "400",
                   "--rootfs", root.folder, "/sbin/init")
            wait_for("the booted system", lambda: cls.do_not_check("systemctl is-system-running --wait")[1].strip() in ("running", "degraded"), 60)
        except AssertionError as refused:
            skip(f"podman boots no container here: {refused}")

    @staticmethod
    def do_not_check(script):
        done = subprocess.run(["podman", "exec", "booted", "bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout

    def do(self, script, shown=True):
        """Runs it in the container, where it must succeed; returns what it prints."""
        code, text = self.do_not_check(script)
        if TRANSCRIPT and shown:
            with open(TRANSCRIPT, "a", encoding="utf-8") as file:
                file.write(f"# {script}\n{text}")
        if code != 0:
            self.fail(f"{script}:\n{text}\n" + self.do_not_check("journalctl --no-pager -n 40")[1])
        return text

    def carousel(self, words, shown=True):
        """A command as the account of the service."""
        return self.do(f"runuser -u frames -- env XDG_RUNTIME_DIR=/run/carousel carousel {words}", shown)

    def show(self, name, unit="carousel@demo"):
        return self.do_not_check(f"systemctl show {unit} -p {name} --value")[1].strip()

    def stages(self):
        return {s["name"]: s["pid"] for s in json.loads(self.carousel("ps --json", shown=False))["stages"]}

    def wait_for_state(self, pattern):
        wait_for(f"a state like {pattern}: {self.show('StatusText')}", lambda: re.fullmatch(pattern, self.show("StatusText")))

    def adopted_after(self, first):
        second = wait_for("the next supervisor", lambda: self.show("ActiveState") == "active" and self.show("MainPID") not in ("0", first)
                          and self.show("MainPID"))
        self.wait_for_state(r"running, [1-9]\d*\.\d frames/s")
        return second

    def test_a_service_starts_is_adopted_watched_and_stopped(self):
        self.do("systemctl enable carousel@demo && systemctl start carousel@demo")
        self.wait_for_state(r"running, [1-9]\d*\.\d frames/s")
        self.do("systemctl status carousel@demo --no-pager | head -20")
        self.carousel("ps")
        self.assertEqual(self.do("stat -c %U /proc/$(systemctl show carousel@demo -p MainPID --value)").strip(), "frames")
        stages, first = self.stages(), self.show("MainPID")
        with self.subTest("a supervisor that is killed"):
            self.do(f"kill -KILL {first}")
            second = self.adopted_after(first)
            self.assertEqual((self.stages(), self.show("NRestarts")), (stages, "1"))
        with self.subTest("a supervisor that hangs"):
            self.do(f"kill -STOP {second}")
            self.adopted_after(second)
            self.assertEqual((self.stages(), self.show("NRestarts")), (stages, "2"))
        with self.subTest("a stage that is killed, and the journal's fields"):
            self.carousel("kill fragment")
            wait_for("the successor", lambda: self.stages()["fragment"] not in (stages["fragment"], None))
            self.carousel("ps")
            line = json.loads(self.do("journalctl -u carousel@demo -o json STAGE=fragment -p warning --no-pager | head -1", shown=False))
            self.assertEqual([line[k] for k in ("PIPELINE", "SYSLOG_IDENTIFIER", "PRIORITY")], ["demo", "fragment", "4"])
            self.do("journalctl -u carousel@demo -p warning --no-pager -o short-monotonic | tail -8")
        with self.subTest("stop"):
            self.do("systemctl stop carousel@demo")
            self.assertEqual((self.show("ActiveState"), self.show("Result")), ("inactive", "success"))
            self.assertEqual(self.do("cat /proc/[0-9]*/comm | grep ^carousel || true; ls -A /dev/shm").split(), [])
            self.assertTrue(containers.is_whole(self.do("journalctl -u carousel@demo --no-pager -o cat | tail -4; systemctl status carousel@demo "
                                                        "--no-pager | grep -E 'Status|lost' || true")))

    def test_a_service_is_reloaded_and_upgraded_without_a_new_main_process(self):
        change = "sed -i 's/{}/{}/' /etc/carousel/demo.toml"
        self.do("systemctl enable carousel@demo && systemctl start carousel@demo")   # enabled: its last status remains after the stop
        self.wait_for_state(r"running, [1-9]\d*\.\d frames/s")
        before, main = self.stages(), self.show("MainPID")
        with self.subTest("a changed file restarts one stage"):
            self.do(change.format("keep = 100", "keep = 7") + " && systemctl reload carousel@demo")
            after = self.stages()
            self.assertEqual({n for n in after if after[n] != before[n]}, {"display"})
        with self.subTest("a refused file changes nothing"):
            self.do(change.format("max_attempts = 3", "max_attempts = 4") + "; ! systemctl reload carousel@demo")
            self.do("journalctl -u carousel@demo --no-pager -o cat | tail -8")
            self.assertEqual((self.stages(), self.show("MainPID"), self.show("ActiveState")), (after, main, "active"))
        for words in ("", " --drain"):
            with self.subTest("upgrade" + words):
                before = self.stages()
                self.carousel("upgrade -p demo" + words)
                wait_for("an active unit", lambda: self.show("ActiveState") == "active")
                self.wait_for_state(r"running, [1-9]\d*\.\d frames/s")
                self.assertEqual((self.show("MainPID"), self.show("NRestarts")), (main, "0"))
                self.assertFalse(set(self.stages().values()) & set(before.values()))
        self.carousel("ps")
        with self.subTest("a supervisor that is killed after the upgrades"):
            stages = self.stages()
            self.do(f"kill -KILL {main}")
            self.adopted_after(main)
            self.assertEqual(self.stages(), stages)
        self.do("systemctl stop carousel@demo")
        self.assertEqual((self.show("ActiveState"), self.show("Result")), ("inactive", "success"))
        self.assertTrue(containers.is_whole(self.do("systemctl show carousel@demo -p StatusText")))

    def test_logs_of_a_service_rotate(self):
        self.do("systemctl start carousel@talks")
        wait_for("a rotated log", lambda: re.search(r"fragment\S*\.1$", self.do_not_check("ls /run/carousel/carousel/talks/logs")[1], re.M))
        self.do("ls -l /run/carousel/carousel/talks/logs")
        sizes = [int(size) for size in self.do("stat -c %s /run/carousel/carousel/talks/logs/*").split()]
        self.assertLess(max(sizes), 5 << 20)
        self.assertIn("a line of the log", self.carousel("logs fragment -p talks | tail -3"))
        self.do("systemctl stop carousel@talks")

    def test_z_an_enabled_service_starts_with_the_system(self):
        podman("restart", "-t", "30", "booted")
        wait_for("the service after a boot", lambda: self.show("ActiveState") == "active", 60)
        self.wait_for_state(r"running, [1-9]\d*\.\d frames/s")
        self.do("systemctl status carousel@demo --no-pager | head -8")
        self.do("systemctl stop carousel@demo")


if __name__ == "__main__":
    containers.enter_own_mounts()
    unittest.main(argv=sys.argv[:1], verbosity=2)
