"""Waits for and ends the processes of a test."""
import os
import shutil
import signal
import subprocess
import sys
import time

# A background job of a script ignores SIGINT, and so would the programs of a test that is run in one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SKIPPED = 77  # known to ctest from tests/CMakeLists.txt; of Catch2 programs: skip.hpp


def skip(reason):
    """Ends this program as skipped. Its output does not matter: a test that failed has another exit code."""
    print("skipped:", reason)
    sys.exit(SKIPPED)


def require_gpu(device):
    """Ends this program as skipped if `device` is a GPU and this machine has none."""
    if device == "cpu":
        return
    tool = shutil.which("nvidia-smi")
    if tool is None or subprocess.run([tool, "-L"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no NVIDIA GPU found (nvidia-smi)")


def wait_for(what, condition, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds:g} s")


def is_alive(pid):
    """Returns whether the process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(pid):
    """The child processes that any of the process's threads has started."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                found += [int(word) for word in f.read().split()]
    except OSError:   # the process or a thread has ended
        pass
    return found


def descendants_of(pid):
    """The process's children, their children, and so on."""
    found = children_of(pid)
    for each in found:
        found += children_of(each)
    return found


def end_process(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
