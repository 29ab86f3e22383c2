"""Spaces in Python: memory, semaphores and queues between processes that survive the death of any of them."""
from __future__ import annotations

import ctypes
import select
import subprocess
import tempfile
import threading
import time
from typing import Any, Callable, Mapping, NamedTuple, Self

from . import _space_library as c
from ._running import program
from ._space_deaths import DeathWatch, PeerDeath
from ._space_handle import Handle, Held, Primitive, call, opened
from ._space_library import ConfigError, limit_ns
from ._space_pool import Pool
from ._space_queues import BlockQueue, Queue, WorkQueue

HOLDER_START_S = 60   # to allocate and page-lock the memory


class Permit(Held):
    """A permit of this process: Semaphore.acquire() returns it. It is given back by release(), at the end of `with`, or after the death of
    this process."""

    def __init__(self, handle):
        super().__init__(handle, "permit_release", "permit_release")

    def release(self) -> None:
        """Gives the permit back. A second call does nothing."""
        self._handle._close(self._completes)


class Semaphore(Primitive):
    """Permits, granted in the order of the requests: Space.semaphore() opens it."""

    def __init__(self, space, name, permits):
        super().__init__(space, name, "semaphore_close", opened("semaphore_open", space._handle._live(), name.encode(), permits),
                         ("semaphore", (name, permits), {}))

    def acquire(self, timeout: float | None = None) -> Permit:
        """Waits for a permit, at most `timeout` seconds (None: no limit, 0: no wait). Raises TimedOut."""
        return Permit(opened("semaphore_acquire", self._handle._live(), limit_ns(timeout)))

    @property
    def free(self) -> int:
        """Number of free permits, at some instant."""
        return self._state("semaphore_get_state", c.SemaphoreState()).free

    @property
    def waiting(self) -> int:
        """Number of waiting processes and threads, at some instant."""
        return self._state("semaphore_get_state", c.SemaphoreState()).waiting


class SpaceSize(NamedTuple):
    """What a space has from its creation on, for Space(create=...): the sizes of its memory, as "64M" or "2G", on the host and on the GPU
    of Space(device=...), and primitives by name, each with the arguments of the method of Space that creates one:
    SpaceSize(gpu="2G", pools={"kv": {"nbytes": 1 << 30, "device": "cuda"}}, block_queues={"ready": {"pool": "kv", "slots": 64}},
    semaphores={"gpu": {"permits": 2}}). A space that exists gets those that it lacks, and must not have another shape of one."""
    host: str = "64M"
    gpu: str | None = None
    pools: Mapping[str, Mapping[str, Any]] = {}
    semaphores: Mapping[str, Mapping[str, Any]] = {}
    queues: Mapping[str, Mapping[str, Any]] = {}
    block_queues: Mapping[str, Mapping[str, Any]] = {}
    work_queues: Mapping[str, Mapping[str, Any]] = {}

    def _create_in(self, space: Space) -> None:
        for name, shape in self.pools.items():
            space.pool(name, **shape).close()
        for name, shape in self.semaphores.items():
            space.semaphore(name, **shape).close()
        for name, shape in self.queues.items():
            space.queue(name, **shape).close()
        for name, shape in self.work_queues.items():
            space.work_queue(name, **shape).close()
        for name, shape in self.block_queues.items():
            with space.pool(shape["pool"]) as pool:
                space.block_queue(name, **{**shape, "pool": pool}).close()


class Space:
    """An open space, by the name of `carousel hold NAME`, of a running pipeline, or of a process that has created it. `create`: if no
    process holds the space, starts a holder (`carousel hold`) with that SpaceSize, or one that takes over the space of a dead holder;
    then opens or creates the primitives that it names. The holder is a process of its own: it survives this one, and ends when the last client has left. `device`: the GPU, as this process
    numbers them, for which to map the space's GPU memory. `wait`: seconds to wait for a holder, and for the creation of a primitive.

    The first request for the name of a primitive determines its shape; a request without a shape opens an existing one. Every wait
    releases the GIL and ends with Ctrl-C. A forked child can't use its parent's objects: open the space there, or start processes by
    `spawn`; a Space, a Pool and a queue can be passed to a spawned process, which opens its own."""

    def __init__(self, name: str, *, create: SpaceSize | None = None, wait: float | None = 5.0, device: int | None = None) -> None:
        if create is not None and create.gpu is not None and device is None:
            raise ValueError("create: GPU memory needs the GPU, as in Space(..., device=0)")
        options = c.SpaceOptions()
        options.wait_ns = limit_ns(wait)
        self.name, self._create, self._wait, self._device = name, create, wait, device
        handle = _open(name, options) if create is None else _create(name, create, device, options)
        self._handle = Handle(handle, "space_close")
        try:
            if device is not None:
                call("space_map_gpu", self._handle._live(), device)
            if create is not None:
                create._create_in(self)
        except BaseException:
            self._handle._close("space_close")
            raise

    def __repr__(self):
        return f"<carousel.Space {self.name!r}{'' if self._handle.is_open else ', closed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self):
        return _open_again, (self.name, self._create, self._wait, self._device)

    def close(self) -> None:
        """Ends this object. The process is detached when all objects of the space have ended, too."""
        self._handle._close_after_use("space_close")

    def _info(self):
        info = c.SpaceInfo()
        call("space_get_info", self._handle._live(), ctypes.byref(info))
        return info

    @property
    def is_held(self) -> bool:
        """False if the space has no holder at present; open primitives keep working."""
        return bool(self._info().is_held)

    @property
    def nbytes(self) -> int:
        """Bytes of the space's host memory."""
        return self._info().bytes

    @property
    def gpu_nbytes(self) -> int:
        """Bytes of the space's GPU memory; 0: the space has none."""
        return self._info().gpu_bytes

    def on_peer_death(self, callback: Callable[[PeerDeath], object]) -> DeathWatch:
        """Calls `callback`, on a thread of its own, with a PeerDeath for each client of the space that dies from now on: after its GPU
        context is gone and what it held has been recovered. An exception of the callback is printed. The calls end with close() of the
        returned object or the end of its `with`."""
        return DeathWatch(self, callback)

    def _shape(self, name, kind, what):
        shape = c.Shape()
        try:
            call("space_find", self._handle._live(), name.encode(), ctypes.byref(shape))
        except c.NotHeld:
            raise ConfigError(f"the space {self.name!r} has no {what} {name!r}: create it with its shape") from None
        if shape.kind != kind:
            raise ConfigError(f"{name!r} of the space {self.name!r} is not a {what}: use another name")
        return shape

    def semaphore(self, name: str, permits: int | None = None) -> Semaphore:
        """Opens or creates a semaphore with 1 to 4096 permits."""
        if permits is None:
            permits = self._shape(name, c.SEMAPHORE, "semaphore").count
        return Semaphore(self, name, permits)

    def pool(self, name: str, nbytes: int | None = None, *, unit: int = 65536, device: str = "cpu") -> Pool:
        """Opens or creates a pool of `nbytes` bytes, allocated in units of `unit` bytes (a multiple of 4096). `device`: "cpu", or "cuda"
        for GPU memory, which needs Space(device=...)."""
        memory = {"cpu": c.HOST, "cuda": c.GPU}.get(device)
        if memory is None:
            raise ValueError(f"device: expected \"cpu\" or \"cuda\", got {device!r}")
        if nbytes is None:
            shape = self._shape(name, c.POOL, "pool")
            nbytes, unit, memory = shape.count, shape.each, shape.memory
        if memory == c.GPU and self._device is None:
            raise ConfigError(f"the pool {name!r} is in GPU memory, which this process has not mapped: open the space with its GPU, as in "
                              f"Space({self.name!r}, device=0)")
        return Pool(self, name, nbytes, unit, memory)

    def queue(self, name: str, slots: int | None = None, element: int | str | None = None) -> Queue:
        """Opens or creates a queue of `slots` elements. `element`: bytes of one length (an int), a format of the module struct ("qd"), or
        JSON texts ("json 256": of up to 256 bytes). The default for an existing queue is bytes."""
        if slots is None:
            shape = self._shape(name, c.QUEUE, "queue")
            slots, element = shape.count, shape.each if element is None else element
        return Queue(self, name, slots, element)

    def block_queue(self, name: str, pool: Pool | None = None, slots: int | None = None, *, meta: int = 256) -> BlockQueue:
        """Opens or creates a queue that carries up to `slots` blocks of `pool`, each with a dict of up to `meta` bytes as JSON."""
        if slots is None:
            shape = self._shape(name, c.BLOCK_QUEUE, "queue of blocks")
            slots, meta = shape.count, shape.each
            pool = pool or self.pool(shape.pool.decode())
        if not isinstance(pool, Pool):
            raise TypeError(f"pool: expected a carousel.Pool of this space, got {pool!r}")
        return BlockQueue(self, name, pool, slots, -(-meta // 8) * 8)

    def work_queue(self, name: str, slots: int | None = None, element: int | str | None = None, *, attempts: int = 3) -> WorkQueue:
        """Opens or creates a work queue of `slots` tasks. A task that fails `attempts` times (1 to 15) becomes a dead letter. `element`: as
        in queue()."""
        if slots is None:
            shape = self._shape(name, c.WORK_QUEUE, "work queue")
            slots, attempts, element = shape.count, shape.max_attempts, shape.each if element is None else element
        return WorkQueue(self, name, slots, element, attempts)


def _open_again(name, create, wait, device):
    return Space(name, create=create, wait=wait, device=device)


def _open(name, options):
    return opened("space_open", name.encode(), ctypes.byref(options))


def _create(name, size, device, options):
    """Opens the space; starts a holder as often as there is none, because the last one may be ending."""
    deadline = float("inf") if options.wait_ns == c.NO_LIMIT else time.monotonic_ns() + options.wait_ns
    brief = c.SpaceOptions()
    started = False
    while True:
        try:
            first = Handle(_open(name, brief), "space_close")
        except c.NoHolder:
            if started and time.monotonic_ns() > deadline:   # also with wait=0, a space is created
                raise
        else:
            handle = _open(name, options)   # with `wait` for its primitives; `first` keeps the holder meanwhile
            first._close("space_close")
            return handle
        _start_holder(name, size, device)
        started = True
        brief.wait_ns = 100_000_000   # it may be ending, or taking over


def _holder_command(name, size, device):
    words = [program(), "hold", name, "--while-used", "--size", str(size.host)]
    if size.gpu is not None:
        words += ["--device", f"cuda:{device}", "--device-size", str(size.gpu)]
    return words


def _start_holder(name, size, device):
    """Starts a holder that survives this process. Returns when it holds the space, or when another process does."""
    words = _holder_command(name, size, device)
    with tempfile.TemporaryFile() as messages:   # not a pipe, whose reader may end before the holder
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, start_new_session=True)
        with process.stdout:
            ready, _, _ = select.select([process.stdout], [], [], HOLDER_START_S)
            if not ready:
                process.kill()
            is_held = process.stdout.readline()   # printed when it holds the space
        threading.Thread(target=process.wait, name="carousel holder", daemon=True).start()   # so that it leaves no zombie
        if is_held:
            return
        code = process.wait(10)
        messages.seek(0)
        text = messages.read().decode("utf-8", "replace").strip()
    if not ready:
        raise ConfigError(f"{' '.join(words)}: does not hold the space after {HOLDER_START_S} s, and was ended{': ' if text else ''}{text}")
    if "is already held" not in text:
        raise ConfigError(text.splitlines()[-1].removeprefix("error: ") if text else f"{' '.join(words)}: ended with {code}")
