"""A program that takes part in a run with frames on any device: port_any.py write|read RUN PORT LIBRARY

Each element of "value" is the frame's sequence below a mark of its writer's incarnation; one frame has one incarnation only, or it is torn.
Prints a line per frame, "frame N"; at the end "ended, F frames". A frame that is not as it must be, or one out of order: exit code 99."""
import importlib
import os
import sys

import carousel


def main():
    what, name, port, library = sys.argv[1:]
    of = importlib.import_module(library)
    array = of.asarray if library == "numpy" else of.from_dlpack
    run = carousel.open(name, wait_s=20)
    frames, expected, process_tag = 0, None, os.getpid() % 127 << 24
    for frame in run.writer(port, patience_s=60) if what == "write" else run.reader(port, patience_s=60):
        n = frame.frame_number
        x = array(frame["out_value" if what == "write" else "value"])
        if what == "write":
            x[...] = process_tag | n
            frame.metadata["number"] = n
        elif not bool((x == x[0]).all()) or int(x[0]) & 0xFFFFFF != n or frame.metadata["number"] != n or n != (n if expected is None else expected):
            print(f"frame {n}, expected {expected}: {x}")
            sys.exit(99)
        else:
            frame.set_hash(n)
        del x
        frame.commit()
        frames, expected = frames + 1, n + 1
        print("frame", n, flush=True)
    print(f"ended, {frames} frames", flush=True)


main()
