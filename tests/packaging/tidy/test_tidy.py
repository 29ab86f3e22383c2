"""Each rule of tidy.py finds an offence that is put into a small tree, and a clean tree has none."""
import os
import sys
import tempfile
import unittest

import tidy

CLEAN = {
    "shared/core/types.hpp": "#pragma once\n",
    "shared/ring/ring.cpp": '#include "core/types.hpp"\n#include "ring.hpp"\n',
    "shared/CMakeLists.txt": "add_library(x ${folder}/ring.cpp)\n",
}


class Tidy(unittest.TestCase):
    def offences(self, extra):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **extra}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write(text)
            return tidy.check_tree(root)[1]

    def test_a_clean_tree_has_no_offence(self):
        self.assertEqual(self.offences({}), [])

    def test_an_example_may_do_what_a_user_may(self):
        extra = {"stages/examples/a/a.cu": "#include <cuda_runtime.h>\n#include <carousel/cuda.hpp>\n#include \"a.hpp\"\n",
                 "stages/examples/a/CMakeLists.txt": "carousel_add_stage(a a.cu)\n"}
        self.assertEqual(self.offences(extra), [])

    def test_each_rule_finds_its_offence(self):
        pragma = "#pragma once\n"
        listed = {"shared/CMakeLists.txt": "add_library(x ring/ring.cpp ../kernels/k.cu ../stages/a.cpp)\n"}
        cases = {
            "includes go down": {"shared/core/a.hpp": pragma + '#include "ring/ring.hpp"\n'},
            "supervisor/plan includes": {"pipelines/supervisor/plan/a.hpp": pragma + '#include "device/cpu/pool.hpp"\n'},
            "os includes": {"pipelines/os/a.hpp": pragma + '#include "supervisor/plan/run_setup.hpp"\n'},
            "stages/runner includes": {"stages/runner/a.hpp": pragma + '#include "stages/scene/mesh_formats.hpp"\n'},
            "viewer/watch includes": {"viewer/watch/a.hpp": pragma + '#include "viewer/window/window.hpp"\n'},
            "a folder without a layer": {"pipelines/new/a.hpp": pragma + '#include "os/spawn.hpp"\n'},
            "viewer includes": {"viewer/a.hpp": pragma + '#include "stages/sdk/stage.hpp"\n'},
            "kernels includes": {"kernels/a.hpp": pragma + '#include "ring/ring.hpp"\n'},
            "its own files": {"stages/examples/a/a.hpp": pragma + '#include "stages/sdk/settings.hpp"\n'},
            "core/errors.hpp: an example includes": {"pipelines/lab/lessons/01_a/cuda/a.hpp": pragma + '#include "core/errors.hpp"\n'},
            "no public header": {"stages/examples/a/a.hpp": pragma + "#include <carousel/detail/core/errors.hpp>\n"},
            "no Boost mutex": {"shared/shm/a.hpp": pragma + "#include <boost/interprocess/sync/interprocess_mutex.hpp>\n"},
            "outside a folder cuda": {"shared/device/a.hpp": pragma + "#include <cuda_runtime.h>\n"},
            "outside shared/ring": {"stages/sdk/a.hpp": pragma + "bool b = ring::cas(word, 1, 2);\n"},
            "under a folder cuda": {"kernels/k.cu": "int k;\n", **listed},
            "at most": {"stages/a.cpp": "int a;\n" * 401, **listed},
            "a tab": {"stages/a.hpp": pragma + "\tint a;\n"},
            "a path of one machine": {"stages/a.hpp": pragma + "// /home" + "/someone\n"},
            "a semicolon in its name": {"stages/a.hpp": pragma + 'TEST_CASE("this; that") {}\n'},
            "begins with a dash": {"stages/a.hpp": pragma + 'TEST_CASE("--this") {}\n'},
            "which no reader": {"README.md": "see shared/" + "design/x.md\n"},
            "finish it": {"stages/a.hpp": pragma + "// TO" + "DO later\n"},
            "without #pragma once": {"stages/a.hpp": "int a;\n"},
            "never globbed": {"CMakeLists.txt": "file(GLOB_RECURSE s *.cpp)\n"},
            "1001 words": {"README.md": "word\n" * 1001},
            "121 columns": {"viewer/README.md": "x" * 121 + "\n"},
            "which is not there": {"viewer/README.md": "[the page](web/none.md)\n"},
            "names it": {"stages/ring.cpp": "int a;\n"},
        }
        for what, extra in cases.items():
            found = self.offences(extra)
            self.assertEqual(len([o for o in found if what in o]), 1, f"{what}: {found}")


if __name__ == "__main__":
    sys.exit(unittest.main())
