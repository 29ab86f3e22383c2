"""The example with a kernel of its own, on a GPU: its test, and 20 frames of its pipeline.

Usage: test_gpu_example.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import json
import os
import subprocess
import sys

from installed import Installation, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import SKIPPED, skip  # noqa: E402


def main():
    all_of_it = Installation(sys.argv[1:])
    try:
        folder = all_of_it.copy_of_example("grayscale")
        all_of_it.build_with_nvcc(folder)
        done = subprocess.run([os.path.join(folder, "build/test_grayscale")], capture_output=True, text=True, check=False)
        if done.returncode == SKIPPED:
            skip(done.stderr.strip().removeprefix("skipped: "))
        assert done.returncode == 0, done.stderr
        report = os.path.join(folder, "report.json")
        all_of_it.carousel("run", os.path.join(folder, "grayscale.toml"), "--frames", "20", "--report", report)
        with open(report, encoding="utf-8") as f:
            answer = json.load(f)
        assert [answer[k] for k in ("frames", "lost", "repeated", "torn")] == [20, 0, 0, 0], answer
        run(all_of_it.program("carousel"), "validate", os.path.join(folder, "grayscale.toml"), env=all_of_it.environment)
    finally:
        all_of_it.end()


if __name__ == "__main__":
    main()
