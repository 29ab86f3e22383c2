"""What a space costs next to what users have today, in one run: space_costs.py BUILD [--device cuda:0] [--times 300] [--mib 8]

Rows: allocate and free a block; pass a block to another process and back (the receiver maps it, reads one byte and sends it back); attach to
memory that exists and detach. Against multiprocessing.shared_memory and torch.multiprocessing on the CPU; on a GPU against
torch.multiprocessing with CUDA tensors, plain cudaIpc and cuda.core. What is not installed is a row with its reason. Medians; the table is
last. Exit code 77: no GPU, or no torch for it."""
import argparse
import ctypes
import importlib.util
import multiprocessing
import os
import statistics
import sys
import time
from multiprocessing import shared_memory

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "stages", "python")]
import interpreter  # noqa: E402

SPAWN = multiprocessing.get_context("spawn")
WARM_UP = 10


def median_us(times, step):
    for _ in range(WARM_UP):
        step()
    taken = []
    for _ in range(times):
        begin = time.perf_counter_ns()
        step()
        taken.append(time.perf_counter_ns() - begin)
    return statistics.median(taken) / 1000


class Peer:
    """A process that runs `echo` until the end of this object."""

    def __init__(self, echo, *arguments):
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=echo, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.get()   # it is ready

    def get(self):
        if not self.pipe.poll(120):
            raise TimeoutError("the peer did not reply within 120 s")
        return self.pipe.recv()

    def end(self):
        self.pipe.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()


# ---- spaces


def tensor_of(block, device):
    return block.array() if device == "cpu" else block.tensor()


def gpu_of(device):
    return None if device == "cpu" else int(device.removeprefix("cuda:"))


def echo_space(pipe, name, device):
    space = carousel.Space(name, wait=20, device=gpu_of(device))
    there, back = space.block_queue("there"), space.block_queue("back")
    pipe.send("ready")
    while True:
        block = there.get(60)
        if block.meta == {"end": True}:
            return
        array = tensor_of(block, device)
        int(array[0])
        del array
        back.put(block)


def of_space(a):
    name, gpu = f"costs-{os.getpid()}", gpu_of(a.device)
    kind, nbytes = "cpu" if gpu is None else "cuda", a.mib << 20
    size = carousel.SpaceSize(f"{64 if gpu is not None else 64 + 8 * a.mib}M", None if gpu is None else f"{8 * a.mib}M")
    with carousel.Space(name, device=gpu, create=size) as space:
        pool = space.pool("blocks", 4 * nbytes, device=kind)
        there, back = space.block_queue("there", pool, 4), space.block_queue("back", pool, 4)
        yield "allocate and free", median_us(a.times, lambda: pool.allocate(nbytes, 5).free())
        peer = Peer(echo_space, name, a.device)
        block = pool.allocate(nbytes, 5)

        def trip():
            nonlocal block
            there.put(block, None, 60)
            block = back.get(60)
        yield "pass and return", median_us(a.times, trip)
        block.free()
        there.put(pool.allocate(1), {"end": True}, 5)
        peer.end()
    yield "attach and detach", attach_to_space(a, size, gpu)


def attach_to_space(a, size, gpu):
    name = f"costs-{os.getpid()}-attach"
    with carousel.Space(name, device=gpu, create=size):
        peer = Peer(attacher, name, gpu, a.times)
        result = peer.get()
        peer.end()
    return result


def attacher(pipe, name, gpu, times):
    if gpu is not None:
        import torch
        torch.zeros(1, device=f"cuda:{gpu}")   # the context exists, as in a worker
    pipe.send("ready")
    pipe.send(median_us(times, lambda: carousel.Space(name, wait=20, device=gpu).close()))


# ---- multiprocessing.shared_memory


def echo_shared(pipe):
    pipe.send("ready")
    try:
        while True:
            memory = shared_memory.SharedMemory(pipe.recv())
            memory.buf[0]
            memory.close()
            pipe.send(None)
    except EOFError:
        pass


def of_shared_memory(a):
    def make():
        memory = shared_memory.SharedMemory(create=True, size=a.mib << 20)
        memory.close()
        memory.unlink()
    yield "allocate and free", median_us(a.times, make)
    memory, peer = shared_memory.SharedMemory(create=True, size=a.mib << 20), Peer(echo_shared)

    def trip():
        peer.pipe.send(memory.name)
        peer.get()
    yield "pass and return", median_us(a.times, trip)
    peer.end()
    yield "attach and detach", median_us(a.times, lambda: shared_memory.SharedMemory(memory.name).close())
    memory.close()
    memory.unlink()


# ---- torch.multiprocessing


def echo_torch(pipe, there, back):
    pipe.send("ready")
    while (tensor := there.get(timeout=60)) is not None:
        back.put(int(tensor[0]))
        del tensor


def of_torch(a):
    import torch
    import torch.multiprocessing as tm
    spawn = tm.get_context("spawn")
    yield "allocate and free", median_us(a.times, lambda: torch.empty(a.mib << 20, dtype=torch.uint8, device=a.device))
    there, back = spawn.Queue(), spawn.Queue()
    peer = Peer(echo_torch, there, back)
    tensor = torch.zeros(a.mib << 20, dtype=torch.uint8, device=a.device)

    def trip():   # torch refuses to send a received tensor on: a number comes back
        there.put(tensor)
        back.get(timeout=20)
    yield "pass and return", median_us(a.times, trip)
    there.put(None)
    peer.end()


# ---- plain cudaIpc


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


def cudart():
    import torch
    names = [f"libcudart.so.{torch.version.cuda.split('.')[0]}", "libcudart.so"]   # torch has loaded its own
    for name in names:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError as failure:
            reason = failure
    else:
        raise RuntimeError(f"libcudart can't be loaded: {reason}")
    library.cudaIpcOpenMemHandle.argtypes = (ctypes.POINTER(ctypes.c_void_p), IpcHandle, ctypes.c_uint)
    library.cudaMalloc.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t)
    library.cudaFree.argtypes = library.cudaIpcCloseMemHandle.argtypes = (ctypes.c_void_p,)
    library.cudaMemcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


def check(status):
    if status != 0:
        raise RuntimeError(f"a CUDA call failed with {status}")


def opened_and_read(library, handle):
    address, byte = ctypes.c_void_p(), ctypes.c_ubyte()
    check(library.cudaIpcOpenMemHandle(ctypes.byref(address), handle, 1))
    check(library.cudaMemcpy(ctypes.byref(byte), address, 1, 2))
    check(library.cudaIpcCloseMemHandle(address))


def echo_ipc(pipe, ordinal, times):
    library = cudart()
    check(library.cudaSetDevice(ordinal))
    check(library.cudaFree(None))
    pipe.send("ready")
    handle = None
    try:
        while (data := pipe.recv()) is not None:
            handle = IpcHandle.from_buffer_copy(data)
            opened_and_read(library, handle)
            pipe.send(None)
        pipe.send(median_us(times, lambda: opened_and_read(library, handle)))
    except EOFError:
        pass


def of_cuda_ipc(a):
    library, ordinal = cudart(), gpu_of(a.device)
    check(library.cudaSetDevice(ordinal))

    def make():
        address = ctypes.c_void_p()
        check(library.cudaMalloc(ctypes.byref(address), a.mib << 20))
        check(library.cudaFree(address))
    yield "allocate and free", median_us(a.times, make)
    address, handle = ctypes.c_void_p(), IpcHandle()
    check(library.cudaMalloc(ctypes.byref(address), a.mib << 20))
    check(library.cudaIpcGetMemHandle(ctypes.byref(handle), address))
    peer = Peer(echo_ipc, ordinal, a.times)

    def trip():
        peer.pipe.send(bytes(handle))
        peer.get()
    yield "pass and return", median_us(a.times, trip)
    peer.pipe.send(None)
    yield "attach and detach", peer.get()
    peer.end()
    check(library.cudaFree(address))


# ---- cuda.core


def core_device(ordinal):
    try:
        from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
    except ImportError:
        from cuda.core.experimental import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
    device = Device(ordinal)
    device.set_current()
    return device, DeviceMemoryResource, DeviceMemoryResourceOptions


def echo_core(pipe, ordinal):
    core_device(ordinal)
    pipe.send("ready")
    try:
        while True:
            pipe.recv().close()   # the resource and the mapping are made by unpickling
            pipe.send(None)
    except EOFError:
        pass


def of_cuda_core(a):
    device, resource, options = core_device(gpu_of(a.device))
    memory, stream = resource(device, options=options(max_size=8 * a.mib << 20, ipc_enabled=True)), device.default_stream

    def make():
        memory.allocate(a.mib << 20, stream=stream).close()
        stream.sync()
    yield "allocate and free", median_us(a.times, make)
    buffer, peer = memory.allocate(a.mib << 20, stream=stream), Peer(echo_core, device.device_id)

    def trip():
        peer.pipe.send(buffer)
        peer.get()
    yield "pass and return", median_us(a.times, trip)
    peer.end()
    buffer.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("--device", default="cuda:0")
    p.add_argument("--times", type=int, default=300), p.add_argument("--mib", type=int, default=8, help="size of a block")
    a = p.parse_args()
    ways = {"a space": of_space, "multiprocessing.shared_memory": of_shared_memory, "torch.multiprocessing": of_torch}
    if a.device != "cpu":
        if not importlib.util.find_spec("torch") or not __import__("torch").cuda.is_available():
            print("no GPU, or no torch that uses it: skipped")
            return 77
        del ways["multiprocessing.shared_memory"]
        ways |= {"plain cudaIpc": of_cuda_ipc, "cuda.core": of_cuda_core}
    rows, failed = [], False
    for way, measure in ways.items():
        try:
            for operation, microseconds in measure(a):
                rows.append((operation, way, f"{microseconds:.1f}"))
                print(*rows[-1], "us", flush=True)
        except ImportError as failure:
            rows.append(("all", way, f"not installed ({failure})"))
        except Exception as failure:   # another way's failure must not hide the rest
            failed |= way == "a space"
            rows.append(("the rest", way, f"failed: {type(failure).__name__}: {' '.join(str(failure).split())[:160]}"))
            print(*rows[-1], flush=True)
    print(f"\n| operation ({a.mib} MiB, {a.device}) | way | us, median of {a.times} |\n|---|---|---|")
    for row in sorted(rows, key=lambda row: row[0]):
        print("|", " | ".join(row), "|")
    return 1 if failed else 0


if __name__ == "__main__":
    interpreter.use(sys.argv[1] if len(sys.argv) > 1 else ".")
import carousel  # noqa: E402  after the interpreter was chosen; spawned processes import it here, too
if __name__ == "__main__":
    sys.exit(main())
