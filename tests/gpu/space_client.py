"""A client of a space, in a process of its own, for spaces_gpu.py: space_client.py NAME ROLE LIBRARY DEVICE [ARGUMENT...]

Roles: echo (checks and fills the blocks that it gets, until one has "end" in its description), reader (of a share), writer (to a
share, which must fail), busy (writes to a block without end), random SEED FILE (all of it at random; FILE has its present state),
attach COUNT (opens and closes the space), keep SECONDS (holds a block, and checks its bytes), forks (a process that has imported LIBRARY and
forks a client "random" for each line of its arguments, because the import takes long). LIBRARY: torch, cupy or numpy."""
import importlib
import mmap
import os
import random
import signal
import sys
import time
import traceback

import carousel

UNIT = 65536
STATES = ("starting", "waiting", "writing", "holding", "sending")


class Client:
    def __init__(self, name, library, device, create=None):
        self.name, self.torch, self.gpu = name, library == "torch", None if device == "cpu" else int(device.removeprefix("cuda:"))
        self.library = importlib.import_module(library)
        self.space = carousel.Space(name, create=create, wait=20, device=self.gpu)
        self.pool = self.space.pool("frames", 512 * UNIT, unit=UNIT, device="cpu" if self.gpu is None else "cuda")
        self.there, self.back, self.travelling = (self.space.block_queue(q, self.pool, 4) for q in ("there", "back", "travelling"))
        self.names = self.space.queue("names", 1, 32)

    def bytes_of(self, memory):
        return memory.tensor() if self.torch else memory.array()

    def free_gpu_bytes(self):
        if self.gpu is None:
            return 0
        return (self.library.cuda.mem_get_info(self.gpu) if self.torch else self.library.cuda.runtime.memGetInfo())[0]


def equal(array, number):
    return bool((array == number).all())   # waits for the GPU


def counts(pid):
    """Descriptors and mappings of a process."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return len(os.listdir(f"/proc/{pid}/fd")), sum(1 for _ in maps)


def echo(client):
    while True:
        with client.there.get(60) as block:
            if block.meta.get("end"):
                return
            array, value = client.bytes_of(block), block.meta["value"]
            if not equal(array, value):
                raise AssertionError(f"a block does not have the bytes {value} that its sender enqueued")
            array[:] = value + 1   # enqueued: put() waits for it
            del array
            client.back.put(block, {"value": value + 1}, 60)


def reader(client):
    shared = client.pool.open_share(client.names.get(60))
    array = client.bytes_of(shared)
    print(equal(array, 77), shared.is_valid(), flush=True)
    sys.stdin.readline()
    print(shared.is_valid(), flush=True)


def writer(client):
    array = client.bytes_of(client.pool.open_share(client.names.get(60)))
    print("opened", flush=True)
    array[:] = 1
    if equal(array, 1):   # on a GPU the fault is reported here
        print("wrote", flush=True)


def busy(client):
    block = client.pool.allocate(256 * UNIT, 60)
    array = client.bytes_of(block)
    array[:] = 1
    equal(array, 1)
    print("ready", flush=True)
    while True:
        array[:] = 1


def act_at_random(client, number, file):
    chance, mine = random.Random(number), number % 251
    with open(file, "r+b") as out:
        state = mmap.mmap(out.fileno(), 1)
    warm = client.pool.allocate(UNIT, 60)   # the library's first kernel takes long
    equal(client.bytes_of(warm), 0)
    warm.free()
    print("ready", flush=True)
    while True:
        try:
            state[0] = STATES.index("waiting")
            if chance.random() < 0.6:   # the queue of blocks is often full, so that senders wait as well
                block = client.pool.allocate(chance.randint(1, 96 * UNIT), 0.05)
            else:
                block = client.travelling.get(0.05)
                if not equal(client.bytes_of(block), block.meta["owner"]):
                    raise AssertionError(f"a block of client {block.meta['owner']} contains other bytes")
            array = client.bytes_of(block)
            state[0] = STATES.index("writing")
            for _ in range(chance.randint(1, 50)):
                array[:] = mine
            if chance.random() < 0.4:
                if not equal(array, mine):
                    raise AssertionError("another process wrote into a block of this process")
                state[0] = STATES.index("holding")
                time.sleep(chance.uniform(0, 0.02))
                if not equal(array, mine):
                    raise AssertionError("another process wrote into a block of this process")
            del array
            state[0] = STATES.index("sending")
            if chance.random() < 0.8:
                client.travelling.put(block, {"owner": mine}, 0.05)
            block.free()
        except carousel.TimedOut:
            block = None


def keep(client, seconds):
    block = client.pool.allocate(16 * UNIT, 60)
    array = client.bytes_of(block)
    array[:] = 201
    print("ready" if equal(array, 201) else "other bytes", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not equal(array, 201):
            raise AssertionError("another process wrote into a block that this process keeps")
        time.sleep(0.05)
    print(equal(array, 201), flush=True)
    del array
    sys.stdin.readline()
    block.free()
    print("freed", flush=True)
    sys.stdin.readline()


def fork_clients(name, library, device):
    """CUDA is initialised in the children only, so a fork is permitted."""
    importlib.import_module(library)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)   # no zombies
    print("ready", flush=True)
    for line in sys.stdin:
        number, file = line.split()
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            continue
        try:
            os.dup2(2, 1)
            act_at_random(Client(name, library, device), int(number), file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def attach(client, count):
    """Prints descriptors, mappings and the GPU's free bytes after 1/10 of the cycles, and at the end."""
    for n in range(count):
        with carousel.Space(client.name, wait=20, device=client.gpu) as space:
            with space.pool("frames") as pool, pool.allocate(UNIT, 60) as block:
                array = client.bytes_of(block)
                array[:] = n % 251
                del array
        if n + 1 in (max(1, count // 10), count):
            print(*counts(os.getpid()), client.free_gpu_bytes(), flush=True)
            sys.stdin.readline()


def main():
    name, role, library, device, *more = sys.argv[1:]
    if role == "forks":
        fork_clients(name, library, device)
        return
    client = Client(name, library, device)
    if role == "random":
        act_at_random(client, int(more[0]), more[1])
    elif role == "attach":
        attach(client, int(more[0]))
    elif role == "keep":
        keep(client, float(more[0]))
    else:
        {"echo": echo, "reader": reader, "writer": writer, "busy": busy}[role](client)


if __name__ == "__main__":
    main()
