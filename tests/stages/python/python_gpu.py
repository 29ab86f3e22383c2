"""Stages and ports in Python on a GPU, with torch and CuPy: python_gpu.py PROGRAMS [--parts a,b] [--device cuda:0] [--kills 10] [--frames 200]
[--kinds a,b] [--libraries torch,cupy]

Parts, for each library: pointers (a tensor of a slot is the slot, the current stream the frame's); copy_from
(a plane's, of planes and arrays); streams (an own one, named and not);
older (the same as on a driver that can't tell of all streams); far (an own one, not named and at once, where rings count as another
GPU's); waits (no call waits for the device or a stream, by CUPTI's callbacks);
input (x += 1 on an input: a fault of that stage alone); keep (an array kept beyond its frame); host (a CPU array into a GPU's output);
outputs (several); used (planes that are used in part); latest (a look aside); newest (run.latest and plane.cpu()); ports (a reader and a writer);
kept (what programs hold beyond their port, frame or run); two_gpus (one thread with ports of two runs, each on a GPU of its own); kills (of each of --kinds, N times).
A line a part, the table last. Exit code 77 with the reason: no GPU, or neither torch nor CuPy. --device cpu: with NumPy, what makes
sense there; that looks for faults of this script, and of nothing else."""
import argparse
import concurrent.futures
import contextlib
import glob
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

import counted_waits
import interpreter

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu")
PORTS = '[[stage]]\nname = "camera"\nrun = "port"\noutput = { value = "i64[65536]" }\n[[stage]]\nname = "analysis"\nrun = "port"\ninputs = ["camera"]\n'


class Skipped(Exception):
    pass


def require(true, text):
    if not true:
        raise AssertionError(text)


@contextlib.contextmanager
def variables(**words):
    """Sets environment variables for processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(words)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def until(true, what, timeout_s=60):
    end = time.monotonic() + timeout_s
    while not true():
        require(time.monotonic() < end, f"not within {timeout_s} s: {what}")
        time.sleep(0.01)


class Rig:
    def __init__(self, a, library, folder):
        self.a, self.library, self.folder, self.gpu = a, library, folder, a.device != "cpu"
        self.runs = []

    def stage(self, name, run, inputs=(), more=""):
        path = os.path.join(HERE if run.endswith(".py") else self.a.programs, run)
        return f'[[stage]]\nname = "{name}"\nrun = "{path}"\ninputs = [{", ".join(repr(i) for i in inputs)}]\n{more}\n'

    def sink(self, of, name="sink"):
        return self.stage(name, "carousel-test-copy", [of], "sink = true")

    def acts(self, act, more=""):
        """source -> middle, the stage under test -> sink"""
        return (self.stage("source", "carousel-test-copy")
                + self.stage("middle", "acts.py", ["source"], f'library = "{self.library}"\nact = "{act}"\n{more}') + self.sink("middle"))

    def start(self, stages, frames=None, keys="", size=(320, 180), device="", name=""):
        path = os.path.join(self.folder, f"gpu{name}.toml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f'[pipeline]\nname = "python-gpu-{os.getpid()}{name and "-" + name}"\nsize = [{size[0]}, {size[1]}]\n'
                      f'device = "{device or self.a.device}"\n{keys}\n{stages}')
        self.runs.append(carousel.Pipeline(path).start(frames=frames))
        return self.runs[-1]

    def end(self, run, restarts=0):
        code = run.wait(180)
        require(code is not None, f"it has not ended within 180 s\n{run.log_text(40)}")
        require(code == 0, f"exit code {code}\n{run.log_text(40)}")
        report = run.report()
        require([report[k] for k in ("lost", "repeated", "torn")] == [0, 0, 0], f"lost, repeated or torn\n{run.log_text(40)}")
        if restarts is not None:
            require(report["restarts"] == restarts, f"{report['restarts']} restarts\n{run.log_text(40)}")
        return report

    def needs_gpu(self, why):
        if not self.gpu:
            raise Skipped(why)

    def reference(self, frames, size=(320, 180)):
        """The hash of the same pipeline with a copy in C++."""
        middle = self.stage("middle", "carousel-test-copy", ["source"])
        return self.end(self.start(self.stage("source", "carousel-test-copy") + middle + self.sink("middle"), frames, size=size))["image_hash"]

    def copies(self, act):
        got = self.end(self.start(self.acts(act), self.a.frames))["image_hash"]
        require(got == self.reference(self.a.frames), "another hash than the same stage in C++ has")
        return f"{self.a.frames} frames, the hash of C++"

    def one_frame(self, act, *sentences):
        """The stage does it at frame 30: that frame is abandoned, no other stage restarts."""
        run = self.start(self.acts(act, "at = 30\nmax_attempts = 1\nstandby = false"), 60, "allow_dead_letters = true\nframe_timeout_ms = 5000")
        report, log = self.end(run, None), run.log_text(200)
        dead_letters = [dead_letter["ring_sequence"] for dead_letter in report["dead_letters"]]
        require(dead_letters == [30], f"dead letters {dead_letters}, expected of frame 30 alone\n{log}")
        restarts = {s["name"]: s["restarts"] for s in report["stages"]}
        require(restarts["source"] == restarts["sink"] == 0, f"others were hit: {restarts}\n{log}")
        require(any(s in log for s in sentences), f"expected one of {sentences}\n{log}")
        return "frame 30 alone, others untouched: " + next(s for s in sentences if s in log)

    # --- the parts ---------------------------------------------------------------------------------------------------------------
    def pointers(self):
        return self.copies("pointers")

    def copy_from(self):
        return self.copies("copy_from")

    def streams(self):
        self.needs_gpu("there are no streams on the CPU")
        return ", ".join(f"{way}: {self.copies(way)}" for way in ("named", "silent"))

    def older(self):
        self.needs_gpu("there are no streams on the CPU")
        with variables(CAROUSEL_TEST_NO_CONTEXT_EVENTS="1"):
            run = self.start(self.acts("silent"), self.a.frames)
            got = self.end(run)["image_hash"]
        require("can't report work on all streams" in run.log_text(200), "the log doesn't say that each frame waits")
        require(got == self.reference(self.a.frames), "another hash than the same stage in C++ has")
        return f"{self.a.frames} frames, the hash of C++; the log says that each waits for the GPU"

    def far(self):
        with variables(CAROUSEL_TEST_PEER_RINGS="1"):
            run = self.start(self.acts("eager"), 2 * self.a.frames, size=(1920, 1080))
            got, log = self.end(run)["image_hash"], run.log_text(400)
        require(not re.search(r"middle\s*\| .*rings on another GPU are reached", log), f"copies were tried\n{log}")
        require(log.count("rings on another GPU are reached") > 0 or self.a.frames < 200, f"the stages in C++ did not choose\n{log}")
        require(got == self.reference(2 * self.a.frames, (1920, 1080)), "another hash than the same stage in C++ has")
        return f"{2 * self.a.frames} frames, the hash of C++, no copy"

    def waits(self):
        self.needs_gpu("there is no GPU to wait for")
        counter, cupti = os.path.join(self.a.programs, "tests/stages/python/libcarousel_count_waits.so"), counted_waits.find_cupti()
        if not os.path.exists(counter) or cupti is None:
            raise Skipped(f"{counter} is not built (ninja carousel_count_waits)" if cupti else "no libcupti.so (COUNT_WAITS_CUPTI names one)")
        with variables(CUDA_INJECTION64_PATH=counter, COUNT_WAITS_TO=os.path.join(self.folder, "calls"), COUNT_WAITS_CUPTI=cupti):
            return "; ".join(f"{act}: {self.waits_of(act)}" for act in ("copy", "silent"))

    def waits_of(self, act):
        run = self.start(self.acts(act, "standby = false"))
        of = lambda: {s["name"]: s for s in run.ps()["stages"]}   # noqa: E731
        counted = os.path.join(self.folder, f"calls.{of()['middle']['pid']}")

        def seen(frames):
            until(lambda: os.path.exists(counted) and of()["middle"]["frames"] >= frames, f"frame {frames}\n{run.log_text(40)}")
            time.sleep(0.5)   # the counts are written every 0.2 s
            with open(counted, encoding="utf-8") as text:
                return of()["middle"]["frames"], text.read()
        first, before = seen(200)
        last, after = seen(first + self.a.frames)
        run.end(60)
        self.end(run)
        calls = counted_waits.calls_between(before, after)
        work = sum(calls[name] for name in ("cuLaunchKernel", "cuMemcpyAsync", "cuCtxRecordEvent", "cuStreamWaitEvent"))
        require(work > 0, f"no call at all was seen: {calls}\n{run.log_text(40)}")
        require(calls["cuCtxSynchronize"] == calls["cuStreamSynchronize"] == 0, f"over {last - first} frames: {calls}")
        return f"over {last - first} frames " + ", ".join(f"{name} {count}" for name, count in calls.items())

    def input(self):
        return self.one_frame("input", "a write into its input ring source, frame 30", "read-only", "illegal memory access",
                              "illegal address", "invalid permission")

    def keep(self):
        return self.one_frame("keep", 'an array of plane "color" of frame 30 outlives process()')

    def host(self):
        self.needs_gpu("the output lies on the CPU itself")
        return self.one_frame("host", f'plane "color" is on {self.a.device}, the array on cpu')

    def fork(self):
        return (self.stage("source", "carousel-test-copy") + self.stage("middle", "two.py", ["source"], f'library = "{self.library}"')
                + self.sink("middle") + self.sink("middle.turned", "turned"))

    def sampling_pipeline(self):
        sampled_stage = self.stage("beside", "carousel-test-copy") + self.sink("beside", "other")
        return (self.stage("source", "carousel-test-copy") + sampled_stage + self.stage("middle", "sampling.py", ["source"], 'sampled = ["beside"]')
                + self.sink("middle"))

    def watch(self, run, ring, turned, count=20):
        """Reads frames of a ring by plane.cpu(): each has one value everywhere, the expected one."""
        with run.open() as view:
            newest = view.latest(ring)
            for _ in range(count):
                frame = newest.next(60)   # under load frames are gone before this thread wakes up, for seconds at a time
                value = (frame.frame_number * 7 + 1) % 256
                picture = numpy.asarray(frame["color"].cpu())
                require((picture == (255 - value if turned else value)).all(), f"{frame!r} of {ring} is another picture")

    def outputs(self):
        run = self.start(self.fork(), keys="fps = 100")
        for ring, turned in (("middle", False), ("middle.turned", True)):
            self.watch(run, ring, turned)
        run.end(60)
        return f"{self.end(run)['frames']} frames, both rings looked at"

    def used(self):
        run = self.start(self.stage("source", "carousel-test-copy") + self.stage("middle", "used.py", ["source"], f'library = "{self.library}"')
                         + self.sink("middle"), keys="fps = 100")
        with run.open() as view:
            newest = view.latest("middle")
            for _ in range(30):
                frame = newest.next(60)
                rows = numpy.asarray(frame["list"].cpu())
                require(rows.shape == (frame.frame_number % 65, 4), f"{frame!r}: {rows.shape}")
                require((rows == frame.frame_number).all(), f"{frame!r}: {rows}")
        run.end(60)
        return f"30 of {self.end(run)['frames']} frames had as many rows as they must have"

    def latest(self):
        report = self.end(self.start(self.sampling_pipeline(), self.a.frames))
        return f"{report['frames']} frames, each frame aside was whole"

    def newest(self):
        run = self.start(self.acts("copy"), keys="fps = 100")
        self.watch(run, "middle", False, 50)
        run.end(60)
        return f"50 of {self.end(run)['frames']} frames were the ones that they must be"

    def program(self, run, what, number=0, of="port_any.py"):
        output = os.path.join(self.folder, f"{what}{number}")
        with open(output, "w", encoding="utf-8") as out:
            process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, of), what, run.name,
                                        "camera" if what == "write" else "analysis", self.library], stdout=out, stderr=subprocess.STDOUT)
        process.output = lambda: open(output, encoding="utf-8").read()
        return process

    def ports(self, kills=0):
        run = self.start(PORTS, None if kills else self.a.frames, "supervisor_grace_s = 20")
        at = {what: self.program(run, what) for what in ("read", "write")}
        try:
            for k in range(kills):
                what = ("read", "write")[k % 2]
                until(lambda: at[what].output().count("frame ") > 2 or at[what].poll() is not None, f"a frame of {what}: {at[what].output()[-500:]}")
                at[what].kill()
                require(at[what].wait() == -9, f"{what} ended by itself: {at[what].output()[-800:]}")
                at[what] = self.program(run, what, k + 1)
            if kills:
                until(lambda: all(p.output().count("frame ") > 2 for p in at.values()), "frames behind the last kill")
                run.end(60)
            report = self.end(run, None)
            ends = {what: p.wait(30) for what, p in at.items()}
            require(set(ends.values()) == {0}, f"{ends}")
        except AssertionError as wrong:
            raise AssertionError(f"{wrong}\n" + "\n".join(f"{what} said: {p.output()[-800:]}" for what, p in at.items())) from None
        finally:
            for each in at.values():
                if each.poll() is None:
                    each.kill()
        return f"{report['frames']} frames" + (f", {kills} kills: lost 0, repeated 0, torn 0" if kills else "")

    def kept(self):
        run = self.start(PORTS, self.a.frames)
        at = {what: self.program(run, what, of="port_kept.py") for what in ("read", "write")}
        try:
            report = self.end(run, None)
            ends = {what: p.wait(30) for what, p in at.items()}
            output = "\n".join(f"{what} said: {p.output()[-1500:]}" for what, p in at.items())
            require(set(ends.values()) == {0} and output.count(f"ended, {self.a.frames} frames") == 2, f"{ends}\n{output}")
        finally:
            for each in at.values():
                if each.poll() is None:
                    each.kill()
        return f"{report['frames']} frames"

    def two_gpus(self):
        if self.gpu and (seen := len(glob.glob("/dev/nvidia[0-9]*"))) < 2:
            raise Skipped(f"{seen} GPU here, it takes two")
        with_end = PORTS.replace('run = "port"\noutput', 'run = "port"\nends = true\noutput')
        runs = [self.start(with_end, device=f"cuda:{k}" if self.gpu else "cpu", name=str(k)) for k in range(2)]
        p = subprocess.run([sys.executable, "-B", os.path.join(HERE, "port_two_gpus.py"), *(r.name for r in runs), self.library, str(self.a.frames)],
                           capture_output=True, text=True, timeout=180, check=False)
        require(p.returncode == 0, f"exit code {p.returncode}\n{p.stdout[-800:]}{p.stderr[-1500:]}")
        require([self.end(r)["frames"] for r in runs] == 2 * [self.a.frames], "other frames than were written")
        return p.stdout.strip() + " between two GPUs by one thread"

    def kills_of(self, stages):
        """In --jobs runs at once, each with its share of the kills."""
        share = [self.a.kills // self.a.jobs + (k < self.a.kills % self.a.jobs) for k in range(self.a.jobs)]
        with concurrent.futures.ThreadPoolExecutor(self.a.jobs) as pool:
            return f"{sum(pool.map(self.killed, range(self.a.jobs), share, itertools.repeat(stages)))} frames"

    def killed(self, job, kills, stages):
        """The number of frames that that run delivered."""
        run = self.start(stages, keys=f"fps = {self.a.fps}", name=f"{job}")
        of = lambda: next(s for s in run.ps()["stages"] if s["name"] == "middle")   # noqa: E731
        for k in range(kills):
            began = of()["commits"] or 0
            until(lambda: (now := of())["state"] == "running" and (now["commits"] or 0) >= began + 3 and now["standby"] == "ready",
                  f"frames, and a standby to take over\n{run.log_text(40)}")
            time.sleep(0.01 * (k % 5))
            before = of()["restarts"]
            run.kill("middle")
            until(lambda: of()["restarts"] > before, f"a restart\n{run.log_text(40)}")
        until(lambda: of()["state"] == "running", "the stage at work")
        run.end(60)
        report = self.end(run, None)
        if not report.get("not_comparable"):
            undisturbed = self.end(self.start(stages, report["frames"], name=f"{job}"))["image_hash"]
            require(report["image_hash"] == undisturbed, f"{report['frames']} frames have another hash than those of a fault-free run")
        return report["frames"]

    def kills(self):
        makers = {"copy": lambda: self.acts("copy"), "outputs": self.fork, "aside": self.sampling_pipeline, "stream": lambda: self.acts("silent")}
        details = []
        for kind in self.a.kinds.split(","):
            if kind == "ports":
                details.append(f"ports: {self.ports(self.a.kills)}")
            elif kind != "stream" or self.gpu:
                details.append(f"{kind}: {self.kills_of(makers[kind]())}")
        return f"{self.a.kills} of each, lost 0, repeated 0, torn 0; " + ", ".join(details)


PARTS = ("pointers", "copy_from", "streams", "older", "far", "waits", "input", "keep", "host", "outputs", "used", "latest", "newest", "ports", "kept", "two_gpus", "kills")
KINDS = ("copy", "outputs", "aside", "stream", "ports")   # targets of the kills: stages of these kinds, programs at ports


def libraries(device):
    """The libraries that are installed, and why the others are not."""
    if device == "cpu":
        return ["numpy"], []
    there, why = [], []
    for name in ("torch", "cupy"):
        if importlib.util.find_spec(name) is None:
            why.append(f"{name} is not installed")
            continue
        try:
            module = importlib.import_module(name)
            count = module.cuda.device_count() if name == "torch" else module.cuda.runtime.getDeviceCount()
            (there if count > 0 else why).append(name if count > 0 else f"{name} sees no GPU")
        except Exception as failed:   # any error of a framework on a machine without a driver
            why.append(f"{name}: {str(failed).splitlines()[0]}")
    return there, why


def main():
    there, why = libraries(ARGS.device)
    there = [name for name in there if name in ARGS.libraries.split(",")]
    if not there:
        print("no part can run here: " + "; ".join(why))
        return 77
    for each in why:
        print(f"left out: {each}")
    rows, failed = [], 0
    for part in ARGS.parts.split(","):
        for library in there:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                rig = Rig(ARGS, library, folder)
                try:
                    verdict, details = "passed", getattr(rig, part)()
                except Skipped as reason:
                    verdict, details = "skipped", str(reason)
                except Exception as wrong:   # the other parts still run
                    verdict, details, failed = "FAILED", f"{type(wrong).__name__}: {wrong}", failed + 1
                for run in rig.runs:
                    run.end()
            rows.append((part, library, verdict, time.monotonic() - began, details))
            print(f"{part} with {library}: {verdict}: {details}", flush=True)
    print(f"\n{'part':10} {'library':8} {'':8} {'s':>6}  on {ARGS.device}")
    for part, library, verdict, took, details in rows:
        print(f"{part:10} {library:8} {verdict:8} {took:6.1f}  {details.splitlines()[0]}")
    return 1 if failed else 0


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("programs", type=os.path.abspath)
    words.add_argument("--parts", default=",".join(PARTS)), words.add_argument("--device", default="cuda:0")
    words.add_argument("--kinds", default=",".join(KINDS)), words.add_argument("--libraries", default="numpy,torch,cupy")
    words.add_argument("--kills", type=int, default=10), words.add_argument("--frames", type=int, default=200)
    words.add_argument("--jobs", type=int, default=1, help="runs at once whose stages are killed, each with its share of the kills")
    words.add_argument("--fps", type=float, default=100, help="of the runs whose stages are killed; 0: as fast as they go")
    ARGS = words.parse_args()
    for details, there in ((ARGS.parts, PARTS), (ARGS.kinds, KINDS), (ARGS.libraries, ("numpy", "torch", "cupy"))):
        if unknown := set(details.split(",")) - set(there):
            words.error(f"no such part, kind or library: {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    interpreter.use(ARGS.programs)
    import carousel
    import numpy
    sys.exit(main())
