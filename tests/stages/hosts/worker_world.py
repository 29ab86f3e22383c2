"""Instances of one stage on two hosts: shared by the tests and the campaign for that."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, SINK, SOURCE  # noqa: E402
from link_pair import check_report  # noqa: E402

WORK = ('[[stage]]\nname = "work"\nrun = "carousel-test-bytes"\ninputs = ["source"]\nbytes = {bytes}\nturns = true\n'
        'instances = 3\ndelay_ms = {delay}\n{more}\n')
REMOTE_STAGES = ("work-work", "work", "work-done")


def chain(size, delay, of_all="", of_sink="", of_work=""):
    """A source, three workers, a sink."""
    return (("[parameters]\ngain = 7\n\n" if "carries" in of_all else "") + SOURCE.format(bytes=size) + of_all + WORK.format(bytes=size, delay=delay, more=of_all + of_work)
            + SINK.format(name="sink", of="work", bytes=size, more=of_all + of_sink))


def hosts_text(addresses, port):
    return "".join(HOST.format(name=name, address=address, port=port, launcher=launcher, more="")
                   for name, address, launcher in (("a", addresses[0], "here"), ("b", addresses[1], "none")))


def write_files(world, size, delay, addresses, port, of_two="", **more):
    """Files for one host, and for two of its three workers on b; `of_two` for all three."""
    one = world.write("one.toml", chain(size, delay, **more))
    more["of_work"] = more.get("of_work", "") + 'host = ["", "b", "b"]\n' + of_two
    return one, world.write("workers.toml", hosts_text(addresses, port) + chain(size, delay, **more))


def hash_on_one_host(world, file, frames):
    one = world.coordinator(file, "--frames", str(frames)).start()
    assert one.wait(120) == 0, one.text()
    return one.report()["image_hash"]


def rows(host, name):
    return [s for s in host.ps().get("stages") or [] if s["name"] == name]


def frames_of(host, name):
    return sum(s.get("frames") or 0 for s in rows(host, name))


def kill(host, dice, name):
    """SIGKILL to one of that stage's processes, if there is one now."""
    pids = [s["pid"] for s in rows(host, name) if s.get("pid")]
    if pids:
        os.kill(dice.choice(pids), signal.SIGKILL)
    return bool(pids)


def check_whole(coordinator, frames, expected):
    """The sink here gets what it gets on one host; the other host only computes, and has its own account."""
    check_report(coordinator, frames)
    reported = coordinator.report()["image_hash"]
    assert reported == expected, f"another hash than on one host: {reported}, {expected}\n{coordinator.text()[-3000:]}"
