"""The memory of a block as arrays and tensors of other libraries, without a copy."""
from __future__ import annotations

import ctypes
import functools
import warnings
import weakref
from typing import Any

from . import _space_library as c
from ._carousel import _dlpack_capsule


@functools.lru_cache(maxsize=256)
def _bytes_type(count):
    """A type of `count` bytes, whose objects can have attributes and weak references."""
    return type("BlockBytes", (ctypes.c_ubyte * count,), {})


class _GpuBytes:
    """Bytes of GPU memory for torch and CuPy, which keep this object as long as their arrays exist."""

    def __init__(self, block, address, count, readonly):
        self._block = block
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, readonly), "version": 3, "strides": None}


_ELEMENTS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "bool": 1, "f16": 2, "f32": 4, "f64": 8,
             "bf16": 2, "f8_e4m3": 1, "f8_e5m2": 1}   # as the types of planes


def _shaped(shape, nbytes, size):
    """`shape` as a tuple, by default all `nbytes` bytes as one dimension of elements of `size` bytes; and the bytes that it has."""
    shape = (nbytes // size,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    count = size
    for n in shape:
        if n < 0:
            raise ValueError(f"shape: expected sizes of 0 or more, got {shape}")
        count *= n
    return shape, count


class BlockView:
    """A block as an array of one type, for `from_dlpack()` of any library: Block.view() returns it. Read-only memory, and the 8-bit
    floats, need a library that requests DLPack 1.0 and 1.1; others raise BufferError."""

    def __init__(self, memory, shape, dtype):
        if dtype not in _ELEMENTS:
            raise ValueError(f"dtype: expected one of {', '.join(_ELEMENTS)}, got {dtype!r}")
        self._memory, self.dtype = memory, dtype
        self.shape, self._count = _shaped(shape, memory.nbytes, _ELEMENTS[dtype])

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        memory = self._memory
        if dl_device is not None and tuple(dl_device) != memory.__dlpack_device__() or copy:
            raise BufferError(f"{memory!r} can only be shared, on {memory.device}: copy the array that is made from it")
        # `stream` needs no wait: what other processes have enqueued is complete, and this process orders its own work.
        export = memory._export(self._count, memory.readonly)
        return _dlpack_capsule(export, memory._address, self.shape, self.dtype, _ELEMENTS[self.dtype], memory._gpu, memory.readonly, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._memory.__dlpack_device__()


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
        shape, count = _shaped(shape, self.nbytes, kind.itemsize)
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
        shape, count = _shaped(shape, self.nbytes, torch.empty((), dtype=dtype).element_size())
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self.device)
        export = self._export(count, readonly=False)   # torch refuses memory with the flag; the mapping refuses writes
        if self._gpu >= 0:
            return torch.as_tensor(export, device=self.device).view(dtype).view(shape)
        view = memoryview(export).cast("B")
        with warnings.catch_warnings():   # torch has no read-only tensors, and warns of the read-only view
            warnings.simplefilter("ignore", UserWarning)
            return torch.frombuffer(view.toreadonly() if self.readonly else view, dtype=torch.uint8).view(dtype).view(shape)

    def view(self, shape: int | tuple[int, ...] | None = None, dtype: str = "u8") -> BlockView:
        """The beginning of the block for `from_dlpack()` of any library. `dtype`: a type of planes, as "f32", "bf16" or "f8_e4m3". The
        default is the whole block as bytes, as for `from_dlpack(block)`."""
        return BlockView(self, shape, dtype)

    def __dlpack__(self, **words: Any) -> Any:
        return self.view().__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._gpu < 0 else (2, self._gpu)
