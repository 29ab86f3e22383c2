#!/usr/bin/env python3
"""carousel-encode to receivers of other projects, with kills: MPEG-TS over UDP and a pipe to ffmpeg, RTSP to a server of GStreamer.
The receivers must get pictures before and after each kill; the run must deliver each frame once.
Usage: encode_network.py FOLDER_OF_PROGRAMS [--only udp|pipe|paused|rtsp|refused] [--kills 5]"""
import argparse
import concurrent.futures
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import encoded  # noqa: E402

FPS = 30
SPACING = 30
# A server to which clients may push a stream (RECORD). It prints a line per 10 decoded buffers of a stream.
RTSP_SERVER = r"""
import sys
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer
Gst.init(None)
count = 0
def probe(pad, info):
    global count
    count += 1
    print("decoded", count, flush=True)
    return Gst.PadProbeReturn.OK
def configure(factory, media):
    print("session", flush=True)
    media.get_element().get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, probe)
server = GstRtspServer.RTSPServer(service=sys.argv[1])
factory = GstRtspServer.RTSPMediaFactory()
factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
factory.set_launch("( rtph264depay name=depay0 ! h264parse ! avdec_h264 ! fakesink name=out sync=false async=false )")
factory.connect("media-configure", configure)
server.get_mount_points().add_factory("/live", factory)
server.attach(None)
print("ready", flush=True)
GLib.timeout_add_seconds(300, sys.exit)
GLib.MainLoop().run()
"""


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def frames_decoded(log):
    found = re.findall(r"frame=\s*(\d+)", log)
    return int(found[-1]) if found else 0


def verdict(name, frames, received, kills, least):
    ok = received >= least
    print(f"{name:8} {kills} kills, {frames} frames sent once by the run, {received} decoded by the receiver (at least {least}): {'ok' if ok else 'too few'}",
          flush=True)
    return ok


def udp(programs, kills):
    port, frames = free_port(socket.SOCK_DGRAM), 150 + 2 * kills * SPACING
    receiver = subprocess.Popen(["ffmpeg", "-nostdin", "-v", "error", "-stats", "-i", f"udp://127.0.0.1:{port}?timeout=5000000&fifo_size=100000", "-fps_mode",
                                 "passthrough", "-f", "null", "-"], stderr=subprocess.PIPE, text=True)
    with encoded.Run(programs, {"encode": f'url = "udp://127.0.0.1:{port}"\ngop = 15'}, frames, fps=FPS) as run:
        killed = run.kill("encode", kills, SPACING)
        run.finish()
        assert "at least once" in run.log(), run.log()
    _, log = receiver.communicate(timeout=60)
    # Datagrams may be lost, and the receiver needs a second to find the stream.
    return verdict("udp", frames, frames_decoded(log), killed, frames - 60 - 15 * kills) and killed == kills


def pipe(programs, kills):
    frames = 150 + 2 * kills * SPACING
    receiver = subprocess.Popen(["ffmpeg", "-nostdin", "-v", "error", "-stats", "-f", "mpegts", "-i", "pipe:0", "-fps_mode", "passthrough", "-f", "null", "-"],
                                stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with encoded.Run(programs, {"encode": 'url = "pipe:1"\ngop = 15'}, frames, fps=FPS, stdout=receiver.stdin) as run:
        receiver.stdin.close()
        receiver.stdin = None
        killed = run.kill("encode", kills, SPACING)
        run.finish()
    _, log = receiver.communicate(timeout=60)
    return verdict("pipe", frames, frames_decoded(log), killed, frames - kills) and killed == kills


def paused(programs, _kills):
    """A reader that pauses for longer than frame_timeout_ms (2 s) and less than timeout_s gets every byte, and no process is ended."""
    inner, outer = os.pipe()

    def read():
        total = 0
        while data := os.read(inner, 65536):
            if total < 200_000 <= total + len(data):
                time.sleep(5)
            total += len(data)
        return total

    with concurrent.futures.ThreadPoolExecutor(1) as pool, os.fdopen(outer, "wb") as to:
        taken = pool.submit(read)
        with encoded.Run(programs, {"encode": 'url = "pipe:1"\nquality = 0\npixel_format = "yuv444p"'}, 150, size=(640, 360), fps=FPS, stdout=to) as run:
            to.close()
            restarts = {s["name"]: s["restarts"] for s in run.finish()["stages"]}
        total = taken.result(30)
    os.close(inner)
    ok = total > 400_000 and not any(restarts.values())
    print(f"paused   {total} bytes after a pause of 5 s, restarts {restarts}: {'ok' if ok else 'too few bytes, or restarts'}", flush=True)
    return ok


def rtsp(programs, kills):
    python = "/usr/bin/python3"
    there = subprocess.run([python, "-c", "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"],
                           stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not there:
        print("rtsp     skipped: GStreamer's RTSP server is not there (apt-get install gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-libav)")
        return True
    port, frames = free_port(socket.SOCK_STREAM), 150 + 2 * kills * SPACING
    with tempfile.TemporaryFile("w+") as out:
        server = subprocess.Popen([python, "-c", RTSP_SERVER, str(port)], stdout=out)
        try:
            with encoded.Run(programs, {"encode": f'url = "rtsp://127.0.0.1:{port}/live"\ngop = 15'}, frames, fps=FPS) as run:
                killed = run.kill("encode", kills, SPACING)
                run.finish()
            time.sleep(0.5)
        finally:
            server.kill()
            server.wait()
        out.seek(0)
        lines = out.read().splitlines()
    sessions = lines.count("session")
    print(f"rtsp     {sessions} sessions")
    return verdict("rtsp", frames, sum(x.startswith("decoded") for x in lines), killed, frames - 15 * (kills + 1)) and killed == kills and sessions == kills + 1


def refused(programs, _kills):
    """No receiver: the run must not hang, and the log must name the cause. A receiver that starts late is found."""
    port = free_port(socket.SOCK_STREAM)
    with encoded.Run(programs, {"encode": f'url = "tcp://127.0.0.1:{port}"\ntimeout_s = 0.5'}, 30, fps=FPS) as run:
        code = run.process.wait(120)
        log = run.log()
    ok = code == 1 and "Connection refused" in log and "timeout_s" in log
    print(f"refused  no receiver: the run ends with code {code}: {'ok' if ok else log}")
    with encoded.Run(programs, {"encode": f'url = "tcp://127.0.0.1:{port}"\ntimeout_s = 30'}, 60, fps=FPS) as run:
        time.sleep(2)
        receiver = subprocess.Popen(["ffmpeg", "-nostdin", "-v", "error", "-stats", "-i", f"tcp://127.0.0.1:{port}?listen=1", "-fps_mode", "passthrough",
                                     "-f", "null", "-"], stderr=subprocess.PIPE, text=True)
        run.finish()
    _, log = receiver.communicate(timeout=30)
    return verdict("late", 60, frames_decoded(log), 0, 60) and ok


PARTS = {"udp": udp, "pipe": pipe, "paused": paused, "rtsp": rtsp, "refused": refused}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--only", choices=sorted(PARTS))
    p.add_argument("--kills", type=int, default=5)
    a = p.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    programs = os.path.abspath(a.programs)
    encoded.require(programs)
    return 0 if all([PARTS[n](programs, a.kills) for n in ([a.only] if a.only else PARTS)]) else 1


if __name__ == "__main__":
    sys.exit(main())
