"""Control groups for a test, of version 1 or 2, below the group that the test is in."""
import os
import time

from processes import skip


def _own(controller):
    """(folder, is_v2) of this process's group for a controller; None if it is not mounted. Freezer: version 1 first."""
    paths = {}
    with open("/proc/self/cgroup", encoding="ascii") as f:
        for line in f:
            _, names, path = line.rstrip("\n").split(":", 2)
            for name in names.split(","):
                paths[name] = path
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            left, right = line.rstrip("\n").split(" - ", 1)
            root, point = left.split()[3:5]
            kind, options = right.split()[0], right.split()[-1].split(",")
            name = "" if kind == "cgroup2" and controller not in paths else controller
            if kind not in ("cgroup", "cgroup2") or (kind == "cgroup" and controller not in options) or name not in paths:
                continue
            below = paths[name]
            if root != "/" and below.startswith(root):
                below = below[len(root):]
            return point + below.rstrip("/"), kind == "cgroup2"
    return None


class Group:
    """A group with the controller; if there is none, ends this program as skipped, with the reason."""

    def __init__(self, controller):
        found = _own(controller)
        if found is None:
            skip(f"no control group with {controller} is mounted here")
        parent, self.v2 = found
        self.folder = f"{parent}/carousel-test-{os.getpid()}"
        try:
            if self.v2 and controller != "freezer":  # the freezer is part of every group of version 2
                with open(f"{parent}/cgroup.subtree_control", "w", encoding="ascii") as f:
                    f.write("+" + controller)
            os.mkdir(self.folder)
        except OSError as failed:
            skip(f"no control group can be made below {parent}: {failed.strerror}")

    def set(self, file, value):
        try:
            with open(f"{self.folder}/{file}", "w", encoding="ascii") as f:
                f.write(str(value))
        except OSError as failed:
            self.remove()
            skip(f"{self.folder}/{file} can't be set: {failed.strerror}")

    def enter(self):
        """For subprocess's preexec_fn: moves the child, and what it starts, into the group."""
        self.add(os.getpid())

    def add(self, pid):
        with open(f"{self.folder}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(pid))

    def remove(self, seconds=10):
        """Removes the group. A group with processes can't be removed: waits for their end."""
        end = time.monotonic() + seconds
        while os.path.isdir(self.folder):
            try:
                os.rmdir(self.folder)
            except OSError:
                if time.monotonic() > end:
                    return
                time.sleep(0.05)
