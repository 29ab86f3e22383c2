"""Handles of the library <carousel/space.h> as objects: each is ended once, and never while another thread uses it."""
from __future__ import annotations

import atexit
import ctypes
import os
import weakref
from typing import Self

from . import _space_library as c
from ._space_library import ConfigError, Error


class Handle:
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
    """As the library's call. No other thread can end a Handle among the arguments meanwhile."""
    used = []
    try:
        values = []
        for argument in arguments:
            if isinstance(argument, Handle):
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


def _reopen(space, method, arguments, words):
    return getattr(space, method)(*arguments, **words)


class Primitive:
    """A primitive of a space. It keeps the space open."""

    def __init__(self, space, name, end, handle, reopen):
        self.space, self.name, self._end, self._reopen = space, name, end, reopen
        self._handle = Handle(handle, end)

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


class Held:
    """What this process has taken and gives back once: `abandons` is the function of the library that ends it after an exception and with
    the process, `completes` the one at the end of `with`."""

    def __init__(self, handle, abandons, completes):
        self._abandons, self._completes, self._handle = abandons, completes, Handle(handle, abandons)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._handle._close(self._completes if kind is None else self._abandons)
