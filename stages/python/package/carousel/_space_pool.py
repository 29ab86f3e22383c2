"""Pools of a space, and the blocks that they allocate."""
from __future__ import annotations

import ctypes
from typing import NamedTuple, Self

from . import _space_library as c
from ._space_handle import Handle, Primitive, call, opened
from ._space_library import limit_ns
from ._space_memory import Memory


class PoolState(NamedTuple):
    """How much of a pool is in use, at some instant: Pool.state. Sizes are bytes. `blocks`: owned by processes; `in_queues`: carried by
    queues."""
    nbytes: int
    free: int
    largest_free: int
    blocks: int
    in_queues: int


class Pool(Primitive):
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
        self._handle = Handle(handle, "block_free", self._exports)

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
        self._handle = Handle(handle, "share_close", self._exports)

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
