"""Asynchronous iteration: `async for frame in port`, of a Reader, a Writer and a Latest."""
import asyncio
import concurrent.futures
import weakref

from ._carousel import Latest, Reader, Writer

_END = object()   # the stream has ended: a future cannot carry StopIteration
_waits = weakref.WeakKeyDictionary()   # a port -> its _Wait, which does not refer to the port


class _Wait:
    """The state that a port keeps after a loop over it has ended: its thread, and a frame that arrived while the loop was being
    cancelled."""

    def __init__(self):
        # A port waits for words in shared memory, and has no descriptor that an event loop could watch. So each port has one sleeping
        # thread that waits and then wakes the loop. The default executor is not used, because waits of other ports could occupy all of its
        # threads.
        self.thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="carousel-port")
        self.kept = None


class _Frames:
    """The asynchronous iterator of a port."""

    def __init__(self, port):
        self._port, self._wait = port, _waits.setdefault(port, _Wait())

    def __aiter__(self):
        return self

    async def __anext__(self):
        if (frame := self._wait.kept) is not None:
            self._wait.kept = None
            return frame
        step = asyncio.get_running_loop().run_in_executor(self._wait.thread, _step, self._port)
        try:
            frame = await asyncio.shield(step)
        except asyncio.CancelledError:
            await self._interrupt(step)
            raise
        if frame is _END:
            raise StopAsyncIteration
        return frame

    async def _interrupt(self, step):
        """Ends the wait after at most 0.1 s. So the port is free when the loop receives the cancellation, and can be closed or used
        again. A frame that has arrived is kept for the next loop."""
        self._port._interrupt(True)
        while not step.done():
            try:
                await asyncio.wait([step])
            except asyncio.CancelledError:   # this is a further cancellation; the caller raises the first one
                continue
        self._port._interrupt(False)
        if not step.cancelled() and step.exception() is None and step.result() is not _END:
            self._wait.kept = step.result()


def _step(port):
    return next(port, _END)


def _aiter(port):
    """Each step returns the next frame, as in a loop without `async`, and does not block the event loop. Cancelling the wait loses no
    frame."""
    return _Frames(port)


for _kind in (Latest, Reader, Writer):
    _kind.__aiter__ = _aiter
