"""The cost of a link: CPU time of its two stages, and the time of a hop."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from processes import wait_for  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def ticks_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError):
        return 0


def cpu_until_sent(pair):
    """CPU seconds of the processes send and receive, until A's run has ended. No process is killed meanwhile."""
    pids, cpu = {}, {"send": 0, "receive": 0}
    while pair.a.process.poll() is None:
        for host, name in ((pair.a, "send"), (pair.b, "receive")):
            if not pids.get(name):
                pids[name] = host.stage(name).get("pid")
            if pids[name]:
                cpu[name] = max(cpu[name], ticks_of(pids[name]))
        time.sleep(0.1)
    return {name: ticks / TICK for name, ticks in cpu.items()}


def hops_of(pair, count, rate):
    """The hops of this many frames in ms, sorted, of a pair that isn't started, and whose frames come at that rate. The connection's first
    second is not among them: clocks are queried then, and buffers are new."""
    trace = os.path.join(pair.folder, "trace.json")
    pair.b.start()
    pair.a.start()
    wait_for("the link is up", lambda: "is up after" in pair.a.text())
    time.sleep(1)
    done = subprocess.run([pair.carousel, "trace", trace, "-p", "a", "--frames", str(count)], env=pair.environment, capture_output=True, text=True,
                          timeout=60 + count / rate, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    with open(trace, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    send = next(e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["args"]["name"] == "send")
    return sorted(e["dur"] / 1000 for e in events if e["ph"] == "X" and e["pid"] == send and e["cat"] == "frame")


def part(ordered, percent):
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
