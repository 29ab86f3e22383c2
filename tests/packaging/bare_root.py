"""A bare Debian system in a folder: what debootstrap makes, and nothing else. Programs run in it as in a container of their own."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from processes import skip  # noqa: E402

USER = 1000   # who uses what root has installed
# {root}: the folder. Own processes, shared memory and mounts; without `network` also an own, empty network.
ENTER = """set -e
mount --make-rprivate /
mount -t proc proc {root}/proc
mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm
mount -t tmpfs -o mode=1777 tmpfs {root}/tmp
ip link set lo up 2>/dev/null || true
exec chroot {root} {user} env -i HOME=/srv/user TMPDIR=/tmp LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \\
  DEBIAN_FRONTEND=noninteractive bash -c "$1"
"""


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def distribution():
    """(codename, mirror) of this machine."""
    with open("/etc/os-release", encoding="utf-8") as file:
        name = re.search(r"^VERSION_CODENAME=(\S+)", file.read(), re.M).group(1)
    targets = run("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages")
    mirrors = [line.split()[1] for line in targets.splitlines() if line.split()[0] == name]
    return name, mirrors[0] if mirrors else skip("apt has no list of packages: apt-get update")


def package(kind, build, to, *more):
    """The packages that `pipelines/package` makes of this build."""
    return run(os.path.join(ROOT, "pipelines", "package"), kind, "--build", build, "--to", to, *more).splitlines()


class BareRoot:
    """debootstrap's tree is kept in the build folder: making it takes longer than most of what is tested in it."""

    def __init__(self, build):
        if os.geteuid() != 0:
            skip("a bare root needs root")
        if not shutil.which("debootstrap"):
            skip("debootstrap is not installed (package: debootstrap)")
        self.temporary = tempfile.TemporaryDirectory(prefix="carousel-root-")
        self.folder = os.path.join(self.temporary.name, "root")
        kept = os.path.join(build, "bare-root.tar")
        if not os.path.exists(kept):
            name, mirror = distribution()
            run("debootstrap", "--variant=minbase", name, self.folder, mirror)
            run("tar", "-C", self.folder, "-cf", kept + ".new", ".")
            os.rename(kept + ".new", kept)
        else:
            os.mkdir(self.folder)
            run("tar", "-C", self.folder, "-xpf", kept)
        # As on this machine: the same mirror, the same way to it.
        for path in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(path, self.folder + path)
        os.makedirs(self.folder + "/srv/user")
        os.chown(self.folder + "/srv/user", USER, USER)

    def end(self):
        self.temporary.cleanup()

    def shell(self, script, root=False, network=False):
        """The output of the script, which must succeed. As root, or as a user without a passwd entry."""
        user = "" if root else f"setpriv --reuid {USER} --regid {USER} --clear-groups"
        spaces = ["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"] + ([] if network else ["--net"])
        return run("unshare", *spaces, "bash", "-c", ENTER.format(root=self.folder, user=user), "_", f"set -eu\n{script}")

    def apt_install(self, *names):
        return self.shell("apt-get -q update && apt-get -q -y --no-install-recommends install " + " ".join(names), root=True, network=True)

    def put(self, path, at):
        os.makedirs(self.folder + at, exist_ok=True)
        return shutil.copy(path, self.folder + at)

    def named_carousel(self):
        """Paths that an installation could have left; those of apt's own records are not its."""
        found = self.shell("find / -xdev -iname '*carousel*' -not -path '/proc/*' -not -path '/var/lib/apt/*' -not -path '/var/cache/apt/*'", root=True)
        return sorted(found.split("\n")[:-1])
