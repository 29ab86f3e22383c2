"""The C interface <carousel/space.h> by ctypes: declarations, errors, and waits that Ctrl-C ends. Every call releases the GIL."""
import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from ._carousel import ConfigError, Error

OK, TIMED_OUT, INTERRUPTED, INVALID_ARGUMENT, NO_HOLDER, REFUSED, NOT_HELD, FORKED = range(8)
NO_LIMIT = -1


class TimedOut(Error, TimeoutError):
    """A wait has reached its timeout. The text names the processes that hold what was waited for."""


class NoHolder(ConfigError):
    """No process holds the space; a later attempt may succeed."""


class NotHeld(Error):
    """An object does not exist, or no longer belongs to the process that had it."""


class _Structure(ctypes.Structure):
    def __init__(self):
        super().__init__(ctypes.sizeof(self))


class SpaceOptions(_Structure):
    _fields_ = [("size", c_size_t), ("wait_ns", c_int64)]


class SpaceInfo(_Structure):
    _fields_ = [("size", c_size_t), ("bytes", c_uint64), ("gpu_bytes", c_uint64), ("epoch", c_uint32), ("is_held", c_int32),
                ("gpu_ordinal", c_int32), ("reserved", c_uint32)]


class Shape(_Structure):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("each", c_uint64), ("max_attempts", c_uint32), ("kind", c_int32),
                ("memory", c_int32), ("reserved", c_uint32), ("pool", ctypes.c_char * 48)]


class SemaphoreState(_Structure):
    _fields_ = [("size", c_size_t), ("free", c_uint32), ("waiting", c_uint32)]


class PoolState(_Structure):
    _fields_ = [("size", c_size_t), ("bytes", c_uint64), ("free_bytes", c_uint64), ("largest_free_bytes", c_uint64), ("blocks", c_uint32),
                ("in_queues", c_uint32)]


class BlockInfo(_Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("bytes", c_uint64), ("offset", c_uint64), ("memory", c_int32),
                ("gpu_ordinal", c_int32)]


class ShareName(ctypes.Structure):
    _fields_ = [("word", c_uint64 * 4)]


class QueueState(_Structure):
    _fields_ = [("size", c_size_t), ("elements", c_uint64), ("lost", c_uint64), ("abandoned", c_uint64)]


class TaskId(ctypes.Structure):
    _fields_ = [("place", c_uint32), ("generation", c_uint32)]


class TaskInfo(_Structure):
    _fields_ = [("size", c_size_t), ("id", TaskId), ("failed_attempts", c_uint32), ("reserved", c_uint32)]


class WorkQueueState(_Structure):
    _fields_ = [("size", c_size_t), ("waiting", c_uint32), ("dead_letters", c_uint32)]


class Death(_Structure):
    _fields_ = [("size", c_size_t), ("pid", c_int32), ("epoch", c_uint32), ("blocks", c_uint64), ("block_bytes", c_uint64),
                ("permits", c_uint64), ("leases", c_uint64), ("tasks", c_uint64), ("listed", c_uint32), ("reserved", c_uint32)]


class OwnedBlock(_Structure):
    _fields_ = [("size", c_size_t), ("offset", c_uint64), ("bytes", c_uint64), ("pool", ctypes.c_char * 48)]


SEMAPHORE, QUEUE, BLOCK_QUEUE, WORK_QUEUE, POOL = range(1, 6)
HOST, GPU = 0, 1
_NAME = "libcarousel-space.so.0"


def _load():
    """Loads the library: next to this package (a wheel), of the same build or installation, otherwise of the system."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (".", "../..", "../../.."):   # BUILD/python/carousel, PREFIX/lib/carousel/python/carousel, lib/python3.N/site-packages/carousel
        path = os.path.normpath(os.path.join(here, folder, _NAME))
        if os.path.exists(path):
            return ctypes.CDLL(path)
    try:
        return ctypes.CDLL(_NAME)
    except OSError as failure:
        raise Error(f"{_NAME} can't be loaded ({failure}): build the target carousel_space, or install the package carousel") from None


_HANDLE, _TO_HANDLE, _TEXT = c_void_p, POINTER(c_void_p), c_char_p
_SIGNATURES = {
    "space_open": (_TEXT, POINTER(SpaceOptions), _TO_HANDLE), "space_close": (_HANDLE,),
    "space_get_info": (_HANDLE, POINTER(SpaceInfo)), "space_find": (_HANDLE, _TEXT, POINTER(Shape)), "space_map_gpu": (_HANDLE, c_int32),
    "semaphore_open": (_HANDLE, _TEXT, c_uint32, _TO_HANDLE), "semaphore_close": (_HANDLE,),
    "semaphore_acquire": (_HANDLE, c_int64, _TO_HANDLE), "semaphore_get_state": (_HANDLE, POINTER(SemaphoreState)),
    "permit_release": (_HANDLE,),
    "pool_open": (_HANDLE, _TEXT, c_uint64, c_uint64, c_int, _TO_HANDLE), "pool_close": (_HANDLE,),
    "pool_allocate": (_HANDLE, c_uint64, c_int64, _TO_HANDLE), "pool_get_state": (_HANDLE, POINTER(PoolState)),
    "block_free": (_HANDLE,), "block_get_info": (_HANDLE, POINTER(BlockInfo)), "block_share": (_HANDLE, POINTER(ShareName)),
    "share_open": (_HANDLE, POINTER(ShareName), _TO_HANDLE), "share_get_info": (_HANDLE, POINTER(BlockInfo)), "share_check": (_HANDLE,),
    "share_close": (_HANDLE,),
    "queue_open": (_HANDLE, _TEXT, c_uint32, c_uint32, _TEXT, _TO_HANDLE), "queue_close": (_HANDLE,),
    "queue_push": (_HANDLE, c_void_p, c_int64), "queue_pop": (_HANDLE, c_void_p, c_int64),
    "queue_lease": (_HANDLE, c_void_p, c_int64, _TO_HANDLE), "lease_commit": (_HANDLE,), "lease_return": (_HANDLE,),
    "queue_get_state": (_HANDLE, POINTER(QueueState)),
    "block_queue_open": (_HANDLE, _TEXT, _HANDLE, c_uint32, c_uint32, _TEXT, _TO_HANDLE), "block_queue_close": (_HANDLE,),
    "block_queue_send": (_HANDLE, _HANDLE, c_void_p, c_int64), "block_queue_receive": (_HANDLE, c_void_p, c_int64, _TO_HANDLE),
    "block_queue_get_state": (_HANDLE, POINTER(QueueState)),
    "work_queue_open": (_HANDLE, _TEXT, c_uint32, c_uint32, c_uint32, _TEXT, _TO_HANDLE), "work_queue_close": (_HANDLE,),
    "work_queue_submit": (_HANDLE, c_void_p, c_int64, POINTER(TaskId)), "work_queue_claim": (_HANDLE, c_void_p, c_int64, _TO_HANDLE),
    "work_queue_take_dead_letter": (_HANDLE, c_void_p), "work_queue_get_task_state": (_HANDLE, TaskId, POINTER(c_int)),
    "work_queue_get_state": (_HANDLE, POINTER(WorkQueueState)), "task_get_info": (_HANDLE, POINTER(TaskInfo)), "task_commit": (_HANDLE,),
    "task_fail": (_HANDLE,),
    "space_watch_deaths": (_HANDLE, _TO_HANDLE), "death_watch_next": (_HANDLE, c_int64, POINTER(Death)),
    "death_watch_get_block": (_HANDLE, c_uint32, POINTER(OwnedBlock)), "death_watch_close": (_HANDLE,)}
_CHECK = ctypes.CFUNCTYPE(c_int, c_void_p)
_library = None
_lock = threading.Lock()


def library():
    """The loaded library; the first call loads it, so that programs without spaces do not need it."""
    global _library
    if _library is not None:   # without the lock, which a signal handler or a forked child could find locked
        return _library
    with _lock:
        if _library is None:
            loaded = _load()
            for name, arguments in _SIGNATURES.items():
                function = getattr(loaded, "carousel_" + name)
                function.argtypes, function.restype = arguments, c_int
            loaded.carousel_last_error.restype = c_char_p
            loaded.carousel_set_wait_check.argtypes, loaded.carousel_set_wait_check.restype = (_CHECK, c_void_p), None
            _library = loaded
    return _library


_caught = None   # the exception by which a signal handler has ended a wait of the main thread


def _signals():
    """A generator that is resumed before each sleep of a wait. Python runs pending signal handlers when a generator is resumed, so an
    exception of a handler is raised at `yield`, inside this `try`."""
    global _caught
    ends = 0
    while True:
        try:
            while True:
                yield ends
                ends = 0
        except GeneratorExit:
            return
        except BaseException as exception:
            trace = exception.__traceback__   # without this frame: traceback.clear_frames() would end the generator
            _caught, ends = exception.with_traceback(trace and trace.tb_next), 1
            del trace


_generator = _signals()
next(_generator)
_check = _CHECK(_generator.send)   # called by the library on the main thread; a C function, so nothing else runs before the generator
_checked = threading.local()       # whether the thread has its wait check


def call(name, *arguments):
    """Calls carousel_NAME. Raises the exception that belongs to the status."""
    global _caught
    lib = library()
    if not getattr(_checked, "is_set", False):
        _checked.is_set = True
        if threading.current_thread() is threading.main_thread():   # Python handles signals on this thread only
            lib.carousel_set_wait_check(_check, None)
    status = getattr(lib, "carousel_" + name)(*arguments)
    if status == OK:
        return
    if status == INTERRUPTED and _caught is not None:
        exception, _caught = _caught, None
        raise exception
    text = (lib.carousel_last_error() or b"").decode("utf-8", "replace")
    kind = {TIMED_OUT: TimedOut, NOT_HELD: NotHeld, NO_HOLDER: NoHolder, REFUSED: ConfigError, INVALID_ARGUMENT: ConfigError}.get(status, Error)
    raise kind(text)


def limit_ns(timeout):
    """A timeout in seconds as nanoseconds; None: no limit."""
    if timeout is None:
        return NO_LIMIT
    if not timeout >= 0:
        raise ValueError(f"timeout: expected seconds, 0 or more, or None, got {timeout!r}")
    return int(min(timeout, 1e9) * 1e9)
