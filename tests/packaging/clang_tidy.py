"""clang-tidy over the sources that changed against a base commit, by the rules of .clang-tidy.

Usage: clang_tidy.py ROOT BUILD [--base COMMIT] [--most N] [--jobs N]

BUILD is a configured build folder: its compile_commands.json says how a file is compiled. COMMIT is where the change
begins: $CAROUSEL_BASE, else the commit before the last one. A header is looked at with the changed sources that include
it. A source takes seconds, so that a large change is looked at by name: --most 1000. Exit code 0: no finding; 1: findings, printed; 77: nothing could be looked at, with the reason.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from processes import skip  # noqa: E402

FINDING = re.compile(r"^(\S+?):(\d+):\d+: (?:warning|error): (.*) (\[[\w.,-]+\])$")


def without_precompiled_header(command):
    """A header that g++ has compiled is none that clang can read; every file includes what it uses."""
    return re.sub(r" (-include|-Winvalid-pch)(?: \S*cmake_pch\.hxx)?", "", command)


def each_source(commands):
    """The commands, with one for each file of those that are compiled together (CMake's unity builds)."""
    for entry in commands:
        if not re.search(r"/Unity/unity_\d+_cxx\.cxx$", entry["file"]):
            yield entry
            continue
        if not os.path.exists(entry["file"]):
            continue
        with open(entry["file"], encoding="utf-8") as f:
            for path in re.findall(r'^#include "(.*)"', f.read(), re.M):
                yield dict(entry, file=path, command=entry["command"].replace(entry["file"], path))


def changed_files(root, base):
    """The files that git names as added or changed since the base, the working tree included; deleted files
    are omitted."""
    names = subprocess.run(["git", "-C", root, "diff", "--name-only", "--diff-filter=d", base, "--"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    new = subprocess.run(["git", "-C", root, "ls-files", "--others", "--exclude-standard"],
                         capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted({os.path.join(root, name) for name in names + new if name})


def findings(tool, database, path, root):
    done = subprocess.run([tool, "-p", database, "--quiet", "--extra-arg=-Wno-unknown-warning-option",
                           "--extra-arg=-Wno-ignored-optimization-argument", path],
                          capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.split("\n") if FINDING.match(line) and line.startswith(root)]
    if done.returncode != 0 and not found:
        found = [f"{path}:1:1: error: clang-tidy ended {done.returncode}: {(done.stdout + done.stderr)[-400:]} [clang-tidy]"]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("build")
    parser.add_argument("--base", default=os.environ.get("CAROUSEL_BASE", "HEAD~1"))
    parser.add_argument("--most", type=int, default=24, help="look at no more sources than this; the others are counted")
    parser.add_argument("--jobs", type=int, default=max(1, min(2, os.cpu_count() or 1)))
    options = parser.parse_args()
    tool = shutil.which("clang-tidy")
    if not tool:
        skip("clang-tidy isn't installed (package: clang-tidy)")
    root = os.path.realpath(options.root)
    known = subprocess.run(["git", "-C", root, "rev-parse", "--verify", "--quiet", options.base + "^{commit}"],
                           capture_output=True, text=True, check=False)
    if known.returncode != 0:
        skip(f"git knows no commit {options.base} in {root}: name the base by $CAROUSEL_BASE or --base")
    with open(os.path.join(options.build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    changed = set(changed_files(root, options.base))
    # One entry per file: a file that several targets compile is looked at once.
    entries = {entry["file"]: dict(entry, command=without_precompiled_header(entry["command"]))
               for entry in reversed(list(each_source(commands))) if entry["file"].endswith(".cpp")}
    chosen = sorted(path for path in entries if path in changed)
    if not chosen:
        print(f"no source has changed since {options.base}")
        return 0
    left = chosen[options.most:]
    chosen = chosen[:options.most]
    with tempfile.TemporaryDirectory(prefix="carousel-tidy-") as database:
        with open(os.path.join(database, "compile_commands.json"), "w", encoding="utf-8") as f:
            json.dump([entries[path] for path in chosen], f)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(lambda path: findings(tool, database, path, root), chosen)
            found = sorted({line for result in results for line in result})
    for line in found:
        print(line.replace(root + "/", ""))
    more = f" ({len(left)} more were not looked at: --most {options.most})" if left else ""
    print(f"clang-tidy: {len(found)} findings in {len(chosen)} sources that changed since {options.base}{more}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
