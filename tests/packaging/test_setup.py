"""The set-up of ./pipelines/launch and ./tests/run, with stand-ins for apt, cmake and ninja. Usage: test_setup.py ROOT

The scripts run in a copy of their own, on a PATH that holds the system's commands except those that are replaced or taken away.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = sys.argv[1]
REPLACED = {"apt-get", "dpkg-query", "cmake", "ninja", "ctest", "nvcc", "nvidia-smi", "sudo", "id"}

FAKES = {
    # Everything is installed except the items that $MISSING names.
    "dpkg-query": """for p in "$@"; do case " $MISSING " in *" $p "*) ;; *) echo "ii  $p" ;; esac; done; exit 0""",
    "apt-get": """echo "apt-get $*" >>"$CALLS"; case $* in *install*) exit "${APT_EXIT:-0}" ;; esac""",
    "cmake": """echo "cmake $*" >>"$CALLS"; mkdir -p build/$2; touch build/$2/build.ninja build/$2/CMakeCache.txt
        printf "carousel-%s\n" geometry fragment web record >build/$2/programs.txt
        echo "-- CUDA: no nvcc found; building the CPU backend alone"; exit "${CMAKE_EXIT:-0}" """,
    "ninja": """if [ "$1" = -n ]; then if [ -e built ]; then echo "ninja: no work to do."; else echo "[1/1] x"; fi; exit 0; fi
        echo "ninja $*" >>"$CALLS"; touch built
        printf '#!/bin/sh\\nfor a; do printf "<%%s>" "$a"; done; echo\\n' >carousel; chmod +x carousel; exit "${NINJA_EXIT:-0}" """,
    "ctest": """echo "ctest $*" >>"$CALLS"; exit "${CTEST_EXIT:-0}" """,
    "sudo": """echo "sudo" >>"$CALLS"; exec "$@" """,
    "id": """if [ "$1" = -u ]; then echo "${FAKE_UID:-0}"; else echo somebody; fi""",
}


class Setup(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.system = tempfile.TemporaryDirectory(prefix="carousel-system-")
        for folder in ("/usr/bin", "/bin"):
            for name in os.listdir(folder):
                if name not in REPLACED and not os.path.lexists(os.path.join(cls.system.name, name)):
                    os.symlink(os.path.join(folder, name), os.path.join(cls.system.name, name))

    @classmethod
    def tearDownClass(cls):
        cls.system.cleanup()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="carousel-setup-")
        self.root = os.path.join(self.folder.name, "tree")
        for part in ("pipelines/launch", "pipelines/setup", "tests/run", "CMakePresets.json"):
            source, target = os.path.join(ROOT, part), os.path.join(self.root, part)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)
        self.calls = os.path.join(self.folder.name, "calls")
        os.makedirs(os.path.join(self.root, "tests/campaigns"))
        with open(os.path.join(self.root, "tests/campaigns/run.py"), "w", encoding="utf-8") as f:
            f.write("import os, sys\nopen(os.environ['CALLS'], 'a').write(' '.join(['campaigns', *sys.argv[1:]]) + '\\n')\n")
        self.bin = os.path.join(self.folder.name, "bin")
        os.mkdir(self.bin)
        for name, body in FAKES.items():
            self.put(name, body)

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, body):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + body + "\n")
        os.chmod(path, 0o755)

    def take_away(self, *names):
        for name in names:
            os.remove(os.path.join(self.bin, name))

    def start(self, script, *arguments, **variables):
        """Returns (exit code, what was printed, the calls of the stand-ins)."""
        open(self.calls, "w", encoding="utf-8").close()
        environment = {"PATH": f"{self.bin}:{self.system.name}", "CALLS": self.calls, "HOME": self.folder.name, "MISSING": "", **variables}
        done = subprocess.run([os.path.join(self.root, script), *arguments], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)   # ctest bounds the whole test
        with open(self.calls, encoding="utf-8") as f:
            return done.returncode, done.stdout, f.read()

    def test_no_install_names_every_missing_package_and_ends_with_2(self):
        for script in ("pipelines/launch", "tests/run"):
            code, text, calls = self.start(script, "--no-install", MISSING="libspng-dev libxxhash-dev")
            self.assertEqual((code, calls), (2, ""), text)
            self.assertIn("libspng-dev libxxhash-dev", text)
            self.assertNotIn("libfmt-dev", text)

    def test_without_apt_every_missing_package_is_named_and_the_code_is_2(self):
        self.take_away("apt-get")
        code, text, calls = self.start("pipelines/launch", MISSING="cmake libfmt-dev")
        self.assertEqual((code, calls), (2, ""), text)
        self.assertIn("cmake libfmt-dev", text)
        self.assertEqual(self.start("pipelines/launch")[0], 0)   # nothing is missing: apt is not needed

    def test_without_dpkg_files_decide(self):
        self.take_away("apt-get", "dpkg-query", "cmake", "ninja")
        code, text, _ = self.start("pipelines/launch")
        self.assertEqual(code, 2, text)
        missing = text.splitlines()[0].split(": ")[1].split()
        self.assertIn("cmake", missing)
        self.assertIn("ninja-build", missing)
        self.assertNotIn("g++", missing)   # its command is there: this very test was built with it

    def test_missing_packages_are_installed_as_root_or_by_sudo(self):
        code, text, calls = self.start("pipelines/launch", MISSING="libspng-dev")
        self.assertEqual(code, 0, text)
        self.assertRegex(calls, r"apt-get .*install -y --no-install-recommends libspng-dev\n")
        self.assertNotIn("sudo", calls)
        self.assertIn("sudo\n", self.start("pipelines/launch", MISSING="libspng-dev", FAKE_UID="1000")[2])
        self.take_away("sudo")
        code, text, _ = self.start("pipelines/launch", MISSING="libspng-dev", FAKE_UID="1000")
        self.assertEqual(code, 2)
        self.assertIn("no sudo", text)

    def test_what_films_take_is_installed_for_a_film_alone(self):
        missing = "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev"
        self.assertNotIn("libav", self.start("pipelines/launch", MISSING=missing)[2])
        code, text, calls = self.start("pipelines/launch", "--out", "film.mp4", MISSING=missing)
        self.assertEqual((code, text.splitlines()[-1]), (0, f"<run><{self.root}/pipelines/demo.toml><--out><film.mp4><--frames><300>"), text)
        self.assertRegex(calls, f"apt-get .*install -y --no-install-recommends {missing}\n")
        self.assertIn("libavcodec-dev", self.start("pipelines/launch", "--out=film.mp4", MISSING=missing)[2])
        self.assertIn("libavcodec-dev", self.start("tests/run", "--no-install", MISSING=missing)[1])
        file = os.path.join(self.folder.name, "clip.toml")
        for line, video in (('run = "carousel-video"\n', True), ('# run = "carousel-video"\n', False)):
            with open(file, "w", encoding="utf-8") as f:
                f.write("[[stage]]\n" + line)
            self.assertEqual("libavcodec-dev" in self.start("pipelines/launch", "--no-install", file, MISSING=missing)[1], video)

    def test_what_links_take_is_installed_for_a_pipeline_that_has_one_and_for_tests(self):
        missing = "libucx-dev libssl-dev"
        file = os.path.join(self.folder.name, "linked.toml")
        first = '[[stage]]\nrun = "carousel-geometry"\n'
        for lines, links in (('# run = "carousel-send"\n', False), ("# [hosts.b]\n", False), ("[[stage]]\nname = 'hosts.b'\n", False),
                             ('[[stage]]\nrun = "carousel-send"\n', True), ("[[stage]]\nrun = 'carousel-receive'\n", True),
                             ('[[stage]]\nrun = "/opt/bin/carousel-send"\n', True), ("[hosts.b]\n", True), ("  [ hosts . b ]\n", True),
                             ("[hosts]\nb = {}\n", True), ('hosts.b.launcher = "none"\n' + first, True), ("[hostsmen]\n", False)):
            with self.subTest(lines=lines):
                with open(file, "w", encoding="utf-8") as f:
                    f.write(first + lines)
                calls = self.start("pipelines/launch", file, MISSING=missing)[2]
                built = os.path.join(self.root, "build", "release", "built")   # of the stand-in: it builds anew
                if os.path.exists(built):
                    os.remove(built)
                self.assertEqual(bool(re.search(f"apt-get .*install -y --no-install-recommends {missing}\n", calls)), links)
        self.assertIn("libucx-dev", self.start("tests/run", "--no-install", MISSING=missing)[1])

    def test_what_a_stage_in_python_takes_is_installed_and_built_for_a_file_that_has_one_and_for_tests(self):
        missing = "python3-dev pybind11-dev python3-numpy"
        file = os.path.join(self.folder.name, "warm.toml")
        installs = f"apt-get .*install -y --no-install-recommends {missing}\n"
        for lines, python in (('run = "carousel-geometry"\n# run = "x.py"\n', False), ('name = "x.py"\n', False),
                              ('run = "x.py"\n', True), ('  run="folder/x.py"   # a stage\n', True), ("run = 'x.py'\n", True)):
            with open(file, "w", encoding="utf-8") as f:
                f.write("[[stage]]\n" + lines)
            code, text, calls = self.start("pipelines/launch", file, MISSING=missing)
            os.remove(os.path.join(self.root, "build", "release", "built"))   # of the stand-in: it builds anew
            self.assertEqual(code, 0, text)
            self.assertEqual((bool(re.search(installs, calls)), "python_package" in calls.split("ninja -j ")[1].split()), (python, python), lines)
            code, text, calls = self.start("pipelines/launch", file, "--no-install", MISSING=missing)
            self.assertEqual((code, missing in text), (2, True) if python else (0, False), text)
            if not python:
                os.remove(os.path.join(self.root, "build", "release", "built"))
        self.assertNotIn("pybind11", self.start("pipelines/launch", MISSING=missing)[2])   # the demo has none
        self.assertIn(missing, self.start("tests/run", "--no-install", MISSING=missing)[1])

    def test_tools_for_sources_are_installed_for_all_tests_only_and_networks_for_a_campaign(self):
        for package, words in (("doxygen", ["--all"]), ("clang-tidy", ["--all"]), ("iproute2", ["--campaign", "hosts"]),
                               ("nftables", ["--campaign", "hosts"])):
            self.assertNotIn(package, self.start("tests/run", MISSING=package)[2])
            code, text, _ = self.start("tests/run", *words, "--no-install", MISSING=package)
            self.assertEqual(code, 2, text)
            self.assertIn(f"Missing packages: {package}\n", text)

    def test_a_failed_installation_ends_with_2_after_an_update_was_tried(self):
        code, text, calls = self.start("pipelines/launch", MISSING="libspng-dev", APT_EXIT="100")
        self.assertEqual(code, 2, text)
        self.assertIn("update", calls)
        self.assertIn("libspng-dev", text)

    def test_package_names_of_each_distribution(self):
        cases = {"VERSION_CODENAME=bookworm\nPRETTY_NAME='Debian 12'": "libboost1.81-dev yes",
                 "VERSION_CODENAME=noble\nUBUNTU_CODENAME=noble": "libboost1.83-dev yes",
                 "VERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble": "libboost1.83-dev yes",
                 "ID=other": "libboost-dev no"}
        fuzz = {"bookworm": "clang libclang-rt-14-dev", "noble": "clang libclang-rt-18-dev", "other": ""}
        for release, expected in cases.items():
            path = os.path.join(self.folder.name, "os-release")
            with open(path, "w", encoding="utf-8") as f:
                f.write(release + "\n")
            script = f'. {self.root}/pipelines/setup/packages.sh; carousel_distribution {path}; echo $boost_package $distribution_known'
            self.assertEqual(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.strip(), expected)
        for codename, expected in fuzz.items():
            path = os.path.join(self.folder.name, "os-release")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"VERSION_CODENAME={codename}\n")
            script = f". {self.root}/pipelines/setup/packages.sh; carousel_distribution {path}; carousel_fuzz_packages"
            lines = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
            self.assertEqual(" ".join(line.split()[0] for line in lines), expected)

    def test_a_second_start_neither_configures_nor_builds_and_is_quick(self):
        began = time.monotonic()
        code, text, calls = self.start("pipelines/launch")
        first = time.monotonic() - began
        self.assertEqual(code, 0, text)
        self.assertIn("cmake --preset release -DCAROUSEL_TESTS=OFF\nninja -j", calls)
        self.assertIn("CUDA: no nvcc found", text)
        quick = []
        for _ in range(3):   # other programs may hold one of them up
            began = time.monotonic()
            code, text, calls = self.start("pipelines/launch")
            quick.append(time.monotonic() - began)
            self.assertEqual((code, calls), (0, ""), text)
        self.assertLess(min(quick), max(1.0, first))   # a slow machine is slow with the first one, too

    def test_launch_builds_what_its_file_names_and_what_its_options_take_and_no_more(self):
        file = os.path.join(self.folder.name, "named.toml")
        with open(file, "w", encoding="utf-8") as f:
            f.write('[[stage]]\n  run = "carousel-fragment"   # not carousel-web\n# run = "carousel-geometry"\nrun = "carousel-nonesuch"\n')
        shutil.copy(os.path.join(ROOT, "pipelines", "demo.toml"), os.path.join(self.root, "pipelines"))
        demo = "core_programs carousel-fragment carousel-geometry"
        for arguments, built in (((file,), "core_programs carousel-fragment"), (("nonsense",), "core_programs"), ((), demo),
                                 ((file, "--http", "8080"), "core_programs carousel-fragment carousel-web"),
                                 ((file, "--record=a"), "core_programs carousel-fragment carousel-record")):
            code, text, calls = self.start("pipelines/launch", *arguments)
            os.remove(os.path.join(self.root, "build", "release", "built"))   # of the stand-in: it builds anew
            self.assertEqual((code, calls.split("ninja -j ")[1].split(" ", 1)[1]), (0, built + "\n"), text)

    def test_launch_builds_all_in_a_folder_that_lists_no_programs(self):
        self.put("cmake", FAKES["cmake"].replace("build/$2/programs.txt", "/dev/null"))
        shutil.copy(os.path.join(ROOT, "pipelines", "demo.toml"), os.path.join(self.root, "pipelines"))
        code, text, calls = self.start("pipelines/launch")
        self.assertEqual(code, 0, text)
        self.assertEqual(calls.split("ninja -j ")[1].split(" ", 1)[1], "core_programs pipeline_programs\n")

    def test_launch_keeps_the_configuration_of_the_tests(self):
        self.assertIn("-DCAROUSEL_TESTS=ON", self.start("tests/run")[2])
        self.assertNotIn("cmake", self.start("pipelines/launch")[2])
        self.assertNotIn("cmake", self.start("tests/run")[2])

    def test_a_new_nvcc_is_seen(self):
        self.start("pipelines/launch")
        self.put("nvcc", "exit 0")
        self.assertIn("cmake --preset release", self.start("pipelines/launch")[2])

    def test_launch_passes_options_on_and_knows_when_there_is_no_display(self):
        demo = f"<{self.root}/pipelines/demo.toml>"
        cases = [((), {}, f"<run>{demo}<--frames><300>"),
                 (("--device", "cpu"), {}, f"<run>{demo}<--device><cpu><--frames><300>"),
                 (("a b.toml", "--frames", "7"), {}, "<run><a b.toml><--frames><7>"),
                 (("--out", "", "x.toml"), {}, "<run><--out><><x.toml><--frames><300>"),
                 (("--set", "a=b.toml", "--no-install"), {}, f"<run>{demo}<--set><a=b.toml><--frames><300>"),
                 (("nonsense",), {}, "<run><nonsense><--frames><300>")]
        for arguments, variables, expected in cases:
            code, text, _ = self.start("pipelines/launch", *arguments, **variables)
            self.assertEqual((code, text.splitlines()[-1]), (0, expected), text)
            self.assertIn("No display", text)
        self.assertIn("no viewer", self.start("pipelines/launch", DISPLAY=":0")[1])

    def test_next_to_a_viewer_launch_writes_no_pictures_unless_requested(self):
        self.start("pipelines/launch")  # build/release is there
        self.put("../tree/build/release/carousel-viewer", "exit 0")
        demo = f"<{self.root}/pipelines/demo.toml>"
        for arguments, expected in (((), f"<run>{demo}<--out><>"), (("--frames", "7"), f"<run>{demo}<--frames><7><--out><>"),
                                    (("--out", "p_%d.png"), f"<run>{demo}<--out><p_%d.png>"), (("--keep=9",), f"<run>{demo}<--keep=9>")):
            code, text, _ = self.start("pipelines/launch", *arguments, DISPLAY=":0")
            self.assertEqual((code, text.splitlines()[-1]), (0, expected), text)
            self.assertEqual("no pictures are written" in text, expected.endswith("<--out><>"), text)

    def test_failures_end_the_scripts_with_their_code(self):
        code, text, _ = self.start("pipelines/launch", CMAKE_EXIT="1")
        self.assertEqual(code, 2, text)
        self.assertEqual(self.start("pipelines/launch", NINJA_EXIT="1")[0], 1)
        code, text, _ = self.start("tests/run", CTEST_EXIT="8")
        self.assertEqual(code, 1)
        self.assertIn("tests/run: FAILED", text.splitlines()[-1])
        self.assertEqual(self.start("tests/run", "--frobnicate")[0], 2)
        self.assertEqual(self.start("pipelines/launch", CAROUSEL_JOBS="many")[0], 2)

    def test_which_tests_run(self):
        code, text, calls = self.start("tests/run")
        self.assertEqual(code, 0, text)
        self.assertIn("GPU tests: skipped, no NVIDIA GPU found", text)
        self.assertIn("-L ^everyday$ -LE ^all$|^campaign$|^gpu$", calls)
        self.assertIn("ninja -j", calls)
        self.assertIn(" everyday_tests\n", calls)
        self.put("clang++", "exit 1")
        code, text, calls = self.start("tests/run", "--all")
        self.assertEqual([line.split()[2] for line in calls.splitlines() if line.startswith("cmake")], ["asan", "tsan"])
        self.assertIn("fuzz targets skipped: no clang++ with libFuzzer", text.splitlines()[-1])
        self.put("clang++", "exit 0")
        calls = self.start("tests/run", "--all")[2]
        tests = [line for line in calls.splitlines() if line.startswith("ctest")]
        self.assertEqual([re.search(r"build/(\w+)", line)[1] for line in tests], ["release", "fuzz", "tsan"])
        self.assertIn("-LE ^campaign$|^gpu$", tests[0])
        # One build of clang serves the fuzz targets and the unit tests under asan.
        self.assertEqual([line.split()[2] for line in calls.splitlines() if line.startswith("cmake")], ["fuzz"])  # tsan is configured since the run before
        self.assertIn("unit_tests fuzzers", calls)
        self.assertRegex(calls, r"campaigns slice .*/build/release --seconds 240\n")
        self.assertIn("build/fuzz --output-on-failure --no-tests=error -j 2 -LE ^(campaign|gpu|processes|control|packaging|model|unsanitized)$", calls)
        self.assertNotIn("fuzz", self.start("tests/run")[2])
        self.put("nvidia-smi", "echo 'GPU 0: some GPU (UUID: GPU-1)'")
        self.assertIn("-LE ^all$|^campaign$", self.start("tests/run")[2].splitlines()[-1])
        self.assertIn("-L ^gpu$", self.start("tests/run", "--gpu-only")[2])
        self.assertIn("-R ring", self.start("tests/run", "-R", "ring")[2])


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
