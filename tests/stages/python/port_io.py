"""A program that takes part in a run, as its source or as a sink: port_io.py write|read RUN PORT [PAUSE_S]

Each element of the plane "value" must be the frame's sequence below a mark of its writer's incarnation; one frame has one incarnation only,
or it is torn. The data of a frame in addition to its planes are a function of the sequence, too. Prints a
line per frame, "frame N"; at the end
"ended, F frames". A frame that is not as it must be, or one that doesn't follow the previous one: exit code 99."""
import os
import sys
import time

import carousel
import numpy


def write(writer, pause_s):
    process_tag, frames = os.getpid() << 40, 0
    for frame in writer:
        time.sleep(pause_s)
        frame["out_value"].copy_from(numpy.full(512, process_tag | frame.frame_number, dtype="u8"))
        frame["out_part"].set_used(frame.frame_number % 64)
        frame.metadata["number"] = frame.frame_number
        frame.capture_ns = time.monotonic_ns()
        frame.commit()
        frames += 1
        print("frame", frame.frame_number, flush=True)
    return frames


def read(reader, pause_s):
    expected, frames = None, 0
    for frame in reader:
        n, value = frame.frame_number, numpy.asarray(frame["value"])
        whole = (value == value[0]).all() and int(value[0]) & (1 << 40) - 1 == n
        del value
        carried = frame.metadata.get("number") == n and frame["part"].shape == (n % 64,) and frame.capture_ns > 0
        if not whole or not carried or n != (n if expected is None else expected):
            print(f"frame {n}, expected {expected}: whole {whole}, {frame!r}, {frame.metadata!r}")
            sys.exit(99)
        time.sleep(pause_s)
        frame.set_hash(n)
        frame.commit()
        frames, expected = frames + 1, n + 1
        print("frame", n, flush=True)
    return frames


if __name__ == "__main__":
    what, name, port = sys.argv[1:4]
    pause = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    run = carousel.open(name, wait_s=20)
    patience = {"patience_s": 60}
    done = write(run.writer(port, **patience), pause) if what == "write" else read(run.reader(port, **patience), pause)
    print(f"ended, {done} frames", flush=True)
