"""What campaigns have in common: where their results come from, and results that a cut-off campaign goes on with."""
import json
import os
import platform
import subprocess


def about():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    git = ["git", "-c", "safe.directory=*", "-C", root]
    commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=False).stdout.strip()
    return {"commit": (commit or "no version control") + ("+changes" if changed else ""), "cores": os.cpu_count(),
            "machine": platform.machine(), "kernel": platform.release().split("-")[0]}


def kept_rounds(path, where):
    """Those of the same commit and machine."""
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        before = json.load(f)
    return before["rounds"] if before["about"] == where else []


def keep_rounds(path, where, rounds):
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        json.dump({"about": where, "rounds": rounds}, f, indent=1)
    os.replace(path + ".tmp", path)
