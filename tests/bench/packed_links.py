"""The effect of compression on a link that is the bottleneck: rendered pictures through two network
namespaces whose link is slowed down by tc.
Usage: packed_links.py FOLDER_OF_PROGRAMS [--rate 1gbit] [--size WxH] [--frames N] [--rounds N]
The pictures are recorded first, and played as fast as the link takes them. MB are 10^6 bytes of pictures, for
any number of bytes on the link."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stages", "hosts"))
from link_pair import END, Host, Pair  # noqa: E402
from namespaces import B_ADDRESS, Namespaces, call  # noqa: E402
from processes import skip  # noqa: E402

HEAD = '[pipeline]\nname = "{name}"\nsize = [{width}, {height}]\n'
REPLAY = '\n[[stage]]\nname = "replay"\nrun = "carousel-replay"\nfile = "{file}"\nloop = true\n'
SEND = '\n[[stage]]\nname = "send"\nrun = "carousel-send"\ninputs = ["replay"]\nin_flight = 4\ncompress = "{how}"\n'
RECEIVE = '\n[[stage]]\nname = "receive"\nrun = "carousel-receive"\nin_flight = 4\n'
DISPLAY = '\n[[stage]]\nname = "display"\nrun = "carousel-display"\ninputs = ["receive"]\nout = ""\n'


def record(pair, size, file):
    demo = os.path.join(HERE, "..", "..", "pipelines", "demo.toml")
    done = subprocess.run([pair.carousel, "run", demo, "--device", "cpu", "--size", size, "--frames", "24", "--out", "", "--name", "recorded",
                           "--record", "fragment", "--record-to", file, "--no-color"], env=pair.environment, cwd=pair.folder,
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)


def through(pair, net, a, how, file):
    """Returns (frames/s, share of the bytes that crossed the link)."""
    width, height = a.size.split("x")
    where = {"address": B_ADDRESS, "port": 47100, "token": "link.token", "width": width, "height": height}
    ends = []
    for name, text, inside, options in (
            ("b", HEAD + RECEIVE + END + DISPLAY, net.inside(net.b), []),
            ("a", HEAD + REPLAY + SEND + END, net.inside(net.a), ["--frames", str(a.frames)])):
        ends.append(Host(pair, name, text.format(name=name, file=file, how=how, **where), options, inside).start())
    pair.b, pair.a = ends
    if [pair.a.wait(300), pair.b.wait(60)] != [0, 0]:
        raise SystemExit(pair.a.text() + pair.b.text())
    report = pair.b.report()
    link = next(s for s in report["stages"] if s["name"] == "receive")["link"]
    return report["frames_per_second"], link["bytes_on_the_way"] / link["bytes"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs")
    p.add_argument("--rate", default="1gbit")
    p.add_argument("--size", default="1280x720")
    p.add_argument("--frames", type=int, default=150)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    if not shutil.which("tc"):
        skip("no tc here")
    net = Namespaces()
    pair = Pair(a.programs)
    try:
        for name, device in ((net.a, "la"), (net.b, "lb")):
            slowed = call("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", a.rate, "burst", "256kb", "latency",
                          "50ms")
            if slowed.returncode != 0:
                skip("tc takes no limit here: " + slowed.stderr.strip())
        file = os.path.join(pair.folder, "pictures.mcap")
        record(pair, a.size, file)
        width, height = (int(n) for n in a.size.split("x"))
        megabytes = 4 * width * height / 1e6
        got = {"none": [], "lz4": [], "zstd": []}
        for _ in range(a.rounds):
            for how, all_of in got.items():
                all_of.append(through(pair, net, a, how, file))
        for how, all_of in got.items():
            rates = [rate for rate, _ in all_of]
            print(f"{how:5} {statistics.median(rates):6.1f} frames/s ({', '.join(f'{r:.1f}' for r in rates)}), "
                  f"{statistics.median(rates) * megabytes:5.0f} MB/s of pictures, {all_of[0][1]:.3f} of the bytes crossed the link")
    finally:
        pair.end()
        net.end()


if __name__ == "__main__":
    main()
