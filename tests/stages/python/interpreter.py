"""The tests' own interpreter: one that the module was built for, and that has NumPy. Skips (77) if there is none."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile


def use(build, preloaded=""):
    """Continues in such an interpreter, with the package importable and with stages started by it. `preloaded`: a module for LD_PRELOAD."""
    folder = os.path.join(os.path.abspath(build), "python")
    if os.environ.get("CAROUSEL_TEST_PYTHON") == sys.executable:
        sys.path.insert(0, folder)
        # Test runs leave dead letters: not in the user's own folder, where other tests would find them.
        os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="carousel-python-")
        atexit.register(shutil.rmtree, os.environ["XDG_RUNTIME_DIR"], True)
        return
    environment = {**os.environ, "PYTHONPATH": folder}
    for python in (os.environ.get("CAROUSEL_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import numpy, carousel"], env=environment, capture_output=True).returncode == 0:
            own = subprocess.run([python, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True).stdout.strip()
            environment.update(CAROUSEL_PYTHON=own, CAROUSEL_TEST_PYTHON=own)
            if preloaded:
                environment["LD_PRELOAD"] = preloaded
                environment.pop("PYTHONUNBUFFERED", None)   # Python itself loses the rest of an unbuffered write that was done in part
            os.execve(own, [own, "-B", *sys.argv], environment)
    print("no interpreter here that the module was built for and that has NumPy: skipped")
    sys.exit(77)
