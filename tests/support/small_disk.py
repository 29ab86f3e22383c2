"""A separate mount namespace for a test, in which it mounts a small tmpfs."""
import os
import subprocess
import tempfile

from processes import skip

NAMESPACE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def need_mounts():
    """Ends this program as skipped without mount namespaces. Not for use within a test case: unittest reports that as an error."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"no tmpfs can be mounted here, in a namespace of its own: {done.stderr.strip()}")
