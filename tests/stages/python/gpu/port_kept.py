"""Objects that a program still has after its port, its frame or its run has ended: port_kept.py write|read
RUN PORT LIBRARY

Each element of "value" is its frame's number. write: it drops frames while it has arrays of them, which block the next frame until it
releases them; one outlives the port. read: it reads a newest frame whose port object is already gone, leaves its port with a leased frame,
and returns; what it kept is read once more after the run's end. At the end "ended, F frames". A frame that is not as it must be: exit code 99."""
import gc
import importlib
import sys

import carousel

WHAT, NAME, PORT, LIBRARY = sys.argv[1:]
LIBRARY = importlib.import_module(LIBRARY)
ARRAY = LIBRARY.asarray if LIBRARY.__name__ == "numpy" else LIBRARY.from_dlpack


def require(true, text):
    if not true:
        print(text, flush=True)
        sys.exit(99)


def is_all(x, n):
    return bool((x == n).all())


def require_refused(call, what):
    try:
        call()
    except carousel.Error as refused:
        require(f"is held beyond {what}" in str(refused), refused)
    else:
        require(False, f"{what} with an array of a dropped frame")


def write():
    run = carousel.open(NAME, wait_s=20)
    port, dropped, frames = run.writer(PORT, patience_s=60), set(), 0
    while (frame := port.next(60)) is not None:
        n = frame.frame_number
        x = ARRAY(frame["out_value"])
        x[...] = n
        if n % 40 != 10 or n in dropped:
            del x
            frame.commit()
            frames += 1
            continue
        dropped.add(n)   # the same number is reused
        frame.drop()
        require_refused(port.next, "next()")
        require(is_all(x, n), f"dropped frame {n}: {x}")
        if n == 50:   # it outlives the port, too
            port.close()
            require(is_all(x, n), f"dropped frame {n} behind close(): {x}")
        del x
        if n == 50:
            port = run.writer(PORT, patience_s=60)
    port.close()
    return frames


def read():
    run = carousel.open(NAME, wait_s=20)
    port, kept, frames, left = run.reader(PORT, patience_s=60), [], 0, False
    while (frame := port.next(60)) is not None:
        n = frame.frame_number
        require(n == frames, f"frame {n} for {frames}")
        x = ARRAY(frame["value"])
        require(is_all(x, n), f"frame {n}: {x}")
        if n == 50 and not left:
            left = True
            port.close()   # with the leased frame, and an array of it
            del x, frame
            port = run.reader(PORT, patience_s=60)
            continue
        del x
        frame.commit()
        frames += 1
        if n % 20 == 5:   # the object that delivers it is not kept
            newest = next(iter(carousel.open(NAME).latest("camera")))
            kept.append((newest, ARRAY(newest["value"])))
            del newest
            gc.collect()
    port.close()
    require(len(kept) > 2, f"{len(kept)} newest frames")
    for newest, x in kept:
        n = newest.frame_number
        require(is_all(x, n) and is_all(ARRAY(newest["value"]), n), f"newest frame {n}: {x}")
        host = importlib.import_module("numpy").asarray(newest["value"].cpu())
        require(is_all(host, n) and newest.copy().frame_number == n, f"newest frame {n} on the host: {host}")
    return frames


print(f"ended, {write() if WHAT == 'write' else read()} frames", flush=True)
