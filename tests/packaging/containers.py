"""podman with storage and configuration of its own, for tests that run containers with limits."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bare_root import run, skip

# Limits of processes that no container may raise where podman itself may not.
CONFIGURATION = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


def podman(*words):
    return run("podman", *words)


def enter_own_mounts():
    """Starts this program again in a mount namespace, in which podman finds one version of control groups. Skips where podman is missing."""
    if not shutil.which("podman"):
        skip("podman is not installed (package: podman)")
    if "OWN_MOUNTS" not in os.environ and os.geteuid() == 0:
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, "OWN_MOUNTS": "1"})
    # Where cgroup v1 and v2 are mounted side by side, crun refuses both: only v1 is left here, with the controllers.
    subprocess.run(["umount", "/sys/fs/cgroup/unified"], capture_output=True, check=False)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def set_up(cls):
    """For setUpClass: gives podman its own storage; removes all containers at the end. Returns the temporary folder."""
    temporary = tempfile.mkdtemp(prefix="carousel-containers-")
    cls.addClassCleanup(shutil.rmtree, temporary, True)
    os.environ.update(CONTAINERS_CONF=f"{temporary}/containers.conf", CONTAINERS_STORAGE_CONF=f"{temporary}/storage.conf")
    write(os.environ["CONTAINERS_CONF"], CONFIGURATION)
    for driver in ("overlay", "vfs"):   # vfs, which copies each layer, works everywhere
        write(os.environ["CONTAINERS_STORAGE_CONF"],
              f'[storage]\ndriver = "{driver}"\ngraphroot = "{temporary}/{driver}"\nrunroot = "{temporary}/{driver}-run"\n')
        if subprocess.run(["podman", "info"], capture_output=True, check=False).returncode == 0:
            break
    cls.addClassCleanup(subprocess.run, ["podman", "rm", "-af", "-t", "0"], capture_output=True, check=False)
    return temporary


def shared_folder(test, uid):
    """A folder for containers that share it, as the given user."""
    folder = tempfile.mkdtemp(prefix="carousel-shared-")
    test.addCleanup(shutil.rmtree, folder, True)
    os.chown(folder, uid, 0)
    os.chmod(folder, 0o770)
    return folder


def is_whole(text):
    """Whether the last line of a run reports no lost, repeated or torn frame."""
    return re.search(r"lost 0, repeated 0, torn 0|0 lost, 0 repeated, 0 torn", text) is not None
