"""Queues of a space: of elements, of blocks, and of tasks."""
from __future__ import annotations

import ctypes
import json
import struct
from typing import Any, Iterator, NamedTuple

from . import _space_library as c
from ._space_handle import Held, Primitive, call, opened
from ._space_library import ConfigError, limit_ns
from ._space_pool import Block


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


class Lease(Held):
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


class Queue(Primitive):
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


class BlockQueue(Primitive):
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


class Task(Held):
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


class WorkQueue(Primitive):
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
