# %% A notebook, as a script: each "# %%" begins a cell. Run it where `import carousel` works:
#    PYTHONPATH=build/release/python python3 stages/examples/notebook/inspect_run.py stages/examples/tint/tint.toml
import sys

import carousel
import numpy

# %% Start a pipeline. The run is concurrent with this program; Ctrl-C here does not reach it.
pipeline = carousel.Pipeline(sys.argv[1] if len(sys.argv) > 1 else "stages/examples/tint/tint.toml")
run = pipeline.start(device="cpu", fps=60, options=["--out", ""])
print(run)

# %% Read the newest frame of any stage. This never blocks the run.
view = run.open()
print(view)
newest = view.latest("tint")
frame = newest.next()
print(frame, frame["color"])

# %% The array is the frame's memory, not a copy. The frame stays unchanged for as long as it is held.
picture = numpy.asarray(frame["color"])
print("mean of red, green, blue:", picture[..., :3].mean(axis=(0, 1)).round(1))

# %% Kill a stage. The other processes keep their ids, and no frame is lost.
def pids():
    return {s["name"]: s["pid"] for s in run.ps()["stages"]}


before = pids()
run.kill("tint")
for later in newest:   # until a frame comes from the stage's new process
    after = pids()
    if after["tint"] != before["tint"]:
        break
print("frame", frame.frame_number, "->", later.frame_number, "; changed:", [name for name in before if before[name] != after[name]])

# %% Stop the run and print its report.
run.end()
report = run.report()
print({key: report[key] for key in ("frames", "lost", "repeated", "torn", "restarts")})
