"""The memory of a block as arrays and tensors of other libraries, without a copy."""
from __future__ import annotations

import ctypes
import functools
import warnings
import weakref
from typing import Any

from . import _space_library as c


@functools.lru_cache(maxsize=256)
def _bytes_type(count):
    """A type of `count` bytes, whose objects can have attributes and weak references."""
    return type("BlockBytes", (ctypes.c_ubyte * count,), {})


class _GpuBytes:
    """Bytes of GPU memory for torch and CuPy, which keep this object as long as their arrays exist."""

    def __init__(self, block, address, count, readonly):
        self._block = block
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, readonly), "version": 3, "strides": None}


class Memory:
    """What a Block and a SharedBlock have in common: their memory as arrays and tensors."""

    def __init__(self, info, *, readonly):
        self._address, self._gpu, self._exports = info.data or 0, info.gpu_ordinal if info.memory == c.GPU else -1, {}
        self.nbytes, self.offset, self.readonly = info.bytes, info.offset, readonly

    def _check(self):
        """Raises ConfigError if the memory is no longer this process's."""
        raise NotImplementedError

    @property
    def device(self) -> str:
        """Where the memory is: "cpu", or "cuda:0" in this process's numbering."""
        return "cpu" if self._gpu < 0 else f"cuda:{self._gpu}"

    @property
    def exports(self) -> int:
        """Number of exports of the memory that are still used by arrays or tensors."""
        return len(self._exports)

    def _require_no_exports(self, what):
        if count := self.exports:
            raise BufferError(f"{self!r}: {what} while {count} {'arrays or tensors use' if count > 1 else 'array or tensor uses'} its memory: "
                              "delete them first (del, or the end of their function)")

    def _export(self, count, readonly):
        """An object with the first `count` bytes. It keeps this object, and is counted while an array uses it. `readonly`: its flag, on a
        GPU."""
        if count > self.nbytes:
            raise ValueError(f"{self!r}: {count} bytes were requested, but it has {self.nbytes}")
        if self._gpu >= 0:
            export = _GpuBytes(self, self._address, count, readonly)
        else:
            export = _bytes_type(count).from_address(self._address)
            export._block = self
        exports = self._exports   # the callback must not keep this object
        reference = weakref.ref(export, lambda dead: exports.pop(id(dead), None))
        exports[id(reference)] = reference
        self._check()   # after it is counted: another thread that ends the block takes the handle before it reads the count
        return export

    def memory(self) -> memoryview:
        """The bytes as a memoryview, read-only for a SharedBlock. Host memory only."""
        if self._gpu >= 0:
            raise BufferError(f"{self!r} is on {self.device}: use tensor() or array()")
        view = memoryview(self._export(self.nbytes, self.readonly)).cast("B")
        return view.toreadonly() if self.readonly else view

    def array(self, shape: int | tuple[int, ...] | None = None, dtype: Any = "u1") -> Any:
        """An array of NumPy, or of CuPy on a GPU, at the beginning of the block. The default shape is the whole block as one dimension."""
        if self._gpu >= 0:
            import cupy as library
        else:
            import numpy as library
        kind = library.dtype(dtype)
        shape = (self.nbytes // kind.itemsize,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        count = kind.itemsize
        for n in shape:
            count *= n
        if count == 0:
            return library.empty(shape, kind)
        export = self._export(count, self.readonly)
        if self._gpu < 0:
            view = memoryview(export).cast("B")
            return library.frombuffer(view.toreadonly() if self.readonly else view, kind).reshape(shape)
        with library.cuda.Device(self._gpu):
            return library.asarray(export).view(kind).reshape(shape)

    def tensor(self, shape: int | tuple[int, ...] | None = None, dtype: Any = None) -> Any:
        """A tensor of torch at the beginning of the block, of any of torch's types. The default is the whole block as uint8."""
        import torch
        dtype = torch.uint8 if dtype is None else dtype
        size = torch.empty((), dtype=dtype).element_size()
        shape = (self.nbytes // size,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        count = size
        for n in shape:
            count *= n
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self.device)
        export = self._export(count, readonly=False)   # torch refuses memory with the flag; the mapping refuses writes
        if self._gpu >= 0:
            return torch.as_tensor(export, device=self.device).view(dtype).view(shape)
        view = memoryview(export).cast("B")
        with warnings.catch_warnings():   # torch has no read-only tensors, and warns of the read-only view
            warnings.simplefilter("ignore", UserWarning)
            return torch.frombuffer(view.toreadonly() if self.readonly else view, dtype=torch.uint8).view(dtype).view(shape)

    def __dlpack__(self, **words: Any) -> Any:
        """The whole block as bytes, for numpy.from_dlpack(block), torch.from_dlpack(block) and others, made by NumPy or CuPy."""
        return self.array().__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._gpu < 0 else (2, self._gpu)
