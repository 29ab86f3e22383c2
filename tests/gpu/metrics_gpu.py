"""The GPU memory in a run's metrics is that of nvidia-smi: metrics_gpu.py BUILD

The demo on cuda:0; with two GPUs, two instances of fragment on one each. Exit code 77 with the reason: no GPU, or nvidia-smi names no
process (another pid namespace)."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import end_process, require_gpu, skip, wait_for  # noqa: E402

DEMO = os.path.join(HERE, "..", "..", "pipelines", "demo.toml")
SAMPLE = re.compile(r'^carousel_stage_gpu_memory_bytes\{(.*)\} (\S+)$', re.M)
NEARLY = 4 << 20   # nvidia-smi rounds to MiB, and a driver may allocate between two samples


def smi(*words):
    return subprocess.run(["nvidia-smi", *words], capture_output=True, text=True, check=True).stdout


def by_pid():
    """Bytes on all GPUs by process, as nvidia-smi reports them."""
    used = {}
    for pid, mib in re.findall(r"^(\d+), (\d+)$", smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"), re.M):
        used[int(pid)] = used.get(int(pid), 0) + (int(mib) << 20)
    return used


def scraped(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except (OSError, urllib.error.URLError):
        return {}
    found = {}
    for labels, value in SAMPLE.findall(text):
        of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found[of["stage"], of["stage_instance"]] = float(value)
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    require_gpu("cuda:0")
    gpus, port = smi("-L").count("GPU "), free_port()
    carousel = os.path.join(os.path.abspath(sys.argv[1]), "carousel")
    with tempfile.TemporaryDirectory(prefix="carousel-metrics-gpu-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        words = [carousel, "run", DEMO, "--device", "cuda:0", "--size", "1280x720", "--fps", "60", "--name", "gpu", "--out", "", "--http",
                 f"127.0.0.1:{port}", "--no-color"]
        if gpus > 1:
            words += ["--set", "fragment.instances=2", "--set", 'fragment.device=["cuda:0","cuda:1"]']
        run = subprocess.Popen(words, cwd=folder, env=environment)
        try:
            stages = 5 if gpus > 1 else 4
            wait_for("GPU memory of all stages", lambda: len(scraped(port)) == stages, 60)
            time.sleep(4)   # memory does not grow any more
            metrics, used = scraped(port), by_pid()
            rows = json.loads(subprocess.run([carousel, "ps", "-p", "gpu", "--json"], env=environment, capture_output=True, text=True,
                                             check=True).stdout)["stages"]
        finally:
            end_process(run)
    compared = 0
    for row in rows:
        key = (row["name"], str(row["instance"]))
        if row["pid"] not in used:
            continue
        compared += 1
        print(f"{row['name']} on {row.get('device')}, pid {row['pid']}: {metrics[key]:.0f} bytes, by nvidia-smi {used[row['pid']]}", flush=True)
        assert abs(metrics[key] - used[row["pid"]]) <= NEARLY, "the metric differs from nvidia-smi"
    if compared == 0:
        skip("nvidia-smi names no process of the run (another pid namespace)")
    assert compared == stages, f"{compared} of {stages} processes"
    print(f"{compared} processes on {min(gpus, 2)} GPUs: equal")


if __name__ == "__main__":
    main()
