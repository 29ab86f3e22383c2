"""One pipeline file of test.bytes stages over two or three hosts, and the same on one host."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, SINK, SOURCE  # noqa: E402

# The stages downstream of the source in each shape: name, inputs, host. A link's stages are FROM-to-HOST, and then FROM-from-HOST.
SHAPES = {
    "two": [("sink", "source", "b")],
    "chain": [("middle", "source", "b"), ("sink", "middle", "c")],
    "fan-out": [("sink_b", "source", "b"), ("sink_c", "source", "c")],
    "two ways": [("middle", "source", "b"), ("sink", "middle, source", "c")],
}
# What a campaign may kill, by host; "near" is the source's host.
STAGES = {
    "two": {"near": ["source", "source-to-b"], "b": ["source-from-here", "sink"]},
    "chain": {"near": ["source", "source-to-b"], "b": ["source-from-here", "middle", "middle-to-c"], "c": ["middle-from-b", "sink"]},
    "fan-out": {"near": ["source", "source-to-b", "source-to-c"], "b": ["source-from-here", "sink_b"], "c": ["source-from-here", "sink_c"]},
    "two ways": {"near": ["source", "source-to-b", "source-to-c"], "b": ["source-from-here", "middle", "middle-to-c"],
                 "c": ["middle-from-b", "source-from-here", "sink"]},
}
SINKS = {"two": {"b": "sink"}, "chain": {"c": "sink"}, "fan-out": {"b": "sink_b", "c": "sink_c"}, "two ways": {"c": "sink"}}


def remote_names(shape):
    return [name for name in STAGES[shape] if name != "near"]


def stages_text(shape, size, spread, more=None):
    """`more`: further keys by stage, of "pipeline" and of hosts ("hosts.b")."""
    text = f'[pipeline]\n{(more or {}).get("pipeline", "")}\n' + SOURCE.format(bytes=size)
    reads = {each for _, of, _ in SHAPES[shape] for each in of.split(", ")}
    for name, of, host in SHAPES[shape]:
        keys = ("turns = true\n" if name in reads else "") + (f'host = "{host}"\n' if spread else "") + (more or {}).get(name, "")
        text += SINK.format(name=name, of=of.replace(", ", '", "'), bytes=size, more=keys)
    return text


def spread_text(shape, size, places, more=None):
    """`places`: (address, port) by host."""
    return stages_text(shape, size, True, more) + "".join(
        HOST.format(name=name, address=places[name][0], port=places[name][1], launcher="none", more=(more or {}).get("hosts." + name, ""))
        for name in remote_names(shape))


def hash_on_one_host(world, shape, size, frames):
    """The hash of one sink: each sink of a shape gets the same frames."""
    kept = SHAPES[shape] if len(SINKS[shape]) == 1 else SHAPES["two"]
    alone = "two" if kept is SHAPES["two"] else shape
    one = world.coordinator(world.write("one.toml", stages_text(alone, size, False)), "--frames", str(frames)).start()
    assert one.wait(120) == 0, one.text()
    return one.report()["image_hash"]


class Spread:
    """The run: a supervisor for each host. `inside`: the command line before a program of that host."""

    def __init__(self, world, shape, size, frames, fps, places, inside=None, more=None):
        inside = inside or {}
        self.world, self.shape, self.size, self.frames = world, shape, size, frames
        file = world.write("spread.toml", spread_text(shape, size, places, more))
        options = (*(("--frames", str(frames)) if frames else ()), "--fps", str(fps))
        self.coordinator = world.coordinator(file, *options, inside=inside.get("near", ()))
        self.remote = {name: world.remote(file, name, *options, inside=inside.get(name, ())) for name in remote_names(shape)}
        self.hosts = {"near": self.coordinator, **self.remote}

    def start(self):
        self.coordinator.start()
        self.coordinator.expect_log("waiting for host b")
        for host in self.remote.values():
            host.start()
        for host, sink in SINKS[self.shape].items():
            self.remote[host].has_frames(sink, self.coordinator)
        return self

    def victims(self):
        """(host, stage), and (host, "") for its supervisor. The links' stages are hit twice as often."""
        out = [(self.hosts[h], "") for h in self.hosts]
        for h, stages in STAGES[self.shape].items():
            for s in stages:
                out += [(self.hosts[h], s)] * (2 if "-" in s else 1)
        return out

    def kill_one(self, dice):
        """SIGKILL to one of the victims; returns it, or None."""
        host, stage = dice.choice(self.victims())
        if stage:
            return f"{host.name}/{stage}" if host.kill(stage) else None
        return f"supervisor {host.name}" if host.kill_supervisor() else None

    def is_over(self):
        return any(h.process.poll() is not None for h in self.hosts.values())

    def text(self):
        return "".join(f"--- {name}:\n{h.text()[-3000:]}" for name, h in self.hosts.items())

    def codes(self):
        return [h.wait(120) for h in self.hosts.values()]

    def check_whole(self):
        """Nothing lost, repeated or torn on any host, and in each sink what a run on one host delivers."""
        codes = self.codes()
        assert codes == [0] * len(codes), f"exit codes {codes}\n{self.text()}"
        for name, h in self.hosts.items():
            r = h.report()
            reported = [r[k] for k in ("lost", "repeated", "torn", "frames")]
            assert reported == [0, 0, 0, self.frames], f"{name}: lost, repeated, torn, frames are {reported}\n{self.text()}"
        coordinator = self.coordinator.report()   # before the run on one host, whose report replaces it
        expected = hash_on_one_host(self.world, self.shape, self.size, self.frames)
        for name in SINKS[self.shape]:
            reported = [coordinator["hosts"][name]["image_hash"], self.remote[name].report()["image_hash"]]
            assert reported == [expected] * 2, f"{name}: another hash than on one host: {reported}, {expected}"
