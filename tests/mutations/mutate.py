#!/usr/bin/env python3
"""Makes mutations, one at a time, in a copy of the tree: builds the least that is needed, runs the named tests and expects them to
fail with the named assertion. Exit code 0: each mutation ended as its entry says.

Usage: mutate.py NAME...
The copy and its builds (build/mutations) are kept: what did not change since the last call is not built again, and a test that has
passed in the unchanged copy is not run there again. A mutation that does not apply, does not compile, runs into a timeout or fails
otherwise is a fault, as is one that survives without a reason. CAROUSEL_JOBS limits the build."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import mutation  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(mutation.HERE))
SCRATCH = os.path.join(ROOT, "build", "mutations")
TREE = os.path.join(SCRATCH, "tree")
PASSED = os.path.join(SCRATCH, "passed.json")   # the tests that have passed in the unchanged copy, and a hash of it
TEST_S = 300   # simulated runs, not optimised, on a busy machine
GOOD = ("killed", "survives, as explained")


class Unusable(Exception):
    """The unchanged copy cannot be built, or a test fails in it."""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def copy_tree():
    """Copies the files of the repository, and those that could be tracked, where they differ. Returns a hash of them all."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False).stdout
    names = sorted({n for n in listed.split("\0") if n and os.path.isfile(os.path.join(ROOT, n))})
    if not names:
        raise Unusable("mutations need a checkout under version control, to know which files to copy")
    for folder, folders, files in os.walk(TREE):
        folders[:] = [f for f in folders if f != "__pycache__"]
        for name in files:
            if os.path.relpath(os.path.join(folder, name), TREE) not in names:
                os.unlink(os.path.join(folder, name))
    everything = hashlib.sha256()
    for name in names:
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        text = read_bytes(source)
        everything.update(f"{name} {len(text)}\n".encode() + text)
        if not os.path.isfile(target) or read_bytes(target) != text:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)   # with a new time: ninja sees it
    return everything.hexdigest()


def output_of(command, seconds):
    """Exit code (None: timeout) and output."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return None, (e.stdout or b"").decode(errors="replace")


def configure(preset):
    # Not optimised: compiling takes most of the time of a mutation.
    flags = "-O1 -g1" if preset == "tsan" else "-O0"
    code, text = output_of(["cmake", "-S", TREE, "-B", os.path.join(SCRATCH, preset), "-G", "Ninja", "-DCAROUSEL_TESTS=ON", "-DCAROUSEL_CUDA=OFF",
                            "-DCAROUSEL_UNITY=OFF", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS_RELEASE={flags} -DNDEBUG",
                            *(["-DCAROUSEL_SANITIZE=thread"] if preset == "tsan" else [])], 600)
    if code != 0:
        raise Unusable(f"the copy cannot be configured:\n{text[-3000:]}")


def build(entry):
    jobs = os.environ.get("CAROUSEL_JOBS") or os.cpu_count()
    return output_of(["ninja", "-C", os.path.join(SCRATCH, entry["preset"]), f"-j{jobs}", *entry["build"]], 3600)


def run_tests(entry, names):
    # Catch's script loses the blank after "test_ring:" in some versions.
    pattern = "^(" + "|".join(mutation.ctest_pattern(n).replace(": ", ": ?", 1) for n in names) + ")$"
    return output_of(["ctest", "--test-dir", os.path.join(SCRATCH, entry["preset"]), "--output-on-failure", "--no-tests=error",
                      "--timeout", str(TEST_S), "-R", pattern], 3600)


def check_unchanged(entry, entries, tree):
    """Runs the tests of the mutation in the unchanged copy: if one failed or skipped there, its failure would prove nothing. Runs those
    of all mutations with the same targets at once, so that the unchanged copy is built once and not before each mutation."""
    known = {}
    if os.path.exists(PASSED):
        with open(PASSED, encoding="utf-8") as f:
            known = json.load(f)
    if known.get("tree") != tree:
        known = {"tree": tree}
    passed = known.setdefault(entry["preset"], [])
    if set(entry["tests"]) <= set(passed):
        return
    if not passed:
        configure(entry["preset"])
    code, text = build(entry)
    if code != 0:
        raise Unusable(f"the unchanged copy cannot be built:\n{text[-3000:]}")
    alike = {t for e in entries if (e["preset"], e["build"]) == (entry["preset"], entry["build"]) for t in e["tests"]}
    for names in (sorted(alike - set(passed)), entry["tests"]):   # its own alone, where one of the others fails
        code, text = run_tests(entry, names)
        ran = len(re.findall(r"^ *\d+/\d+ Test +#", text, re.M))
        if code == 0 and ran == len(names) and "***Skipped" not in text:
            passed += names
            write(PASSED, json.dumps(known, indent=1))
            return
    raise Unusable(f"{ran} of {len(names)} tests ran in the unchanged copy, and all must pass there: {names}\n{text[-3000:]}")


def judge(entry):
    """(verdict, what was seen): of the mutation, made in a copy that is unchanged before and after."""
    path = os.path.join(TREE, entry["file"])
    before = read_bytes(path).decode()
    try:
        write(path, mutation.apply(entry, before))
        code, text = build(entry)
        if code != 0:
            return "does not compile", next((line for line in text.splitlines() if "error" in line), text[-300:])
        code, text = run_tests(entry, entry["tests"])
    except mutation.Broken as e:
        return "does not apply", str(e)
    finally:
        write(path, before)   # with a new time: ninja builds it again
    if "survives" in entry:
        return ("survives, as explained", entry["survives"]) if code == 0 else ("killed, but listed as a survivor", text[-400:])
    if code == 0:
        return "SURVIVES", "every named test passes"
    if " ".join(entry["kills"].split()) in " ".join(text.split()):
        return "killed", entry["kills"]
    if code is None or "***Timeout" in text:
        return "timeout", "a test ran into its limit before any assertion failed"
    return "killed otherwise", text[-3000:]


def main():
    entries = {e["name"]: e for e in mutation.load()}
    unknown = [n for n in sys.argv[1:] if n not in entries]
    if len(sys.argv) < 2 or unknown:
        sys.exit(f"{__doc__}\nno such mutation: {unknown}")
    os.makedirs(SCRATCH, exist_ok=True)
    for variable in ("CAROUSEL_TEST_SEED", "CAROUSEL_TEST_SCALE"):   # a mutation is killed by the usual seeds
        os.environ.pop(variable, None)
    bad = 0
    for name in sys.argv[1:]:
        try:
            check_unchanged(entries[name], entries.values(), copy_tree())
            verdict, seen = judge(entries[name])
        except Unusable as e:
            verdict, seen = "not judged", str(e)
        bad += verdict not in GOOD
        print(f"{name}: {verdict}: {seen}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
