"""The pack of a build for a machine with a GPU, made where there is none. Usage: test_pack.py BUILD"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pack  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])


class Pack(unittest.TestCase):
    def test_a_pack_has_the_programs_and_makes_the_module_of_files_that_there_are(self):
        names = {os.path.basename(p) for p in pack.programs_of(BUILD)}
        wanted = {"carousel", "carousel-fragment", "test_gpu_runs", "test_device_cuda"}
        wanted = {n for n in wanted if not n.startswith("test_") or os.path.exists(os.path.join(BUILD, n))}   # the everyday tier builds none for a GPU
        self.assertLessEqual(wanted, names)
        here = {os.path.basename(p) for p in pack.modules_of(BUILD)}
        self.assertIn("libcarousel_nvtx_tool.so", here)
        script, archives, sources = pack.module_maker(BUILD)
        for path in [os.path.join(BUILD, a) for a in archives] + sources:
            self.assertTrue(os.path.exists(path), path)
        self.assertEqual(script.count("-o gpu/objects/"), len(re.findall(r" -c \S+$", script, re.M)))
        self.assertIn("-I", script)
        self.assertNotIn("/objects/0.o.d", script)

    def test_a_pack_leaves_the_runtime_of_c_plus_plus_to_the_machine_and_takes_other_libraries_along(self):
        taken = pack.libraries_of([os.path.join(BUILD, name) for name in ("carousel", "carousel-replay")])
        self.assertFalse([name for name in taken if name.startswith(("libstdc++", "libc.", "libgcc_s", "libm."))], taken)
        self.assertTrue([name for name in taken if name.startswith("libfmt.so")], taken)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
