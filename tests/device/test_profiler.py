"""The ranges for a profiler: each frame's process and waits, in a domain a stage. Usage: test_profiler.py PROGRAMS PIPELINES TOOL.so"""
import collections
import os
import subprocess
import sys
import tempfile

PROGRAMS, PIPELINES, TOOL = map(os.path.abspath, sys.argv[1:4])
FRAMES = 30

with tempfile.TemporaryDirectory(prefix="carousel-nvtx-") as folder:
    out = os.path.join(folder, "ranges")
    subprocess.run([os.path.join(PROGRAMS, "carousel"), "run", os.path.join(PIPELINES, "demo.toml"), "--device", "cpu", "--size", "64x36",
                    "--set", "geometry.triangles=200", "--frames", str(FRAMES), "--out", "", "--no-color"], check=True, timeout=60,
                   env={**os.environ, "XDG_RUNTIME_DIR": folder, "NVTX_INJECTION64_PATH": TOOL, "CAROUSEL_NVTX_OUT": out})
    pushed, pops = collections.defaultdict(list), collections.Counter()
    for name in os.listdir(folder):
        if not name.startswith("ranges."):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            for line in f.read().splitlines():
                kind, rest = line.split(" ", 1)
                if kind == "push":
                    domain, text = rest.split("|", 1)
                    pushed[domain].append(text)
                elif kind == "pop":
                    pops[rest] += 1

for stage in ("geometry", "vertex", "fragment", "display"):
    texts = pushed[f"carousel {stage}"]
    for what in ("process", "wait for the device"):
        got = sorted(int(t.rsplit(" ", 1)[1]) for t in texts if t.startswith(what + " "))
        assert got == list(range(FRAMES)), (stage, what, got)
    # The process ends while its main thread may still be in a wait.
    assert len(texts) - 2 <= pops[f"carousel {stage}"] <= len(texts), (stage, len(texts), pops[f"carousel {stage}"])
assert any(t == "wait for input" for t in pushed["carousel display"])
print(f"{FRAMES} frames: every stage showed its process and its waits")
