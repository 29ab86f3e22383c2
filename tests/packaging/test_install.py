"""What `cmake --install` puts into an empty folder: the public headers and nothing else of the tree, programs that start, pipeline
files.

Usage: test_install.py BUILD_FOLDER ROOT CMAKE CXX NVCC PROGRAM...
"""
import os
import re
import subprocess
import sys
import unittest

from installed import Installation, run

PROGRAMS = sys.argv[6:]
PUBLIC = ("stage.hpp", "cpu.hpp", "cuda.hpp", "hash.hpp", "port.hpp", "testing.hpp")
if "carousel-bench" in PROGRAMS:   # a build with the extras
    PUBLIC += ("ipc.hpp", "ipc_cuda.cuh", "space.h")


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])
        cls.prefix, cls.include = cls.all.prefix, os.path.join(cls.all.prefix, "include")

    @classmethod
    def tearDownClass(cls):
        cls.all.end()

    def headers(self):
        """Installed headers below include/."""
        return sorted(os.path.relpath(os.path.join(folder, name), self.include)
                      for folder, _, files in os.walk(self.include) for name in files)

    def text_of(self, header):
        with open(os.path.join(self.include, header), encoding="utf-8") as f:
            return f.read()

    def compile(self, name, text, *more):
        """`text` as a user's file, with the prefix as the only folder of ours."""
        file = os.path.join(self.all.folder, name)
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
        run(self.all.cxx, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I" + self.include, *more, file)

    def test_what_is_installed(self):
        self.assertEqual([h for h in self.headers() if not h.startswith("carousel/detail/")],
                         sorted(f"carousel/{name}" for name in PUBLIC))
        for name in ("lib/libcarousel_stage.a", "lib/libcarousel_testing.a", "share/carousel/pipelines/demo.toml"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, name)), name)
        found = subprocess.run(["grep", "-rlI", "-e", self.all.build, self.prefix], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "", "installed files name the build folder")

    def test_detail_is_what_the_public_headers_need_and_no_more(self):
        needed, waiting = set(), [f"carousel/{name}" for name in PUBLIC]
        while waiting:
            header = waiting.pop()
            if header in needed:
                continue
            needed.add(header)
            waiting += re.findall(r"^#include <(carousel/[^>]+)>", self.text_of(header), re.M)
        self.assertEqual(self.headers(), sorted(needed))
        self.assertNotIn("carousel/detail/shm/control_block.hpp", needed)   # the protocol's words are not part of the public interface
        self.assertEqual([h for h in needed if "kernels" in h or "runner" in h], ["carousel/detail/kernels/plane_hash.hpp"])

    def test_no_installed_header_includes_by_the_paths_of_the_tree(self):
        for header in self.headers():
            self.assertEqual(re.findall(r'^\s*#\s*include\s*"[^"]*"', self.text_of(header), re.M), [], header)

    def test_every_installed_header_compiles_alone(self):
        toolkit = self.toolkit_headers()
        self.assertIn("carousel/cuda.hpp", self.headers())
        for header in self.headers():
            if header == "carousel/cuda.hpp" and not toolkit or header.endswith(".cuh"):   # test_gpu_ipc_example.py compiles these
                continue
            self.compile("alone.cpp", f"#include <{header}>\n", *([f"-isystem{toolkit}"] if toolkit else []))

    def toolkit_headers(self):
        """The folder of cuda_runtime_api.h next to nvcc; "" if there is none."""
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(self.all.nvcc))), "include")
        return folder if os.path.exists(os.path.join(folder, "cuda_runtime_api.h")) else ""

    def test_all_public_headers_serve_together_without_the_json_library_s_own(self):
        text = "".join(f"#include <carousel/{name}>\n" for name in PUBLIC if "cuda" not in name)
        text += "#ifdef INCLUDE_NLOHMANN_JSON_HPP_\n#error a stage outside compiles the whole JSON library\n#endif\n"
        self.compile("together.cpp", text)
        for header in self.headers():
            self.assertNotIn("nlohmann/json.hpp", self.text_of(header), header)

    def test_the_installation_over_an_older_one_touches_no_header(self):
        header = os.path.join(self.include, "carousel/stage.hpp")
        before = os.stat(header).st_mtime_ns
        run(self.all.cmake, "--install", self.all.build, "--prefix", self.prefix)
        self.assertEqual(os.stat(header).st_mtime_ns, before)

    def test_no_empty_folder_is_installed(self):
        self.assertEqual([folder for folder, below, files in os.walk(self.prefix) if not below and not files], [])

    def test_programs_and_pipeline_files_come_along(self):
        self.assertIn("carousel", PROGRAMS)
        for name in PROGRAMS:
            installed = self.all.program(name)
            self.assertTrue(os.access(installed, os.X_OK), installed)
            # The program starts: no library is missing. (Helper programs have no --help, and exit with 2.)
            done = subprocess.run([installed, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            self.assertIn(done.returncode, (0, 2), installed + "\n" + done.stderr)
            if done.returncode == 0:  # help that could not be written is not a success
                with open("/dev/full", "w", encoding="utf-8") as full:
                    done = subprocess.run([installed, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, check=False)
                self.assertEqual(done.returncode, 75, installed)
                self.assertIn("stdout", done.stderr, installed)
        for name in (n for n in os.listdir(os.path.join(self.all.root, "pipelines")) if n.endswith(".toml")):
            if name == "inference.toml" and "carousel-infer" not in PROGRAMS:
                continue
            if name == "video.toml":   # it runs an example in Python, which an installation does not have
                continue
            self.assertTrue(os.path.isfile(os.path.join(self.prefix, "share/carousel/pipelines", name)), name)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
