"""The dependencies of the built programs. Usage: test_binaries.py PROGRAM...

They start on a machine without a driver or a toolkit, so none may name one of their shared libraries; and the supervisor holds
no CUDA at all, not even linked in statically: no GPU fault can take it.
"""
import os
import re
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]
FORBIDDEN = re.compile(r"lib(cuda|cudart|nvidia[\w-]*|nvrtc|nvJitLink)\.so")
CUDA_INSIDE = re.compile(r"\b(cudaLaunchKernel|cudaMalloc|__cudaRegisterFatBinary|cuInit)\b")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Binaries(unittest.TestCase):
    def test_the_patterns_match_what_they_are_for(self):
        self.assertTrue(FORBIDDEN.search("0x1 (NEEDED) Shared library: [libcuda.so.1]"))
        self.assertTrue(FORBIDDEN.search("0x1 (NEEDED) Shared library: [libcudart.so.13]"))
        self.assertTrue(CUDA_INSIDE.search("0000000000401136 T cudaLaunchKernel"))

    def test_no_program_needs_a_driver_or_toolkit_library(self):
        self.assertTrue(PROGRAMS, "no program was given")
        for program in PROGRAMS:
            needed = output("readelf", "-d", program)
            self.assertIsNone(FORBIDDEN.search(needed), program + "\n" + needed)

    def test_the_supervisor_holds_no_cuda(self):
        for program in (p for p in PROGRAMS if os.path.basename(p) == "carousel"):
            found = CUDA_INSIDE.search(output("nm", program))
            self.assertIsNone(found, f"{program} contains {found and found[0]}")


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
