"""Spaces on a GPU in Python, with torch and CuPy: spaces_gpu.py BUILD [--parts a,b] [--device cuda:0] [--libraries torch,cupy]
[--kills 200] [--clients 8] [--seconds 300] [--attaches 10000] [--held 60] [--fork]

Parts, for each library: blocks (pass between two processes while their bytes are still being written), shares (are read-only, and end
with their owner), busy (a process is killed during kernels that write to its block), kills (of clients at random, until --seconds), holds (a
process keeps a block for --held seconds while its neighbours are killed, at least 50),
attaches (cycles of one process: descriptors, mappings and free GPU memory stay the same), server (the example model_server, with torch).
One row per part, the table last. Exit code 1: a part failed; 77: no library here. --device cpu: the same with NumPy (and torch)."""
import argparse
import contextlib
import gc
import importlib.util
import itertools
import os
import queue
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "stages", "python")]
import interpreter  # noqa: E402
from seeds import scaled, seed  # noqa: E402

PARTS = ("blocks", "shares", "busy", "kills", "holds", "attaches", "server")
NUMBERS = itertools.count()   # of spaces: what a part that failed leaves does not affect the next one


def require(true, text):
    if not true:
        raise AssertionError(text)


class Forked:
    """A client that another process has forked, as a Popen."""
    stdin = stdout = None

    def __init__(self, pid):
        self.pid, self.pidfd = pid, os.pidfd_open(pid)

    def poll(self):
        return 1 if self.pidfd is None or select.select([self.pidfd], [], [], 0)[0] else None

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            if self.pidfd is not None:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def wait(self, timeout=60):
        if self.pidfd is not None:
            require(select.select([self.pidfd], [], [], timeout)[0], f"process {self.pid} has not ended")
            os.close(self.pidfd)
            self.pidfd = None
        return 1


class Rig(contextlib.ExitStack):
    """A space with a holder, this process as its client, and other clients."""

    def __init__(self, a, library):
        super().__init__()
        self.forks = None
        self.a, self.library, self.name = a, library, f"spaces-{os.getpid()}-{next(NUMBERS)}"

    def __enter__(self):
        super().__enter__()
        size = carousel.SpaceSize("64M", None if self.a.device == "cpu" else "96M")
        self.own = space_client.Client(self.name, self.library, self.a.device, size)
        with open(os.path.join(os.environ["XDG_RUNTIME_DIR"], "carousel-spaces", self.name, "record"), encoding="utf-8") as record:
            self.holder_pid = int(record.read().split()[0])
        self.callback(self.leave)
        self.deaths, self.log = queue.Queue(), self.enter_context(tempfile.TemporaryFile("w+"))
        self.enter_context(self.own.space.on_peer_death(lambda death: self.deaths.put((death, time.monotonic()))))
        return self

    def start(self, role, *words):
        client = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "space_client.py"), self.name, role, self.library, self.a.device,
                                   *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                  env={**os.environ, "PYTHONPATH": os.path.join(os.path.abspath(self.a.build), "python")})
        self.callback(self.end, client)
        return client

    def start_random(self, number, path):
        """A client that acts at random; with --fork it has its library from a process that imported it once."""
        if not self.a.fork:
            return self.start("random", number, path)
        if self.forks is None:
            self.forks = self.start("forks")
            require(self.line(self.forks) == "ready", "the process that forks clients failed")
        print(number, path, file=self.forks.stdin, flush=True)
        client = Forked(int(self.line(self.forks)))
        self.callback(self.end, client)
        return client

    @staticmethod
    def counts(pid):
        """The lowest counts within 0.5 s: the holder closes the descriptors of a client after the client's close()."""
        samples = []
        for _ in range(10):
            samples.append(space_client.counts(pid))
            time.sleep(0.05)
        return tuple(map(min, zip(*samples)))

    def leave(self):
        """Detaches this process: the space ends with its holder."""
        self.own = None
        gc.collect()

    @staticmethod
    def end(client):
        client.kill()
        client.wait()
        for pipe in filter(None, (client.stdin, client.stdout)):
            pipe.close()

    def line(self, client, timeout=180):
        """The next line that the client prints."""
        require(select.select([client.stdout], [], [], timeout)[0], f"a client printed nothing within {timeout} s")
        text = client.stdout.readline()
        if not text:
            self.fail(client)
        return text.strip()

    def fail(self, client):
        self.log.seek(0)
        raise AssertionError(f"a client ended with {client.wait(60)}: {self.log.read()[-1500:]}")

    def require_whole_pool(self, kept=0):
        """Every block is free again: the rest of the pool can be allocated."""
        self.own.pool.allocate(self.own.pool.state.nbytes - kept, 30).free()


def blocks(rig):
    peer, pool, own = rig.start("echo"), rig.own.pool, rig.own
    for n in range(64):
        block = pool.allocate(random.randint(1, 128 * space_client.UNIT), 60)
        array = own.bytes_of(block)
        for value in (3, n):   # enqueued: put() waits for it
            array[:] = value
        try:
            own.there.put(block)
            raise AssertionError("put() of a block with an array was not refused")
        except BufferError:
            pass
        del array
        own.there.put(block, {"value": n}, 60)
        with own.back.get(60) as again:
            array = own.bytes_of(again)
            require(space_client.equal(array, n + 1), f"block {n} came back with other bytes")
            del array
    own.there.put(pool.allocate(1, 60), {"end": True}, 60)
    require(peer.wait(60) == 0, "the peer failed")
    if rig.library == "torch":
        for kind in filter(None, (own.library.bfloat16, getattr(own.library, "float8_e4m3fn", None))):
            with pool.allocate(4096, 60) as block:
                tensor = block.tensor((32, 16), kind)
                tensor.copy_(own.library.ones(32, 16))
                require(float(tensor.float().sum()) == 512, f"a tensor of {kind}")
                del tensor
    rig.require_whole_pool()
    return "64 blocks there and back"


def shares(rig):
    own, block = rig.own, rig.own.pool.allocate(16 * space_client.UNIT, 60)
    array = own.bytes_of(block)
    array[:] = 77
    require(space_client.equal(array, 77), "the owner's bytes")
    reader = rig.start("reader")
    own.names.put(block.share(), 60)
    require(rig.line(reader) == "True True", "a reader does not see the owner's bytes")
    writer = rig.start("writer")
    own.names.put(block.share(), 60)
    require(rig.line(writer) == "opened", "a writer can't open the share")
    printed, code = writer.communicate(timeout=60)[0], writer.returncode
    require("wrote" not in printed and code != 0, f"a write to a share was not refused (exit code {code})")
    require(space_client.equal(array, 77), "a write to a share changed the owner's block")
    del array
    block.free()
    print(file=reader.stdin, flush=True)
    require(rig.line(reader) == "False", "a share of a freed block is still valid")
    reader.wait(60)
    rig.require_whole_pool()
    return f"the process that wrote to a share ended with {code}"


def busy(rig):
    times, own = [], rig.own
    for _ in range(5):
        peer = rig.start("busy")
        rig.line(peer)
        time.sleep(0.1)
        peer.kill()
        killed = time.monotonic()
        death, at = rig.deaths.get(timeout=60)
        require((death.pid, death.block_count) == (peer.pid, 1), f"wrong report of a death: {death}")
        times.append(1000 * (at - killed))
        with own.pool.allocate(512 * space_client.UNIT, 0) as block:   # at once: the block is back
            array = own.bytes_of(block)
            array[:] = 2
            for _ in range(20):
                require(space_client.equal(array, 2), "a dead process wrote into a block of its next owner")
                time.sleep(0.01)
            del array
    return f"blocks back {statistics.median(times):.1f} ms after the kill (median of 5), at most {max(times):.1f} ms"


class Victims:
    """Clients that use the pool at random and are killed, each of which has to be reported once."""

    def __init__(self, rig, number, folder):
        self.rig, self.number, self.folder, self.started = rig, number, folder, 0
        self.clients, self.killed, self.reported, self.states = [], {}, {}, dict.fromkeys(space_client.STATES, 0)

    def start(self):
        path = os.path.join(self.folder, str(self.started))
        with open(path, "wb") as out:
            out.write(b"\0")
        self.clients.append((self.rig.start_random(self.number * 1000 + self.started, path), path))
        self.started += 1

    @staticmethod
    def state(path):
        with open(path, "rb") as file:
            return space_client.STATES[file.read(1)[0]]

    def ready(self):
        """The places of those that are attached and at work."""
        for client, _ in self.clients:
            if client.poll() is not None:
                self.rig.fail(client)
        return [k for k, (_, path) in enumerate(self.clients) if self.state(path) != "starting"]

    def kill(self, at):
        client, path = self.clients.pop(at)
        self.killed[client.pid] = time.monotonic()   # before the signal: the report may be first
        self.rig.end(client)
        self.states[self.state(path)] += 1

    def collect(self, timeout):
        with contextlib.suppress(queue.Empty):
            while True:
                death, at = self.rig.deaths.get(timeout=timeout)
                require(death.pid in self.killed and death.pid not in self.reported, f"process {death.pid} is alive, or was reported twice")
                self.reported[death.pid] = 1000 * (at - self.killed[death.pid])


def kills(rig):
    number, own, begin = seed(1), rig.own, time.monotonic()
    chance, wanted = random.Random(number), scaled(rig.a.kills)
    kept = own.pool.allocate(space_client.UNIT, 60)
    pattern = own.bytes_of(kept)
    pattern[:] = 252
    victims = Victims(rig, number, rig.enter_context(tempfile.TemporaryDirectory()))
    for _ in range(rig.a.clients):
        victims.start()
    before = None
    while len(victims.killed) < wanted and time.monotonic() - begin < rig.a.seconds:
        victims.collect(chance.uniform(0.005, 0.05))
        ready = victims.ready()
        if not ready:
            continue
        victims.kill(chance.choice(ready))
        victims.start()
        if len(victims.killed) % 20 == 0:
            require(space_client.equal(pattern, 252), "a client wrote into a block of this process")
            before = before or [rig.counts(pid) for pid in (rig.holder_pid, os.getpid())]
    until = time.monotonic() + 120
    while victims.clients and time.monotonic() < until:
        if ready := victims.ready():
            victims.kill(ready[0])
        victims.collect(0.01)
    while len(victims.reported) < len(victims.killed) and time.monotonic() < until:
        victims.collect(0.1)
    missing = len(victims.killed) - len(victims.reported)
    require(not victims.clients and not missing, f"{len(victims.clients)} clients did not start, {missing} deaths were not reported")
    while len(own.travelling):
        own.travelling.get(5).free()
    require(space_client.equal(pattern, 252), "a client wrote into a block of this process")
    rig.require_whole_pool(space_client.UNIT)
    del pattern
    kept.free()
    after, flat = [rig.counts(pid) for pid in (rig.holder_pid, os.getpid())], ""
    if before:
        flat = f"; descriptors and mappings after 20 kills and at the end: holder {before[0]} -> {after[0]}, survivor {before[1]} -> {after[1]}"
        require(all(b[0] <= a[0] and b[1] <= a[1] + 4 for a, b in zip(before, after)), "growth" + flat)
    times = list(victims.reported.values())
    return (f"{len(times)} kills ({', '.join(f'{n} {state}' for state, n in victims.states.items() if n)}), seed {number}: no block lost or owned "
            f"twice, each reported once, {statistics.median(times):.1f} ms after the kill (median), at most {max(times):.1f} ms{flat}")


def holds(rig):
    own, number, begin = rig.own, seed(1), time.monotonic()
    chance = random.Random(number)
    peers = [rig.start("keep", rig.a.held) for _ in range(2)]
    for peer in peers:
        require(rig.line(peer) == "ready", "a peer that keeps a block failed")
    victims = Victims(rig, number, rig.enter_context(tempfile.TemporaryDirectory()))
    for _ in range(min(rig.a.clients, 4)):
        victims.start()
    while len(victims.killed) < scaled(50) or time.monotonic() - begin < rig.a.held:
        require(time.monotonic() - begin < rig.a.held + rig.a.seconds, f"only {len(victims.killed)} kills within --held and --seconds")
        victims.collect(rig.a.held / 60)
        if ready := victims.ready():
            victims.kill(chance.choice(ready))
            victims.start()
    for client, _ in victims.clients:
        victims.killed[client.pid] = time.monotonic()
        rig.end(client)
    for peer in peers:
        require(rig.line(peer) == "True", "a kept block was taken from its owner")
    revoked = peers.pop()   # one block comes back by a death, the other by its owner
    victims.killed[revoked.pid] = time.monotonic()
    rig.end(revoked)
    until = time.monotonic() + 60
    while revoked.pid not in victims.reported and time.monotonic() < until:
        victims.collect(0.1)
    print(file=peers[0].stdin, flush=True)
    require(rig.line(peers[0]) == "freed", "the owner of a kept block can't free it")
    while len(own.travelling):
        own.travelling.get(5).free()
    rig.require_whole_pool()
    victims.collect(0.5)   # nothing is reported twice
    missing = set(victims.killed) - set(victims.reported) - {client.pid for client, path in victims.clients if victims.state(path) == "starting"}
    require(not missing, f"{len(missing)} deaths were not reported")
    return (f"two blocks kept for {time.monotonic() - begin:.0f} s while {len(victims.killed) - 1} neighbours were killed, seed {number}: "
            "one freed, one recovered once, the pool is whole")


def attaches(rig):
    count, rows = rig.a.attaches, []
    peer, begin = rig.start("attach", count), time.monotonic()
    for _ in range(2):
        descriptors, mappings, free = map(int, rig.line(peer, 900).split())
        seconds = time.monotonic() - begin
        rows.append(((descriptors, mappings), rig.counts(rig.holder_pid), rig.counts(os.getpid()), free))
        print(file=peer.stdin, flush=True)
    require(peer.wait(60) == 0, "the attaching process failed")
    text = "; ".join(f"{what} {rows[0][k]} -> {rows[1][k]}" for k, what in enumerate(("client", "holder", "survivor")))
    for first, last in list(zip(*rows))[:3]:
        require(last[0] <= first[0] and last[1] <= first[1] + 4, f"descriptors and mappings grow: {text}")
    require(abs(rows[1][3] - rows[0][3]) <= 8 << 20, f"free GPU memory: {rows[0][3]} and then {rows[1][3]} bytes")
    gpu = "" if rig.a.device == "cpu" else f"; free GPU memory {rows[0][3] / 2**20:.0f} -> {rows[1][3] / 2**20:.0f} MiB"
    return f"{count} attaches in {seconds:.0f} s; descriptors and mappings after 1/10 and at the end: {text}{gpu}"


def server(rig):
    root = os.path.join(HERE, "..", "..")
    done = subprocess.run([sys.executable, "-B", os.path.join(root, "tests/stages/python/test_model_server.py"), rig.a.build, root, "--device",
                           rig.a.device], capture_output=True, text=True, timeout=200, check=False)
    require(done.returncode == 0, f"test_model_server.py: {done.stdout[-1000:]}{done.stderr[-1500:]}")
    return "; ".join(line for line in done.stdout.splitlines() if line.startswith("worker"))


def sees_gpu(name):
    """In a process of its own: this one initialises CUDA as a client does."""
    ask = {"torch": "torch.cuda.device_count()", "cupy": "cupy.cuda.runtime.getDeviceCount()"}[name]
    return subprocess.run([sys.executable, "-c", f"import sys, {name}; sys.exit({ask} == 0)"], capture_output=True, timeout=120, check=False).returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("--parts", default=",".join(PARTS))
    p.add_argument("--device", default="cuda:0"), p.add_argument("--libraries")
    p.add_argument("--kills", type=int, default=200), p.add_argument("--clients", type=int, default=8, help="at a time")
    p.add_argument("--seconds", type=float, default=300, help="after which the kills of a library end")
    p.add_argument("--attaches", type=int, default=10000)
    p.add_argument("--held", type=float, default=60, help="seconds for which a block is kept"), p.add_argument("--fork", action="store_true")
    a = p.parse_args()
    candidates = a.libraries.split(",") if a.libraries else ["torch", "numpy" if a.device == "cpu" else "cupy"]
    libraries = [name for name in candidates if importlib.util.find_spec(name) and (a.device == "cpu" or sees_gpu(name))]
    if not libraries:
        print(f"no GPU, or none of {', '.join(candidates)}: skipped")
        return 77
    rows = []
    for library in libraries:
        for part in a.parts.split(","):
            if part == "server" and library != "torch":   # the example uses no other on a GPU
                continue
            try:
                with Rig(a, library) as rig:
                    rows.append((library, part, True, globals()[part](rig)))
            except Exception as failure:   # the next part may still pass
                traceback.print_exc()
                rows.append((library, part, False, " ".join(str(failure).split())))
            print(*rows[-1], flush=True)
    print(f"\n| library | part | on {a.device} | result |\n|---|---|---|---|")
    for library, part, passed, text in rows:
        print(f"| {library} | {part} | {'passed' if passed else 'FAILED'} | {text} |")
    return 0 if all(row[2] for row in rows) else 1


if __name__ == "__main__":
    interpreter.use(sys.argv[1] if len(sys.argv) > 1 else ".")
    import carousel
    import space_client
    sys.exit(main())
