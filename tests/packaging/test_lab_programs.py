"""The programs of the lab's lessons, built as a reader would build them: each file by itself, with an
installation.

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
project(lesson LANGUAGES CXX)
find_package(carousel REQUIRED)
add_executable(lesson main.cpp)
target_link_libraries(lesson PRIVATE carousel::ipc)
target_compile_options(lesson PRIVATE -Wall -Wextra -Werror)
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

    def build_alone(self, name):
        source = os.path.join(self.lessons, name, "main.cpp")
        with open(source, encoding="utf-8") as f:
            carousel = "#include <carousel/" in f.read()
        folder = os.path.join(self.all.folder, name)
        os.mkdir(folder)
        shutil.copy(source, folder)
        shutil.copy(os.path.join(self.lessons, "program.hpp"), self.all.folder)
        if not carousel:   # plain POSIX: no code of ours
            run(self.all.cxx, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-o", os.path.join(folder, "lesson"),
                os.path.join(folder, "main.cpp"), "-pthread")
            return
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(PROJECT)
        self.all.build_without_toolkit(folder)

    def gpu_sources(self, of_carousel):
        """(name, file) of the programs for a GPU: those that are clients of a space, or plain CUDA."""
        found = []
        for name in self.names:
            folder = os.path.join(self.lessons, name, "cuda")
            for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    if ("#include <carousel/" in f.read()) == of_carousel:
                        found.append((name + "-" + file.removesuffix(".cu"), os.path.join(folder, file)))
        return found

    def build_alone_for_a_gpu(self, program):
        name, source = program
        ccache = [shutil.which("ccache")] if shutil.which("ccache") else []   # nvcc takes ten seconds a file
        nvcc, to = [self.all.nvcc, "-ccbin", self.all.cxx, "-arch=sm_75"], os.path.join(self.all.folder, name)
        run(*ccache, *nvcc, "-std=c++20", "-c", "-o", to + ".o", source)
        run(*nvcc, "-o", to, to + ".o")

    def build_each(self, build, names):
        """As many run concurrently as there are processors; each failure is reported."""
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            builds = [(name, workers.submit(build, name)) for name in names]
        for name, done in builds:
            with self.subTest(name):
                done.result()

    def test_each_program_builds_alone(self):
        self.build_each(self.build_alone, self.names)

    def test_each_program_for_a_gpu_builds_alone(self):
        if self.all.nvcc == "none":
            self.skipTest("built without CUDA")
        self.build_each(self.build_alone_for_a_gpu, self.gpu_sources(False))
        folder = os.path.join(self.all.folder, "gpu-clients")
        os.mkdir(folder)
        shutil.copy(os.path.join(self.lessons, "program.hpp"), folder)
        shutil.copytree(os.path.join(self.lessons, "cuda"), os.path.join(folder, "cuda"))
        project = GPU_PROJECT
        for name, source in self.gpu_sources(True):   # one project for all: configuring for CUDA takes longer than a file
            os.makedirs(os.path.join(folder, name, "cuda"))
            shutil.copy(source, os.path.join(folder, name, "cuda", "main.cu"))
            project += f"add_executable({name} {name}/cuda/main.cu)\ntarget_link_libraries({name} PRIVATE carousel::ipc_cuda)\n"
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(project)
        self.all.build_with_nvcc(folder)

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
