"""Reports of the deaths of a space's clients."""
from __future__ import annotations

import ctypes
import os
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Callable, NamedTuple, Self

from . import _space_library as c
from ._space_handle import call, opened
from ._space_library import Error

if TYPE_CHECKING:
    from ._space import Space


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
