"""Spaces in Python: memory, semaphores and queues between processes that survive the death of any of them."""
from __future__ import annotations

import atexit
import ctypes
import json
import os
import struct
import subprocess
import tempfile
import threading
import time
import traceback
import weakref
from typing import Any, Callable, Iterator, NamedTuple, Self

from . import _space_library as c
from ._running import program
from ._space_memory import Memory
from ._space_library import ConfigError, Error, limit_ns


class _Handle:
    """A handle of the library, which is ended once: by close(), at the end of `with`, or when the object is deleted. A forked child has
    a copy of the object and ends nothing. No lock is needed, which a signal handler or a forked child could find locked: each step is one
    operation of a list. A call counts itself in `uses` before it reads the handle, and an end takes the handle before it reads `uses`."""

    def __init__(self, handle, end, exports=()):
        self._box, self._uses, self._ends = [handle], [], []
        self._finalizer = weakref.finalize(self, _end, self._box, end, os.getpid(), self._uses, exports)
        _note_exit()

    def __reduce__(self):
        raise TypeError("an object of a space belongs to one process")

    @property
    def is_open(self):
        return bool(self._box)

    def _live(self):
        if not self._box:
            raise ConfigError(f"{self!r}: it has been closed")
        return self

    def _begin(self):
        self._uses.append(None)
        try:
            return self._box[0]
        except IndexError:
            self._finish()
            raise ConfigError(f"{self!r}: it has been closed") from None

    def _finish(self):
        self._uses.pop()
        self._end_late()

    def _end_late(self):
        if not self._uses and self._ends:
            try:
                end, handle = self._ends.pop()
            except IndexError:   # another thread was first
                return
            c.call(end, handle)

    def _take(self, exports=(), require=None):
        """Returns the handle, which no other thread can use then; None if it has ended. `require` raises if there are exports."""
        try:
            handle = self._box.pop()
        except IndexError:
            return None
        try:
            if exports:
                require()
            if self._uses:
                raise ConfigError(f"{self!r}: another thread is using it")
        except BaseException:
            self._box.append(handle)
            raise
        return handle

    def _close(self, end, exports=(), require=None):
        handle = self._take(exports, require)
        if handle is None:
            return
        try:
            c.call(end, handle)
        except BaseException:
            self._box.append(handle)
            raise
        self._finalizer.detach()

    def _close_after_use(self, end):
        """As _close(); if another thread is in a call with the handle, that thread ends the handle after the call."""
        try:
            handle = self._box.pop()
        except IndexError:
            return
        self._finalizer.detach()
        self._ends.append((end, handle))
        self._end_late()


_is_exiting = False
_exit_is_noted = False


def _note_exit():
    """To be called after a finalizer exists, so that _exit() runs before the finalizers at the end of the process."""
    global _exit_is_noted
    if not _exit_is_noted:
        _exit_is_noted = True
        atexit.register(_exit)


def _exit():
    global _is_exiting
    _is_exiting = True


def _end(box, end, pid, uses, exports):
    # At the end of the process a daemon thread may still use the handle or an array: the holder recovers it after the exit.
    if os.getpid() != pid or uses or (exports and _is_exiting):
        return
    try:
        c.call(end, box.pop())
    except (IndexError, Error):   # ended already; at the end of the process the holder recovers what is left
        pass


def call(name, *arguments):
    """As the library's call. No other thread can end a _Handle among the arguments meanwhile."""
    used = []
    try:
        values = []
        for argument in arguments:
            if isinstance(argument, _Handle):
                values.append(argument._begin())
                used.append(argument)
            else:
                values.append(argument)
        c.call(name, *values)
    finally:
        for handle in used:
            handle._finish()


def opened(name, *arguments):
    """Calls carousel_NAME, whose last parameter receives a handle; returns the handle."""
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle.value


class _Codec:
    """Elements of a queue: bytes of one length (an int), values of a format of the module `struct`, or JSON texts ("json 256": of up to
    256 bytes)."""

    def __init__(self, element):
        self._json = self._struct = None
        if isinstance(element, int):
            self.bytes = element
        elif isinstance(element, str) and element.startswith("json "):
            self._json = self.bytes = int(element[5:])
        elif isinstance(element, str):
            self._struct = struct.Struct(element)
            self.bytes = self._struct.size
        else:
            raise TypeError(f"element: expected a number of bytes, a format of the module struct, or \"json N\", got {element!r}")

    def encode(self, value):
        if self._json is not None:
            data = json.dumps(value, separators=(",", ":")).encode()
            if len(data) > self._json:
                raise ValueError(f"a JSON text of {len(data)} bytes does not fit into an element of {self._json}: use a larger element")
            return data.ljust(self._json)
        if self._struct is not None:
            return self._struct.pack(*(value if isinstance(value, tuple) else (value,)))
        data = bytes(value)
        if len(data) != self.bytes:
            raise ValueError(f"an element has {self.bytes} bytes, but {len(data)} were given")
        return data

    def decode(self, data):
        if self._json is not None:
            return json.loads(data)
        if self._struct is None:
            return data
        values = self._struct.unpack(data)
        return values[0] if len(values) == 1 else values


class SpaceSize(NamedTuple):
    """Sizes of the memory of a new space, for Space(create=...), as "64M" or "2G": on the host, and on the GPU of Space(device=...)."""
    host: str = "64M"
    gpu: str | None = None


class Space:
    """An open space, by the name of `carousel hold NAME`, of a running pipeline, or of a process that has created it. `create`: if no
    process holds the space, starts a holder (`carousel hold`) with that SpaceSize, or one that takes over the space of a dead holder.
    The holder is a process of its own: it survives this one, and ends when the last client has left. `device`: the GPU, as this process
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
        self._handle = _Handle(handle, "space_close")
        if device is not None:
            call("space_map_gpu", self._handle._live(), device)

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
    while True:
        try:
            first = _Handle(_open(name, brief), "space_close")
        except c.NoHolder:
            if time.monotonic_ns() > deadline:
                raise
        else:
            handle = _open(name, options)   # with `wait` for its primitives; `first` keeps the holder meanwhile
            first._close("space_close")
            return handle
        _start_holder(name, size, device)
        brief.wait_ns = 100_000_000   # it may be ending, or taking over


def _reopen(space, method, arguments, words):
    return getattr(space, method)(*arguments, **words)


class _Primitive:
    """A primitive of a space. It keeps the space open."""

    def __init__(self, space, name, end, handle, reopen):
        self.space, self.name, self._end, self._reopen = space, name, end, reopen
        self._handle = _Handle(handle, end)

    def __repr__(self):
        return f"<carousel.{type(self).__name__} {self.name!r} of {self.space.name!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self):
        return _reopen, (self.space, *self._reopen)

    def close(self) -> None:
        """Ends this object; what this process holds of the primitive remains valid. A wait of another thread continues until it ends."""
        self._handle._close_after_use(self._end)

    def _state(self, function, state):
        call(function, self._handle._live(), ctypes.byref(state))
        return state


class _Held:
    """What this process has taken and gives back once: `abandons` is the function of the library that ends it after an exception and with
    the process, `completes` the one at the end of `with`."""

    def __init__(self, handle, abandons, completes):
        self._abandons, self._completes, self._handle = abandons, completes, _Handle(handle, abandons)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._handle._close(self._completes if kind is None else self._abandons)


class Permit(_Held):
    """A permit of this process: Semaphore.acquire() returns it. It is given back by release(), at the end of `with`, or after the death of
    this process."""

    def __init__(self, handle):
        super().__init__(handle, "permit_release", "permit_release")

    def release(self) -> None:
        """Gives the permit back. A second call does nothing."""
        self._handle._close(self._completes)


class Semaphore(_Primitive):
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


class PoolState(NamedTuple):
    """How much of a pool is in use, at some instant: Pool.state. Sizes are bytes. `blocks`: owned by processes; `in_queues`: carried by
    queues."""
    nbytes: int
    free: int
    largest_free: int
    blocks: int
    in_queues: int


class Pool(_Primitive):
    """Memory that is allocated in blocks: Space.pool() opens it."""

    def __init__(self, space, name, nbytes, unit, memory):
        super().__init__(space, name, "pool_close", opened("pool_open", space._handle._live(), name.encode(), nbytes, unit, memory),
                         ("pool", (name, nbytes), {"unit": unit, "device": "cuda" if memory == c.GPU else "cpu"}))

    def allocate(self, nbytes: int, timeout: float | None = None) -> Block:
        """Waits for a block of at least `nbytes` bytes, at most `timeout` seconds (None: no limit, 0: no wait). Raises TimedOut. The block
        contains the bytes that its previous owner has left."""
        return Block(self, opened("pool_allocate", self._handle._live(), nbytes, limit_ns(timeout)))

    def open_share(self, name: bytes) -> SharedBlock:
        """Maps a block read-only that another process has shared: `name` is what Block.share() has returned there. Raises NotHeld if the
        block no longer belongs to that process."""
        return SharedBlock(self, name)

    @property
    def state(self) -> PoolState:
        """A PoolState."""
        s = self._state("pool_get_state", c.PoolState())
        return PoolState(s.bytes, s.free_bytes, s.largest_free_bytes, s.blocks, s.in_queues)


class Block(Memory):
    """A block of a pool, which belongs to this process until it is freed, put into a queue, or this process dies. Arrays and tensors that
    are made from it are its memory, without a copy; free(), BlockQueue.put() and the end of `with` raise BufferError while one of them
    exists. If one exists at the end of the process, the block is recovered after the exit, as after a death."""

    def __init__(self, pool, handle):
        info = c.BlockInfo()
        call("block_get_info", handle, ctypes.byref(info))
        super().__init__(info, readonly=False)
        self.pool, self.meta = pool, None
        self._handle = _Handle(handle, "block_free", self._exports)

    def __repr__(self):
        return f"<carousel.Block of {self.nbytes} bytes at {self.offset} of {self.pool.name!r}{'' if self._handle.is_open else ', ended'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._handle.is_open:   # it was put into a queue, or freed
            return
        if kind is not None and self.exports:   # the frames of the exception hold arrays: the block is freed with them
            return
        self.free()

    def __reduce__(self):
        raise TypeError("a block belongs to one process: pass it on by a BlockQueue, or share() it")

    def _check(self):
        self._handle._live()

    def free(self) -> None:
        """Frees the block. On a GPU, first waits for all work that this process has enqueued there. A second call does nothing. Raises
        BufferError while an array or tensor of the block exists."""
        self._handle._close("block_free", self._exports, lambda: self._require_no_exports("free()"))

    def share(self) -> bytes:
        """Returns a name of 32 bytes, by which another process can map the block read-only (Pool.open_share). It is valid until the block is
        freed, put into a queue, or recovered after the death of this process."""
        name = c.ShareName()
        call("block_share", self._handle._live(), ctypes.byref(name))
        return bytes(name)


class SharedBlock(Memory):
    """A read-only view of a block of another process: Pool.open_share() returns it. A write to it ends the process that made it; under MPS
    it ends every client of the GPU's MPS server. The block may be freed by its owner at any time: is_valid() returns whether what was
    read is the owner's data."""

    def __init__(self, pool, name):
        if len(name) != ctypes.sizeof(c.ShareName):
            raise ValueError(f"expected the {ctypes.sizeof(c.ShareName)} bytes of Block.share(), got {len(name)}")
        words = c.ShareName.from_buffer_copy(name)
        handle = opened("share_open", pool._handle._live(), ctypes.byref(words))
        info = c.BlockInfo()
        call("share_get_info", handle, ctypes.byref(info))
        super().__init__(info, readonly=True)
        self.pool = pool
        self._handle = _Handle(handle, "share_close", self._exports)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not self.exports:
            self.close()

    def _check(self):
        self._handle._live()

    def is_valid(self) -> bool:
        """True if the block still belongs to the process that has shared it: then all that was read before this call is its data."""
        try:
            call("share_check", self._handle._live())
            return True
        except c.NotHeld:
            return False

    def close(self) -> None:
        """Unmaps the block. Raises BufferError while an array or tensor of it exists."""
        self._handle._close("share_close", self._exports, lambda: self._require_no_exports("close()"))


class Lease(_Held):
    """A leased element of a queue: Queue.lease() returns it. The end of `with` commits it, an exception returns it to the queue, as does
    the death of this process."""

    def __init__(self, handle, value):
        super().__init__(handle, "lease_return", "lease_commit")
        self.value = value

    def commit(self) -> None:
        """Removes the element from the queue. A second call does nothing."""
        self._handle._close(self._completes)

    def requeue(self) -> None:
        """Makes the element available again."""
        self._handle._close(self._abandons)


class Queue(_Primitive):
    """Passes elements from any process to any process: Space.queue() opens it. The elements of one thread stay in order."""

    def __init__(self, space, name, slots, element):
        self._codec = _Codec(element)
        handle = opened("queue_open", space._handle._live(), name.encode(), slots, self._codec.bytes, None)
        super().__init__(space, name, "queue_close", handle, ("queue", (name, slots, element), {}))

    def put(self, value: Any, timeout: float | None = None) -> None:
        """Appends an element; waits for room, at most `timeout` seconds (None: no limit, 0: no wait). Raises TimedOut."""
        call("queue_push", self._handle._live(), self._codec.encode(value), limit_ns(timeout))

    def get(self, timeout: float | None = None) -> Any:
        """Removes and returns the first element; waits for one. Raises TimedOut. An element is lost if this process dies after get():
        lease() avoids that."""
        buffer = ctypes.create_string_buffer(self._codec.bytes)
        call("queue_pop", self._handle._live(), buffer, limit_ns(timeout))
        return self._codec.decode(buffer.raw)

    def lease(self, timeout: float | None = None) -> Lease:
        """Waits for the first element and leases it: Lease.value. Raises TimedOut."""
        buffer = ctypes.create_string_buffer(self._codec.bytes)
        handle = opened("queue_lease", self._handle._live(), buffer, limit_ns(timeout))
        lease = Lease(handle, None)   # first, so that an element that can't be decoded returns to the queue
        lease.value = self._codec.decode(buffer.raw)
        return lease

    def __len__(self) -> int:
        return self._state("queue_get_state", c.QueueState()).elements

    @property
    def lost(self) -> int:
        """Number of elements that a process had taken by get() when it died."""
        return self._state("queue_get_state", c.QueueState()).lost


class BlockQueue(_Primitive):
    """Passes blocks of a pool from one process to another: Space.block_queue() opens it. At every instant a block has one owner: the
    sender, the queue or the receiver, also if one of them dies."""

    def __init__(self, space, name, pool, slots, meta):
        self._pool, self._meta = pool, _Codec(f"json {meta}")
        handle = opened("block_queue_open", space._handle._live(), name.encode(), pool._handle._live(), slots, meta, None)
        super().__init__(space, name, "block_queue_close", handle, ("block_queue", (name,), {}))

    def put(self, block: Block, meta: dict[str, Any] | None = None, timeout: float | None = None) -> None:
        """Passes the block on, with a dict of JSON values; waits for room, at most `timeout` seconds (None: no limit, 0: no wait). Raises
        TimedOut, and BufferError while an array or tensor of the block exists; then the block still belongs to this process. On a GPU,
        first waits for all work that this process has enqueued there."""
        data, limit = self._meta.encode(meta), limit_ns(timeout)
        handle = block._handle._live()._take(block._exports, lambda: block._require_no_exports("put()"))   # no array can be made meanwhile
        if handle is None:
            raise ConfigError(f"{block!r}: another thread is using it")
        try:
            call("block_queue_send", self._handle._live(), handle, data, limit)
        except BaseException:
            block._handle._box.append(handle)
            raise
        block._handle._finalizer.detach()

    def get(self, timeout: float | None = None) -> Block:
        """Waits for a block, which then belongs to this process: Block.meta is the sender's dict. Raises TimedOut."""
        buffer = ctypes.create_string_buffer(self._meta.bytes)
        handle = opened("block_queue_receive", self._handle._live(), buffer, limit_ns(timeout))
        block = Block(self._pool, handle)
        block.meta = self._meta.decode(buffer.raw)
        return block

    def __len__(self) -> int:
        return self._state("block_queue_get_state", c.QueueState()).elements


class TaskId(NamedTuple):
    """Identifies a task of a work queue; never used again."""
    place: int
    generation: int


class Task(_Held):
    """A claimed task: WorkQueue.claim() returns it. The end of `with` commits it; an exception, or the death of this process, counts as a
    failed attempt."""

    def __init__(self, handle, value):
        info = c.TaskInfo()
        call("task_get_info", handle, ctypes.byref(info))
        super().__init__(handle, "task_fail", "task_commit")
        self.value, self.id, self.failed_attempts = value, TaskId(info.id.place, info.id.generation), info.failed_attempts

    def commit(self) -> None:
        """Completes the task. A second call does nothing."""
        self._handle._close(self._completes)

    def fail(self) -> None:
        """Counts a failed attempt: the task waits again, or becomes a dead letter."""
        self._handle._close(self._abandons)


class WorkQueue(_Primitive):
    """Distributes tasks to any processes: Space.work_queue() opens it. Each task is committed once, or becomes a dead letter. Its effects
    outside the queue happen at least once, so make them idempotent per Task.id. A `for` loop claims one task after another and commits
    each at the end of its pass; break, or an exception, counts as a failed attempt of the present task unless it was committed."""

    def __init__(self, space, name, slots, element, attempts):
        self._codec = _Codec(element)
        handle = opened("work_queue_open", space._handle._live(), name.encode(), slots, self._codec.bytes, attempts, None)
        super().__init__(space, name, "work_queue_close", handle, ("work_queue", (name, slots, element), {"attempts": attempts}))

    def submit(self, value: Any, timeout: float | None = None) -> TaskId:
        """Adds a task; waits for a free place, at most `timeout` seconds (None: no limit, 0: no wait). Returns its TaskId. Raises TimedOut."""
        task = c.TaskId()
        call("work_queue_submit", self._handle._live(), self._codec.encode(value), limit_ns(timeout), ctypes.byref(task))
        return TaskId(task.place, task.generation)

    def claim(self, timeout: float | None = None) -> Task:
        """Waits for a task and claims it. Raises TimedOut."""
        buffer = ctypes.create_string_buffer(self._codec.bytes)
        handle = opened("work_queue_claim", self._handle._live(), buffer, limit_ns(timeout))
        task = Task(handle, None)   # first, so that a task that can't be decoded fails, and becomes a dead letter
        task.value = self._codec.decode(buffer.raw)
        return task

    def __iter__(self) -> Iterator[Task]:
        while True:
            with self.claim() as task:
                yield task

    def state_of(self, task: TaskId) -> str:
        """The state of the task with that TaskId: "waiting", "claimed", "dead letter" or "over"."""
        state = ctypes.c_int()
        call("work_queue_get_task_state", self._handle._live(), c.TaskId(*task), ctypes.byref(state))
        return ("waiting", "claimed", "dead letter", "over")[state.value]

    def take_dead_letter(self) -> Any:
        """Removes a dead letter and returns its value; None if there is none."""
        buffer = ctypes.create_string_buffer(self._codec.bytes)
        try:
            call("work_queue_take_dead_letter", self._handle._live(), buffer)
        except c.TimedOut:
            return None
        return self._codec.decode(buffer.raw)

    @property
    def waiting(self) -> int:
        """Number of waiting tasks, at some instant."""
        return self._state("work_queue_get_state", c.WorkQueueState()).waiting

    @property
    def dead_letters(self) -> int:
        """Number of dead letters, at some instant."""
        return self._state("work_queue_get_state", c.WorkQueueState()).dead_letters


class OwnedBlock(NamedTuple):
    """A block that a process owned when it died: PeerDeath.blocks."""
    pool: str
    offset: int
    nbytes: int


class PeerDeath(NamedTuple):
    """A client that has died, by a signal or by an exit without close(), and how many objects it held. `blocks` lists the first 256 of its
    blocks: they are free again, but one that it was sending is delivered."""
    pid: int
    blocks: list[OwnedBlock]
    block_count: int
    nbytes: int
    permits: int
    leases: int
    tasks: int


class DeathWatch:
    """Calls a function for each death: Space.on_peer_death() returns it."""

    def __init__(self, space: Space, callback: Callable[[PeerDeath], object]) -> None:
        handle = opened("space_watch_deaths", space._handle._live())
        ends = threading.Event()
        thread = threading.Thread(target=_watch_deaths, args=(handle, callback, ends), name="carousel deaths", daemon=True)
        self._finalizer = weakref.finalize(self, _end_watch, thread, ends, os.getpid())
        thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the calls; waits for one that is under way, except on its own thread."""
        self._finalizer()


def _end_watch(thread, ends, pid):
    ends.set()
    if os.getpid() == pid and thread is not threading.current_thread():
        thread.join()


def _watch_deaths(handle, callback, ends):
    while not ends.is_set():
        death = c.Death()
        try:
            call("death_watch_next", handle, 100_000_000, ctypes.byref(death))
        except c.TimedOut:
            continue
        except Error:
            traceback.print_exc()
            ends.wait(1)
            continue
        blocks = []
        for index in range(death.listed):
            block = c.OwnedBlock()
            call("death_watch_get_block", handle, index, ctypes.byref(block))
            blocks.append(OwnedBlock(block.pool.decode(), block.offset, block.bytes))
        try:
            callback(PeerDeath(death.pid, blocks, death.blocks, death.block_bytes, death.permits, death.leases, death.tasks))
        except Exception:
            traceback.print_exc()
    call("death_watch_close", handle)


def _start_holder(name, size, device):
    """Starts a holder that survives this process. Returns when it holds the space, or when another process does."""
    words = [program(), "hold", name, "--while-used", "--size", str(size.host)]
    if size.gpu is not None:
        words += ["--device", f"cuda:{device}", "--device-size", str(size.gpu)]
    with tempfile.TemporaryFile() as messages:   # not a pipe, whose reader may end before the holder
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, start_new_session=True)
        with process.stdout:
            is_held = process.stdout.readline()   # printed when it holds the space
        threading.Thread(target=process.wait, name="carousel holder", daemon=True).start()   # so that it leaves no zombie
        if is_held:
            return
        code = process.wait(10)
        messages.seek(0)
        text = messages.read().decode("utf-8", "replace").strip()
    if "is already held" not in text:
        raise ConfigError(text.splitlines()[-1].removeprefix("error: ") if text else f"{' '.join(words)}: ended with {code}")
