"""One thread between two runs, each on a different GPU: port_two_gpus.py RUN RUN LIBRARY FRAMES

Each frame: filled in the first run, read there, copied into the second run's frame, and read again. Before each call of a port the thread
selects the other run's GPU; after the call it must still be selected. At the end "N frames"; any difference: exit code 99."""
import contextlib
import importlib
import sys

import carousel


def main():
    *names, library, count = sys.argv[1:]
    of = importlib.import_module(library)
    array = of.asarray if library == "numpy" else of.from_dlpack
    current = {"torch": lambda: of.cuda.current_device(), "cupy": lambda: of.cuda.runtime.getDevice(), "numpy": lambda: 0}[library]
    go_to = {"torch": lambda gpu: of.cuda.set_device(gpu), "cupy": lambda gpu: of.cuda.runtime.setDevice(gpu), "numpy": lambda gpu: None}[library]
    on = of.cuda.Device if library == "cupy" else lambda gpu: contextlib.nullcontext()   # torch's arrays know their GPU
    two = library != "numpy"

    def require(true, text):
        if not true:
            print(text)
            sys.exit(99)

    def elsewhere(gpu, call, what):
        other = 1 - gpu if two else 0
        go_to(other)
        got = call()
        require(current() == other, f"{what} of GPU {gpu} has left the thread on GPU {current()}, which was on {other}")
        return got

    def refused(run):
        try:
            run.writer("camera", planes={"value": "u8[3]"})
        except carousel.ConfigError:
            return
        require(False, "a writer of other planes was let in")

    for gpu in range(2 if two else 0):
        go_to(gpu)
        of.zeros(1, **({"device": f"cuda:{gpu}"} if library == "torch" else {}))   # a context on both
    runs = [elsewhere(k, lambda n=n: carousel.open(n, wait_s=20), "open()") for k, n in enumerate(names)]
    for k, r in enumerate(runs):
        elsewhere(k, lambda r=r: refused(r), "a writer() that is refused")
    writers = [elsewhere(k, lambda r=r: r.writer("camera", patience_s=60), "writer()") for k, r in enumerate(runs)]
    readers = [elsewhere(k, lambda r=r: r.reader("analysis", patience_s=60), "reader()") for k, r in enumerate(runs)]
    newest = [elsewhere(k, lambda r=r: r.latest("camera", patience_s=60), "latest()") for k, r in enumerate(runs)]
    frames = 0
    for n in range(int(count)):
        value = None
        for k in range(2):
            frame = elsewhere(k, lambda k=k: writers[k].next(60), "next() of a writer")
            x = array(frame["out_value"])
            require(not two or gpu_of(x) == k, f"frame {n} of run {k} lies on GPU {gpu_of(x) if two else 0}")
            with on(k):
                x[...] = n if value is None else array_on(of, library, value, k)
            del x
            elsewhere(k, frame.commit, "commit() of a writer")
            if n % 20 == 0:
                seen = elsewhere(k, lambda k=k: newest[k].next(60), "next() of latest()")
                require(seen is not None and seen.frame_number == n, f"newest of run {k}: {seen}")
                del seen
            frame = elsewhere(k, lambda k=k: readers[k].next(60), "next() of a reader")
            x = array(frame["value"])
            with on(k):
                require(bool((x == n).all()), f"frame {n} of run {k}: {x}")
                value = x.copy() if library != "torch" else x.clone()
            del x
            elsewhere(k, frame.commit, "commit() of a reader")
        frames += 1
    del value
    for k in range(2):
        elsewhere(k, readers[k].close, "close() of a reader")
        elsewhere(k, writers[k].end, "end()")
        elsewhere(k, writers[k].close, "close() of a writer")
    print(f"{frames} frames", flush=True)


def gpu_of(x):
    return x.device.index if hasattr(x.device, "index") else x.device.id


def array_on(of, library, value, gpu):
    """The values of another GPU's array, copied to this one."""
    return value.to(f"cuda:{gpu}") if library == "torch" else of.asarray(value) if library == "numpy" else of.asarray(of.asnumpy(value))


main()
