"""The example of <carousel/ipc_cuda.cuh>, built against an installation. On a GPU: samples from one process's kernels to another's.

Usage: test_gpu_ipc_example.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import os
import subprocess
import sys

from installed import Installation


def main():
    all_of_it = Installation(sys.argv[1:])
    try:
        folder = all_of_it.copy_of_example("ipc_cuda")
        all_of_it.build_with_nvcc(folder)
        program = os.path.join(folder, "build/kernel_queue")
        holder = subprocess.Popen([all_of_it.program("carousel"), "hold", "lab", "--device", "cuda:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=all_of_it.environment)
        try:
            if not holder.stdout.readline():
                output = holder.communicate()[1]
                assert holder.returncode == 3 and "CUDA" in output, output   # no GPU: the message names the cause and the remedy
                print("skipped behind its build: no GPU here")
                return
            pusher = subprocess.Popen([program, "push", "5000"], env=all_of_it.environment)
            popped = subprocess.run([program, "pop", "5000"], capture_output=True, text=True, check=False, timeout=60,
                                    env=all_of_it.environment)
            assert popped.stdout == "5000 samples, sum 6248750.0\n", popped
            assert pusher.wait(60) == 0
        finally:
            holder.kill()
            holder.communicate()
    finally:
        all_of_it.end()


if __name__ == "__main__":
    main()
