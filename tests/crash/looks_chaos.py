#!/usr/bin/env python3
"""`carousel chaos` on looks.toml, with its knots and then with a mesh that moves (nodes, a skin, morph targets): random faults of every
kind that the CPU has, among them wild writes and the death of the supervisor. Each picture must be that of the undisturbed run.
Usage: looks_chaos.py PROGRAMS PIPELINES [COUNT: faults per mesh, 30]
CAROUSEL_TEST_SEED repeats the plan, CAROUSEL_TEST_SCALE multiplies the faults."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "stages", "assets"))
from moving_model import write_moving_model  # noqa: E402
from seeds import scaled, seed  # noqa: E402

CAROUSEL, LOOKS = os.path.join(os.path.abspath(sys.argv[1]), "carousel"), os.path.join(os.path.abspath(sys.argv[2]), "looks.toml")
COUNT = scaled(int(sys.argv[3]) if len(sys.argv) > 3 else 30)
SMALL = ["--device", "cpu", "--size", "96x54", "--set", "geometry.triangles=300", "--set", "shadow.side=128"]


def chaos(folder, mesh, plan, *options):
    done = subprocess.run([CAROUSEL, "chaos", LOOKS, *SMALL, "--seed", str(plan), "--count", str(COUNT), "--rate", "0", "--json", *options],
                          env={**os.environ, "XDG_RUNTIME_DIR": folder, "TMPDIR": folder}, capture_output=True, text=True, timeout=120 + 8 * COUNT, check=False)
    try:
        r = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{mesh}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    kinds = ", ".join(f"{name} {kind['count']}" for name, kind in r["kinds"].items())
    same = r["image_hash"] is not None and r["image_hash"] == r["calm"]["image_hash"]
    print(f"{mesh}: {r['faults']} faults in {r['seconds']:.0f} s ({kinds}); {r['restarts']} restarts, {r['frames']} frames; lost, repeated, torn: "
          f"{r['lost']}, {r['repeated']}, {r['torn']}; pictures {'as' if same else 'NOT as'} those of the undisturbed run", flush=True)
    if done.returncode != 0 or not r["passed"] or r["faults"] != COUNT or not same:
        sys.exit(f"{mesh}: failed: {r['failures']}\n{done.stderr[-4000:]}")


def main():
    plan = seed()
    print(f"seed {plan} (CAROUSEL_TEST_SEED)", flush=True)
    with tempfile.TemporaryDirectory(prefix="carousel-looks-chaos-") as folder:
        model = os.path.join(folder, "moving.gltf")
        write_moving_model(model)
        chaos(folder, "knots", plan)
        chaos(folder, "moving mesh", plan + 1, "--set", f"geometry.mesh={model}", "--set", "geometry.copies=2")


main()
