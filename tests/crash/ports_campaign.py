#!/usr/bin/env python3
"""Kills readers and writers of ports by the thousand, in C++ and then in Python: each run loses, repeats and tears nothing, or it fails.

Usage: ports_campaign.py BUILD [--kills N] [--python-kills N] [--seed N]
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CASE = "readers and writers that are killed under load*"


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build")
    words.add_argument("--kills", type=int, default=2000, help="of C++ programs [2000]; 0: none")
    words.add_argument("--python-kills", type=int, default=1000, help="of programs in Python [1000]; 0: none")
    words.add_argument("--seed", type=int, default=17)
    a = words.parse_args()
    parts = []
    if a.kills > 0:
        parts.append((f"C++, {a.kills} kills", [os.path.join(a.build, "test_port_io"), CASE],
                      {"CAROUSEL_TEST_KILLS": str(a.kills), "CAROUSEL_TEST_SEED": str(a.seed)}))
    if a.python_kills > 0:
        parts.append((f"Python, {a.python_kills} kills", [sys.executable, "-B", os.path.join(HERE, "../stages/python/test_ports.py"), a.build,
                                                          "--kills", str(a.python_kills), "--seed", str(a.seed)], {}))
    results = []
    for name, command, environment in parts:
        began = time.monotonic()
        print(f"== {name}, seed {a.seed}", flush=True)
        code = subprocess.run(command, env={**os.environ, **environment}, check=False).returncode
        results.append((name, code, time.monotonic() - began))
    print()
    for name, code, took in results:
        verdict = {0: "lost 0, repeated 0, torn 0", 77: "skipped: see above"}.get(code, f"FAILED with {code}: see above")
        print(f"{name:24} {took:6.0f} s  {verdict}")
    return 1 if any(code not in (0, 77) for _, code, _ in results) else 77 if all(code == 77 for _, code, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
