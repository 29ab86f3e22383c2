"""`carousel top`, `graph` and `completion` on real pipelines. Usage: test_watching.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER"""
import json
import re
import resource
import shutil
import socket
import sys
import tempfile

from live import CAROUSEL, HAS_EXTRAS, PIPELINES, PROGRAMS, SMALL, Live, main, os, signal, subprocess, wait_for
from terminal import Terminal


class Wait(Live):
    def test_it_returns_when_the_pipeline_runs_has_the_frames_or_has_ended(self):
        frames = subprocess.Popen([CAROUSEL, "wait", "-p", self.name, "--frames", "40"], env=self.environment)
        self.addCleanup(frames.wait)
        self.up("--frames", "120")
        self.assertEqual(self.carousel("wait", "-p", self.name).returncode, 0)
        late = self.carousel("wait", "-p", self.name, "--frames", "1000000", "--timeout", "0.2")
        self.assertEqual((late.returncode, frames.wait(30)), (1, 0))
        self.assertRegex(late.stderr, r"after 0\.2 s pipeline .* has delivered \d+ of 1000000 frames")
        end = self.carousel("wait", "-p", self.name, "--end")
        self.assertEqual((end.returncode, end.stdout), (0, f'pipeline "{self.name}" has ended: exit code 0\n'))
        # The ending supervisor is still there for a moment, and does not reply any more.
        wait_for("no such pipeline", lambda: self.carousel("wait", "-p", self.name, "--timeout", "0.1").returncode == 2)

    def test_a_run_that_ends_before_all_its_stages_run_is_an_error(self):
        self.up("--frames", "100000")
        self.assertEqual(self.carousel("down", "fragment", "-p", self.name).returncode, 0)
        waits = subprocess.Popen([CAROUSEL, "wait", "-p", self.name], env=self.environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waits.kill)

        def maps_the_block():
            with open(f"/proc/{waits.pid}/maps", encoding="utf-8") as maps:
                return "/dev/shm/" in maps.read()
        wait_for("the block in the waiting process", maps_the_block)
        self.carousel("down", "-p", self.name)
        self.assertRegex(waits.communicate(timeout=30)[1], f'pipeline "{self.name}" has ended, and no longer runs')
        self.assertEqual(waits.returncode, 1)


class Top(Live):
    def start(self, *more):
        return Terminal([CAROUSEL, "top", "-p", self.name, "--interval", "0.2", *more], self.environment)

    def test_it_shows_stages_rings_rates_and_a_kill_and_q_gives_the_terminal_back(self):
        self.up()
        t = self.start()
        wait_for("rates", lambda: any(re.match(r"[> ] fragment +\d+ +running .* 3\d\.\d ", line) for line in t.screen()))
        screen = "\n".join(t.screen())
        for text in (self.name, "geometry", "RING", "end to end"):
            self.assertIn(text, screen)
        self.assertRegex(screen, r"(?m)^fragment +\d+ .* display lag \d+ +[.wRrd]{8,}$")
        self.assertFalse(t.restored())
        before = self.stage("fragment")["pid"]
        os.kill(before, signal.SIGKILL)
        wait_for("the death on the screen", lambda: any(re.search(r"ago  fragment \(pid %d\) died: (signal 9 \(SIGKILL\)|killed)" % before, line) for line in t.screen()))
        wait_for("the successor on the screen",
                 lambda: any(re.match(r"[> ] fragment +(?!%d )\d+ +running +\S+ +1 " % before, line) for line in t.screen()))
        os.write(t.fd, b"q")
        self.assertEqual(t.exit_code(), 0)
        self.assertTrue(t.restored())

    def test_a_dumb_terminal_receives_no_escape_sequences(self):
        self.up()
        small = [w for w in SMALL if w not in ("--fps", "30")]
        run = ("run", os.path.join(PIPELINES, "demo.toml"), "--name", self.name + "-more", *small, "--frames", "5")
        for words, wanted in ((("top", "-p", self.name), b"fragment"), (("top", "-p", self.name, "--image"), b"no picture"),
                              (("logs", "-p", self.name), b""), (run, b"5 frames in")):
            for kind in ({"TERM": "dumb"}, {}):
                environment = {**{k: v for k, v in self.environment.items() if k != "TERM"}, **kind}
                t = Terminal([CAROUSEL, *words], environment)
                self.assertEqual(t.exit_code(), 0, t.out)
                self.assertIn(wanted, t.out)
                self.assertEqual(t.out.count(b"\x1b"), 0, t.out)

    def test_it_follows_the_size_of_the_terminal(self):
        self.up()
        t = self.start()
        wait_for("a screen", lambda: any("display" in line for line in t.screen()))
        t.resize(40, 6)
        wait_for("a smaller one", lambda: len(t.screen()) == 6 and max(map(len, t.screen())) <= 40)
        t.resize(120, 30)
        wait_for("a larger space", lambda: len(t.screen()) > 10)
        os.write(t.fd, b"q")
        self.assertEqual(t.exit_code(), 0)

    def test_signals_and_the_end_of_the_pipeline_give_the_terminal_back(self):
        self.up()
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGSEGV, -signal.SIGSEGV)):
            t = self.start()
            wait_for("a screen", lambda: any("display" in line for line in t.screen()))
            os.kill(t.pid, number)
            self.assertEqual(t.exit_code(), code)
            self.assertTrue(t.restored(), number)
        t = self.start()
        wait_for("a screen", lambda: any("display" in line for line in t.screen()))
        self.carousel("down")
        self.assertEqual(t.exit_code(), 0)
        self.assertTrue(t.restored())
        self.assertIn(b"has ended", t.out)

    def test_the_picture_is_drawn_in_half_blocks_and_its_process_ends_with_top(self):
        # A sink that packs pictures takes its time: a frame that is gone at once no other reader can catch.
        self.up("--size", "640x360", "--out", os.path.join(self.folder, "p_%03d.png"))
        for _ in range(5):   # a busy machine may not have its picture in time
            once = self.carousel("top", "--once", "--image").stdout.splitlines()
            if rows := [line for line in once if "\u2580" in line]:
                break
        self.assertEqual({line.count("\u2580") for line in rows}, {80}, once)  # on paper of 80 columns: 80 x 45 pixels
        self.assertEqual(len(rows), 23)
        colours = set(re.findall(r"\x1b\[38;2;(\d+;\d+;\d+)m", "".join(rows)))
        self.assertGreater(len(colours), 10)  # a lit sphere, not an empty background
        none = self.carousel("top", "--once", "--image-of", "nobody").stdout
        self.assertIn('no picture: no stage "nobody" with an output', none)
        t = self.start("--image")
        wait_for("a picture", lambda: any("\u2580" in line for line in t.screen()))
        peek = [p for p in os.listdir("/proc") if p.isdigit() and self.is_peek(p)]
        self.assertEqual(len(peek), 1)
        os.kill(int(peek[0]), signal.SIGKILL)  # costs the picture, nothing else
        wait_for("the loss", lambda: any("no picture: carousel-peek has ended" in line for line in t.screen()))
        self.assertTrue(any(re.match(r"[> ] fragment +\d+ +running", line) for line in t.screen()))
        os.write(t.fd, b"q")
        self.assertEqual(t.exit_code(), 0)
        self.assertEqual([p for p in os.listdir("/proc") if p.isdigit() and self.is_peek(p)], [])

    def test_the_picture_continues_when_the_memory_is_rebuilt(self):
        self.up("--size", "640x360")
        t = self.start("--image")
        peeks = lambda: [p for p in os.listdir("/proc") if p.isdigit() and self.is_peek(p)]
        wait_for("a picture", lambda: any("\u2580" in line for line in t.screen()))
        first = peeks()
        self.assertTrue(self.ask({"type": "rebuild", "run_id": self.ps()["pipeline"]["run_id"]})["ok"])
        wait_for("the news of that", lambda: any("restarts with new memory" in line for line in t.screen()))
        wait_for("another process for the picture", lambda: len(peeks()) == 1 and peeks() != first)
        wait_for("its picture", lambda: any("\u2580" in line for line in t.screen()) and not any("no picture" in line for line in t.screen()))
        os.write(t.fd, b"q")
        self.assertEqual(t.exit_code(), 0)
        self.assertEqual(peeks(), [])

    def frame_of(self, t):
        """The newest frame in the screen's line of the last ring."""
        line = next((x for x in t.screen() if re.match(r"fragment +\d+ .* display ", x)), "")
        return int(line.split()[1]) if line else -1

    def ask(self, request, name=None):
        """One command over the control socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(20)
            s.connect(os.path.join(self.folder, "carousel", name or self.name, "control.sock"))
            s.sendall(json.dumps(request).encode())
            return json.loads(s.recv(1 << 20))

    def test_next_to_another_run_it_follows_its_own_through_death_and_rebuild(self):
        grace = ("--set", "supervisor_grace_s=60")
        self.up(*grace)
        external = self.carousel("up", os.path.join(PIPELINES, "demo.toml"), "-d", *SMALL, "--name", "external")
        self.assertEqual(external.returncode, 0, external.stderr)
        t = self.start()
        wait_for("a screen", lambda: self.frame_of(t) > 5)
        run = self.ps()["pipeline"]
        os.kill(run["pid"], signal.SIGKILL)
        wait_for("the news", lambda: any("no supervisor, 4 stages continue" in line for line in t.screen()))
        before = self.frame_of(t)
        wait_for("its frames", lambda: self.frame_of(t) > before + 10)
        once = self.carousel("top", "--once", "-p", self.name).stdout
        self.assertIn("no supervisor, 4 stages continue", once)
        self.assertTrue(once.startswith(self.name + ":"), once)
        for words in (("top", "--once"), ("kill", "fragment"), ("ps",)):  # the other process isn't mistaken
                                                                          # for it
            refused = self.carousel(*words)
            self.assertEqual(refused.returncode, 2, words)
            self.assertIn("4 of its stages continue", refused.stderr)
        self.assertEqual(self.ask({"type": "kill", "stage": "fragment", "run_id": run["run_id"]}, "external")["ok"], False)
        others = json.loads(self.carousel("ps", "-p", "external", "--json").stdout)
        self.assertEqual([s["restarts"] for s in others["stages"]], [0] * 4)
        self.up(*grace)  # takes it over
        wait_for("its next supervisor", lambda: not any("no supervisor" in line for line in t.screen()))
        self.assertEqual(self.ps()["pipeline"]["run_id"], run["run_id"])
        self.assertTrue(self.ask({"type": "rebuild", "run_id": run["run_id"]})["ok"])
        wait_for("the news of that", lambda: any("restarts with new memory" in line for line in t.screen()))
        before = self.frame_of(t)
        wait_for("frames of the new memory", lambda: self.frame_of(t) > before + 10)
        self.carousel("down", "-p", self.name)
        self.assertEqual(t.exit_code(), 0)
        self.assertIn(f'pipeline "{self.name}" has ended: exit code 0'.encode(), t.out)

    def is_peek(self, pid):
        """A living carousel-peek of this test's world."""
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return b"carousel-peek" in (words := f.read()) and self.folder.encode() in words
        except OSError:
            return False

    def test_once_and_a_pipe_print_one_look_without_escapes(self):
        self.up()
        for words in (["top", "--once"], ["top"]):
            result = self.carousel(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("\x1b", result.stdout)
            self.assertRegex(result.stdout, r"(?m)^fragment +\d+ +running ")
            self.assertRegex(result.stdout, r"(?m)^fragment +\d+ .* [.wRrd!]{8,}$")
        self.assertEqual(self.carousel("top", "-p", "nosuch").returncode, 2)


    def test_on_80_columns_no_figure_is_lost_also_after_a_kill(self):
        self.up()
        os.kill(self.stage("fragment")["pid"], signal.SIGKILL)
        t = Terminal([CAROUSEL, "top", "-p", self.name, "--interval", "0.2"], self.environment, columns=80, rows=24)
        row = r"[> ] fragment +.*running .* 3\d\.\d +\d+% +\d+\.\d+ +\d+\.\d+( |$)"
        wait_for("rates", lambda: any(re.match(row, line) for line in t.screen()))
        screen = t.screen()
        self.assertLessEqual(max(map(len, screen)), 80)
        self.assertRegex("\n".join(screen), r"(?m)^fragment +.*[.wRrd]{8,}$")
        self.assertRegex("\n".join(screen), r"limited by fps: 30 frames/s|bottleneck: .* \(busy \d+ %\)|no bottleneck found")
        self.assertIn("SIGKILL", "\n".join(screen))
        os.write(t.fd, b"q")
        self.assertEqual(t.exit_code(), 0)

    def test_a_dry_run_fits_the_terminal_and_110_columns_on_paper(self):
        words = ["run", os.path.join(PIPELINES, "fanout.toml"), "--dry-run", "--device", "cpu"]
        paper = self.carousel(*words).stdout.splitlines()
        self.assertLessEqual(max(map(len, paper)), 110)
        for columns in (80, 60):
            t = Terminal([CAROUSEL, *words], self.environment, columns=columns)
            self.assertEqual(t.exit_code(), 0)
            lines = t.out.decode().replace("\r", "").splitlines()
            self.assertLessEqual(max(map(len, lines)), columns)
            joined = re.sub(r"\s+", "", "".join(lines))  # broken, with nothing left out
            for text in ("carousel.triangles{counters:u32[16]", "carousel-fragment", "(blocking", "memory of rings and assets".replace(" ", "")):
                self.assertIn(text, joined)


class Graph(Live):
    def check_dot(self, text):
        self.assertTrue(text.startswith("digraph "))
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", "-o", os.devnull], input=text, text=True, check=True)
        else:
            self.assertEqual(text.count("{"), text.count("}"))

    def test_every_shipped_pipeline_can_be_drawn(self):
        for python in (self.environment.get("CAROUSEL_PYTHON"), sys.executable, "/usr/bin/python3"):   # video.toml has a stage that takes NumPy
            if python and subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
                self.environment["CAROUSEL_PYTHON"] = python
                break
        else:
            self.skipTest("no Python with NumPy")
        for file in sorted(os.listdir(PIPELINES)):
            if not file.endswith(".toml"):
                continue
            result = self.carousel("graph", os.path.join(PIPELINES, file))
            if not HAS_EXTRAS and file == "inference.toml":   # its stages are an extra
                self.assertEqual(result.returncode, 2)
                self.assertIn("configure with -DCAROUSEL_EXTRAS=ON", result.stderr)
                continue
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_dot(result.stdout)
            self.assertTrue(re.search(r"s0 -> s1 \[label=\".*\d+ slots x .*blocking", result.stdout))
            mermaid = self.carousel("graph", os.path.join(PIPELINES, file), "--format", "mermaid").stdout
            self.assertEqual(mermaid.count(" -->|"), result.stdout.count(" -> "))

    def test_a_living_pipeline_is_drawn_with_its_states_and_rates(self):
        self.up()
        self.carousel("stop", "display")
        wait_for("rates", lambda: self.stage("geometry")["frames"] > 8)
        result = self.carousel("graph", "--live")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_dot(result.stdout)
        self.assertRegex(result.stdout, r'label="display\\ncpu\\nstopped, .* frames/s"')
        self.assertRegex(result.stdout, r"s2 -> s3 .*blocking\\nlag [1-9]\d*")
        self.assertNotIn("lag ", self.carousel("graph", "-p", self.name).stdout)
        self.carousel("cont", "display")


class Completion(Live):
    def offered(self, *words):
        script = 'source <(carousel completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _carousel; printf "%s\\n" "${COMPREPLY[@]}"'
        result = subprocess.run(["bash", "-c", script, "bash", "carousel", *words], env=self.environment, cwd=os.path.dirname(PIPELINES),
                                capture_output=True, text=True, timeout=30, check=True)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash_completes_commands_options_files_pipelines_and_stages(self):
        folder = os.path.basename(PIPELINES)
        self.assertEqual(self.offered("val"), ["validate"])
        self.assertTrue({"run", "up", "logs", "top", "completion"} <= set(self.offered("")))
        self.assertEqual(self.offered("run", "--de"), ["--detach", "--device"])
        self.assertIn(f"{folder}/demo.toml", self.offered("run", folder + "/"))
        self.assertEqual(self.offered("run", folder + "/dem"), [f"{folder}/demo.toml"])
        self.assertEqual(self.offered("graph", "x.toml", "--format", "m"), ["mermaid"])
        if HAS_EXTRAS:
            self.assertEqual(sorted(self.offered("bench", "")), ["ipc", "pipeline", "raster"])
            self.assertEqual(self.offered("bench", "pipeline", folder + "/dem"), [f"{folder}/demo.toml"])
            self.assertEqual(self.offered("bench", "pipeline", "--mod"), ["--modes"])
            self.assertEqual(self.offered("bench", "raster", "--peer", ""), ["opengl"])
        with tempfile.TemporaryDirectory() as models:
            for name in ("a.obj", "b.gltf", "c.glb", "d.ply", "e.txt"):
                open(os.path.join(models, name), "w", encoding="utf-8").close()
            self.assertEqual(sorted(self.offered("run", "--mesh", models + "/")), [f"{models}/{name}" for name in ("a.obj", "b.gltf", "c.glb", "d.ply")])
        self.assertEqual(self.offered("kill", ""), [])  # nothing runs
        self.up(file="workers.toml")
        self.assertEqual(self.offered("ps", "-p", ""), [self.name])
        self.assertEqual(self.offered("kill", "frag"), ["fragment", "fragment.0", "fragment.1", "fragment.2"])
        self.assertEqual(self.offered("kill", "-p", self.name, "vertex", "v"), [])
        self.assertEqual(self.offered("logs", "car"), ["carousel"])
        self.assertEqual(self.offered("nonsense", ""), [])

    def test_the_scripts_are_read_by_their_shells(self):
        for shell, words in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])):
            text = self.carousel("completion", shell).stdout
            self.assertIn("__complete", text)
            if not shutil.which(shell):
                print(f"({shell} is not here: its script was not read)")
                continue
            subprocess.run([shell, *words, self.write("script", text)], env=self.environment, check=True)

    def test_fish_completes_stages(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not here")
        self.up()
        script = "carousel completion fish | source; complete -C 'carousel kill frag'"
        result = subprocess.run(["fish", "-c", script], env={**self.environment, "HOME": self.folder}, capture_output=True, text=True, check=True)
        self.assertEqual(result.stdout.split(), ["fragment"])


class Doctor(Live):
    def test_doctor_lists_what_this_build_can_do_and_what_would_add_the_rest(self):
        if not HAS_EXTRAS:
            self.skipTest("this build has no doctor")
        lonely = os.path.join(self.folder, "lonely")
        os.mkdir(lonely)
        shutil.copy(os.path.join(PROGRAMS, "carousel"), lonely)
        for program, there in ((os.path.join(PROGRAMS, "carousel"), None), (os.path.join(lonely, "carousel"), False)):
            output = subprocess.run([program, "doctor", "--json"], env=self.environment, capture_output=True, text=True, check=False)
            checks = {c["name"]: c for c in json.loads(output.stdout)["checks"]}
            for name, file, package in (("films", "libcarousel-film.so", "libavcodec-dev"), ("dashboard", "carousel-web", "libturbojpeg0-dev"),
                                        ("viewer", "carousel-viewer", "libimgui-dev")):
                built = os.path.exists(os.path.join(PROGRAMS, file)) if there is None else there
                self.assertEqual(checks[name]["found"].split(":")[0], "built" if built else "not built", name)
                self.assertEqual(checks[name]["remedy"], "" if built else checks[name]["remedy"])
                self.assertEqual(package in checks[name]["remedy"], not built, name)
            self.assertIn("JPEG textures", checks)
            self.assertIn("MPS", " ".join(checks))


class AddressSpace(Live):
    def test_a_limit_of_address_space_is_named_as_the_reason(self):
        for kib in (30000, 50000, 80000):
            done = self.carousel("run", os.path.join(PIPELINES, "demo.toml"), "--name", self.name, "--device", "cpu", "--size", "1280x720", "--frames", "2", "--out", "",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024)))
            self.assertNotEqual(done.returncode, 0, kib)
            self.assertIn(f"{kib / 1024:.1f} MiB of address space (ulimit -v)", done.stderr, kib)
            self.assertNotIn("No such file or directory", done.stderr, kib)


class Probe(Live):
    def test_the_probe_describes_its_purpose(self):
        result = subprocess.run([os.path.join(PROGRAMS, "carousel-probe"), "--help"], capture_output=True, text=True, check=True)
        self.assertIn("Usage: carousel-probe [--quick]", result.stdout)


if __name__ == "__main__":
    main()
