#!/usr/bin/env python3
"""Reads every model of a folder by `carousel mesh-info`, and prints one line per file: what pictures show, or why it is refused.

Usage: external_models.py BUILD [FOLDER], by default the models of Debian's package assimp-testmodels. Fails if a file ends the program
by a signal, takes more than 20 s, or gives neither a description nor one error message. Exit code 77: the folder is missing.
"""
import collections
import json
import os
import subprocess
import sys

ENDINGS = (".gltf", ".glb", ".obj", ".ply")
LIMIT_S = 20


def describe(program, path):
    """(kind, text) of a file: "shown", "partly", "refused" or "FAILED"."""
    try:
        done = subprocess.run([program, "mesh-info", "--json", path], capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return "FAILED", f"no result after {LIMIT_S} s"
    try:
        info = json.loads(done.stdout)
    except ValueError:
        return "FAILED", f"exit code {done.returncode}: {done.stderr.decode(errors='replace').strip()[-200:]}"
    if done.returncode != 0:
        return ("refused" if done.returncode == 2 and info.get("message") else "FAILED"), str(info.get("message"))
    hidden = [f["text"] for f in info["features"] if not f["shown"]]
    hidden += [image["error"] for image in info["images"] if "error" in image]
    size = f"{info['triangles']} triangles, {info['materials']} materials"
    return ("partly", size + "; " + "; ".join(hidden)) if hidden else ("shown", size)


def main():
    program = os.path.join(sys.argv[1], "carousel")
    folder = sys.argv[2] if len(sys.argv) > 2 else "/usr/share/assimp/models"
    if not os.path.isdir(folder):
        print(f"skipped: no folder {folder} (apt-get install assimp-testmodels)")
        return 77
    counts = collections.Counter()
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if not name.lower().endswith(ENDINGS):
                continue
            path = os.path.join(parent, name)
            kind, text = describe(program, path)
            counts[kind] += 1
            print(f"{kind:8} {os.path.relpath(path, folder)}: {text}", flush=True)
    print(", ".join(f"{kind}: {counts[kind]}" for kind in ("shown", "partly", "refused", "FAILED")))
    return 1 if counts["FAILED"] or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
