"""All that spaces have to show on a GPU, within --seconds: spaces_session.py BUILD [--device cuda:0] [--seconds 540] [--steps a,b]
[--kills 200] [--attaches 10000] [--held 60] [--log FILE]

Steps: settings (clients under other environments and limits: each works, or is refused in one sentence), kills (of torch clients in time
slices, in rounds by seed), mps (the same in an MPS domain), holds (a block is kept while neighbours are killed), attaches, costs. A step that
the time does not allow is reported as such. A short table is last; --log gets the output of all steps. Exit code 1: a step failed; 77: no
GPU here. --device cpu: a dry run without a GPU, with NumPy if there is no torch."""
import argparse
import contextlib
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "stages", "python")]
import interpreter  # noqa: E402
import seccomp  # noqa: E402

ROUND = 50   # kills per seed
LIMITS = {"settings": 150, "kills": 60, "mps": 60, "holds": 110, "attaches": 150, "costs": 100}   # seconds; of kills, per round
# Prints how long the first kernel took from the import on, and what happened.
CLIENT = """
import sys, time
begin = time.monotonic()
import carousel
name, device, library = sys.argv[1], sys.argv[2], sys.argv[3]
try:
    space = carousel.Space(name, wait=20, device=None if device == "cpu" else int(device))
    with space.pool("p").allocate(65536, 5) as block:
        array = block.tensor() if library == "torch" else block.array()
        array[:] = 7
        assert int((array == 7).sum()) == block.nbytes
        del array
except carousel.Error as failure:
    print(f"refused: {failure}")
else:
    print(f"works, {time.monotonic() - begin:.1f} s after the start")
"""


class Session:
    def __init__(self, a):
        self.a, self.rows, self.begin = a, [], time.monotonic()
        self.library = "torch" if importlib.util.find_spec("torch") else "numpy"
        self.log = open(a.log or os.devnull, "w", encoding="utf-8")

    def left(self):
        return self.a.seconds - (time.monotonic() - self.begin)

    def note(self, step, result, begin, text):
        self.rows.append((step, result, f"{time.monotonic() - begin:.0f}", " ".join(text.split())))
        print(*self.rows[-1], flush=True)

    def call(self, limit, script, *words, **environment):
        """(exit code, output) of a script of this folder; the code is 124 if it was ended at its limit."""
        command = [sys.executable, "-B", os.path.join(HERE, script), self.a.build, "--device", self.a.device, *map(str, words)]
        limit = max(1.0, min(limit, self.left()))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}) as process:
            try:
                output, code = process.communicate(timeout=limit)[0], process.returncode
            except subprocess.TimeoutExpired:
                process.terminate()   # its clients end with its pipes
                try:
                    output = process.communicate(timeout=10)[0]
                except subprocess.TimeoutExpired:
                    process.kill()
                    output = process.communicate()[0]
                code = 124
        self.log.write(f"=== {' '.join(command)}\n{output}\n--- {code}\n")
        self.log.flush()
        return code, output

    @staticmethod
    def result(code, output):
        rows = re.findall(r"^\| (?:torch|cupy|numpy) \| \w+ \| \w+ \| (.*) \|$", output, re.M)
        text = "; ".join(rows) or (output.strip().splitlines() or [""])[-1][-300:]
        return {0: "passed", 77: "skipped", 124: "NOT IN TIME"}.get(code, "FAILED"), text

    def part(self, name, *words, limit=None):
        begin = time.monotonic()
        code, output = self.call(limit or LIMITS[name], "spaces_gpu.py", "--parts", name, "--libraries", self.library, *words)
        result, text = self.result(code, output)
        self.note(name, result, begin, text)

    def kills(self, step="kills", **environment):
        begin, done, texts = time.monotonic(), 0, []
        for number in range(1, 1 + -(-self.a.kills // ROUND)):
            code, output = self.call(LIMITS[step], "spaces_gpu.py", "--parts", "kills", "--libraries", self.library, "--fork", "--kills",
                                     min(ROUND, self.a.kills), "--seconds", LIMITS[step] - 15, CAROUSEL_TEST_SEED=str(number), **environment)
            result, text = self.result(code, output)
            killed = re.search(r"(\d+) kills \(", text)
            done += int(killed[1]) if killed and result == "passed" else 0
            median = re.search(r"([\d.]+) ms after the kill", text)
            texts.append(f"seed {number}: {median[1]} ms" if median and result == "passed" else f"seed {number}: {result} {text}")
            if self.left() < 5:
                break
        passed = done >= self.a.kills and not any("FAILED" in text or "NOT IN" in text for text in texts)
        self.note(step, "passed" if passed else "FAILED", begin, f"{done} kills, reported after (median) " + ", ".join(texts))

    def mps(self):
        if self.a.device == "cpu" or not shutil.which("nvidia-cuda-mps-control"):
            self.note("mps", "skipped", time.monotonic(), "there is no GPU, or no nvidia-cuda-mps-control")
            return
        with tempfile.TemporaryDirectory(prefix="carousel-mps-") as folder:
            there = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **there}, check=True, timeout=20)
            try:
                self.kills("mps", **there)
            finally:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 5\n", text=True, env={**os.environ, **there}, check=False, timeout=20)

    def settings(self):
        name, gpu = f"session-{os.getpid()}", self.a.device.removeprefix("cuda:")
        holder = ["hold", name, "--size", "16M"] + ([] if gpu == "cpu" else ["--device", self.a.device, "--device-size", "64M"])
        with subprocess.Popen([os.path.join(self.a.build, "carousel"), *holder], stdout=subprocess.PIPE, text=True) as process:
            try:
                if not process.stdout.readline():
                    raise RuntimeError("carousel hold failed")
                kind = "'cpu'" if gpu == "cpu" else "'cuda'"
                self.client(f"import carousel, sys; carousel.Space(sys.argv[1], device={None if gpu == 'cpu' else gpu})"
                            f".pool('p', 1 << 20, device={kind})", name)
                for what, expected, device, environment, limit in self.variants(gpu):
                    begin = time.monotonic()
                    output = self.client(CLIENT, name, device, self.library, environment=environment, limit=limit)
                    fits = output.startswith(expected) and output.count("\n") == 1
                    self.note(f"settings: {what}", "passed" if fits else "FAILED", begin, output)
            finally:
                process.terminate()
                process.wait(20)

    def client(self, text, *words, environment=None, limit=None):
        done = subprocess.run([sys.executable, "-B", "-c", text, *words], capture_output=True, text=True, preexec_fn=limit, check=False, timeout=60,
                              env={**os.environ, "PYTHONPATH": os.path.join(self.a.build, "python"), **(environment or {})})
        self.log.write(f"=== a client with {environment}\n{done.stdout}{done.stderr}\n--- {done.returncode}\n")
        return done.stdout + (done.stderr if done.returncode else "")

    def variants(self, gpu):
        """(what, the beginning of the answer, the client's device, environment, preexec_fn)."""
        def locked():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        both = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        yield "none", "works", gpu, {}, None
        yield "expandable_segments", "works", gpu, both, None
        yield "without pidfd_getfd", "works", gpu, {}, lambda: seccomp.refuse(seccomp.PIDFD_GETFD)
        yield "ulimit -l 64", "works", gpu, {}, locked
        if gpu == "cpu":
            return
        yield "CUDA_MODULE_LOADING=LAZY", "works", gpu, {"CUDA_MODULE_LOADING": "LAZY"}, None
        ids = re.findall(r"UUID: (GPU-[0-9a-f-]+)", subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout)
        if len(ids) > int(gpu):
            for what, text in ("UUID", ids[int(gpu)]), ("prefix of a UUID", ids[int(gpu)][:12]):
                yield f"CUDA_VISIBLE_DEVICES: {what}", "works", "0", {"CUDA_VISIBLE_DEVICES": text}, None
        if len(ids) > 1:
            order = ",".join(map(str, reversed(range(len(ids)))))
            place = len(ids) - 1 - int(gpu)
            yield f"CUDA_VISIBLE_DEVICES={order}, its GPU", "works", str(place), {"CUDA_VISIBLE_DEVICES": order}, None
            # Another GPU may map the memory by peer access; otherwise it is refused.
            yield f"CUDA_VISIBLE_DEVICES={order}, another", ("works", "refused"), str(0 if place else 1), {"CUDA_VISIBLE_DEVICES": order}, None
        yield "CUDA_VISIBLE_DEVICES: none", "refused", "0", {"CUDA_VISIBLE_DEVICES": ""}, None

    def costs(self):
        begin = time.monotonic()
        code, output = self.call(LIMITS["costs"], "space_costs.py")
        rows = re.findall(r"^\| ([\w ]+) \| ([\w. ]+) \| ([^|]*) \|$", output, re.M)
        self.note("costs", self.result(code, output)[0], begin, "; ".join(f"{what}, {way}: {us}" for what, way, us in rows) or output[-300:])

    def run(self):
        steps = {"settings": self.settings, "kills": self.kills, "mps": self.mps, "holds": lambda: self.part("holds", "--held", self.a.held, "--fork"),
                 "attaches": lambda: self.part("attaches", "--attaches", self.a.attaches), "costs": self.costs}
        for step in self.a.steps.split(","):
            begin = time.monotonic()
            if self.left() < 10:
                self.note(step, "NOT IN TIME", begin, f"--seconds {self.a.seconds:.0f} are over")
                continue
            try:
                steps[step]()
            except Exception as failure:   # the next step may still pass
                self.note(step, "FAILED", begin, f"{type(failure).__name__}: {failure}")
        print(f"\n| step, {self.library} on {self.a.device} | result | s | |\n|---|---|---|---|")
        for row in self.rows:
            print("|", " | ".join(row), "|")
        print(f"{time.monotonic() - self.begin:.0f} s of {self.a.seconds:.0f} s")
        return 0 if all(row[1] in ("passed", "skipped") for row in self.rows) else 1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("--device", default="cuda:0"), p.add_argument("--seconds", type=float, default=540)
    p.add_argument("--steps", default=",".join(LIMITS)), p.add_argument("--kills", type=int, default=200)
    p.add_argument("--attaches", type=int, default=10000), p.add_argument("--held", type=float, default=60), p.add_argument("--log")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    if a.device != "cpu" and not os.path.exists("/dev/nvidiactl"):
        print("no GPU here: skipped")
        return 77
    return Session(a).run()


if __name__ == "__main__":
    interpreter.use(sys.argv[1] if len(sys.argv) > 1 else ".")
    sys.exit(main())
