#!/usr/bin/env python3
"""Builds one fuzz target with the preset `fuzz` and runs it. The inputs that it finds are kept in build/fuzz/tests/fuzz/found/TARGET,
and the next run begins with them. Exit code 77: there is no clang++ with libFuzzer.

Usage: run_fuzzer.py TARGET SECONDS
Environment: CAROUSEL_TEST_SEED (1), CAROUSEL_TEST_SCALE (1): multiplies SECONDS."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "fuzz")
TARGETS = ("control_sequences", "link_sequences", "recording_sequences")   # the others run for seconds in every sanitizer build


def has_libfuzzer():
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "a.cpp")
        with open(source, "w", encoding="utf-8") as f:
            f.write('extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n')
        try:
            return subprocess.run(["clang++", "-fsanitize=fuzzer,address,undefined", source, "-o", os.path.join(folder, "a")],
                                  capture_output=True, timeout=120, check=False).returncode == 0
        except FileNotFoundError:
            return False


def main():
    target, seconds = sys.argv[1], int(sys.argv[2]) * int(os.environ.get("CAROUSEL_TEST_SCALE", "1"))
    if target not in TARGETS:
        sys.exit(f"unknown target {target}; expected one of {', '.join(TARGETS)}")
    if not has_libfuzzer():
        print("skipped: no clang++ with libFuzzer (packages: clang and the libclang-rt-*-dev of its version)")
        return 77
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["cmake", "--preset", "fuzz"], cwd=ROOT, timeout=600, check=True)
    subprocess.run(["ninja", "-C", BUILD, f"fuzz_{target}"], timeout=3600, check=True)
    found = os.path.join(BUILD, "tests", "fuzz", "found", target)
    os.makedirs(found, exist_ok=True)
    command = [os.path.join(BUILD, f"fuzz_{target}"), f"-max_total_time={seconds}", f"-seed={os.environ.get('CAROUSEL_TEST_SEED', '1')}",
               "-timeout=60", "-rss_limit_mb=2500", f"-artifact_prefix={BUILD}/tests/fuzz/{target}-", "-print_final_stats=1",
               found, os.path.join(HERE, "corpus", target)]
    return subprocess.run(command, timeout=seconds + 600, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
