"""The programs of the lab's lessons, built as a reader would build them: each file by itself, with an
installation. The build of the tree has compiled and linked the same files, optimised and with its own options.

Usage: test_lab_programs.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import os
import re
import shutil
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

from installed import Installation, run

GPU_PROJECT = """cmake_minimum_required(VERSION 3.25)
project(lessons LANGUAGES CXX CUDA)
set(CMAKE_CUDA_STANDARD 20)
find_package(carousel REQUIRED)
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(lessons LANGUAGES CXX)
find_package(carousel REQUIRED)
add_compile_options(-Wall -Wextra -Werror)
"""


class LabPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])
        cls.lessons = os.path.join(cls.all.root, "pipelines/lab/lessons")
        cls.names = sorted(n for n in os.listdir(cls.lessons) if re.match(r"\d\d_", n))

    @classmethod
    def tearDownClass(cls):
        cls.all.end()

    def test_each_lesson_is_one_folder_with_a_page_and_a_short_program(self):
        self.assertEqual(len(self.names), 15)
        for name in self.names:
            for file in ("main.cpp", "page.md", "lesson.cpp"):
                self.assertTrue(os.path.isfile(os.path.join(self.lessons, name, file)), f"{name}/{file}")

    def sources(self, suffix, of_carousel):
        """(name, file) of the programs that are clients of a space, or else plain POSIX or CUDA."""
        found = []
        for name in self.names:
            folder = os.path.join(self.lessons, name, "cuda" if suffix == ".cu" else "")
            for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                if not file.endswith(suffix) or file == "lesson.cpp":
                    continue
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    if ("#include <carousel/" in f.read()) == of_carousel:
                        found.append((name + "-" + file.removesuffix(suffix), os.path.join(folder, file)))
        return found

    def project_of_clients(self, suffix, start, library):
        """A project for all of them: configuring takes longer than a file."""
        folder = os.path.join(self.all.folder, "clients" + suffix)
        os.mkdir(folder)
        shutil.copy(os.path.join(self.lessons, "program.hpp"), folder)
        shutil.copytree(os.path.join(self.lessons, "cuda"), os.path.join(folder, "cuda"))
        for name, source in self.sources(suffix, True):
            below = os.path.join(name, *(["cuda"] if suffix == ".cu" else []), "main" + suffix)
            os.makedirs(os.path.dirname(os.path.join(folder, below)))
            shutil.copy(source, os.path.join(folder, below))
            start += f"add_executable({name} {below})\ntarget_link_libraries({name} PRIVATE {library})\n"
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(start)
        return folder

    def build_alone(self, program):
        name, source = program
        folder = os.path.join(self.all.folder, name)
        os.mkdir(folder)
        shutil.copy(source, folder)
        run(self.all.cxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-o", os.path.join(folder, "lesson"),
            os.path.join(folder, "main.cpp"), "-pthread")

    def compile_alone_for_a_gpu(self, program):
        """Its device code for the oldest GPU, with nothing of ours to include."""
        name, source = program
        run(self.all.nvcc, "-ccbin", self.all.cxx, "-arch=sm_75", "-std=c++20", "-ptx", "-o", os.path.join(self.all.folder, name + ".ptx"), source)

    def build_each(self, build, programs):
        """As many run concurrently as there are processors; each failure is reported."""
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            builds = [(program[0], workers.submit(build, program)) for program in programs]
        for name, done in builds:
            with self.subTest(name):
                done.result()

    def test_each_program_builds_alone(self):
        shutil.copy(os.path.join(self.lessons, "program.hpp"), self.all.folder)
        self.build_each(self.build_alone, self.sources(".cpp", False))
        self.all.build_without_toolkit(self.project_of_clients(".cpp", PROJECT, "carousel::ipc"))

    def test_each_program_for_a_gpu_builds_alone(self):
        if self.all.nvcc == "none":
            self.skipTest("built without CUDA")
        self.build_each(self.compile_alone_for_a_gpu, self.sources(".cu", False))
        self.all.build_with_nvcc(self.project_of_clients(".cu", GPU_PROJECT, "carousel::ipc_cuda"))

    def test_the_program_of_mpi_builds_alone(self):
        headers = ["mpicxx", "-E", "-x", "c++", "-include", "mpi.h", "/dev/null"]   # only openmpi-bin has a mpicxx, too
        if not shutil.which("mpicxx") or subprocess.run(headers, capture_output=True, check=False).returncode != 0:
            self.skipTest("no mpicxx with its headers here (Debian and Ubuntu: libopenmpi-dev)")
        run("mpicxx", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX=1", "-o",
            os.path.join(self.all.folder, "ranks-mpi"), os.path.join(self.lessons, "14_ranks/mpi/main.cpp"))

    def test_each_program_is_short(self):
        for folder, _, files in os.walk(self.lessons):
            for file in files:
                if file.startswith("main") or file.endswith(".cu"):
                    with open(os.path.join(folder, file), encoding="utf-8") as f:
                        self.assertLess(len(f.readlines()), 330, f"{folder}/{file}")


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
