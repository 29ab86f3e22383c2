"""Carousel for Python: stages of a crash-isolated pipeline, frames of a running one, and runs started from Python.

    @carousel.stage(output=carousel.like(0))        # invert.py; in the pipeline file: run = "invert.py"
    def invert(color, out):
        numpy.subtract(255, color, out=numpy.asarray(out))

    with carousel.open("demo") as run:              # observe a run
        frame = run.latest("fragment").next()
        for frame in run.reader("analysis"):        # or be one of its readers
            show(frame["color"]); frame.commit()

    run = carousel.Pipeline("demo.toml").start(device="cpu")
"""
import sys as _sys

try:
    from . import _carousel   # noqa: F401  imported here so that the code below reports a failed import
except ImportError as _failure:
    import glob as _glob
    import os as _os
    _built = [_os.path.basename(f) for f in _glob.glob(_os.path.join(_os.path.dirname(__file__), "_carousel*.so"))]
    if not _built:   # for example because the package is used from the source tree
        raise ImportError(
            f"carousel's compiled module is not in {_os.path.dirname(_os.path.abspath(__file__))}: build it, in the source tree, by "
            "cmake --build build/release --target python_package (needs python3-dev and pybind11-dev), and name build/release/python "
            "in PYTHONPATH") from None
    if (_failure.path or "").endswith(".so"):   # the module was found, but can't be loaded
        raise
    import re as _re
    _version = _re.sub(r".*cpython-(\d)(\d+).*", r"Python \1.\2", _built[0])
    raise ImportError(
        f"carousel was built for {_version}, but this interpreter ({_sys.executable}) is Python {_sys.version.split()[0]}: "
        f"use an interpreter of {_version} (for stages: the key python, or CAROUSEL_PYTHON), or build carousel for this one "
        "(cmake -DPython3_EXECUTABLE=...)") from None

from ._carousel import (Configuration, ConfigError, Error, Frame, FrameEnded, Latest, NothingNew, Plane, PortRevoked, Reader,
                        ReaderFrame, Run, Writer, WriterFrame, open, with_cuda)
from . import _async   # noqa: F401  this import adds `async for` to the ports
from ._errors import SettingsError
from ._metadata import Metadata
from ._outputs import PlaneFormat, image, like
from ._stage import Environment, Range, Stage, between, stage
from ._running import Running
from ._space import Permit, Semaphore, Space, SpaceSize
from ._space_deaths import DeathWatch, OwnedBlock, PeerDeath
from ._space_memory import BlockView
from ._space_pool import Block, Pool, PoolState, SharedBlock
from ._space_queues import BlockQueue, Lease, Queue, Task, TaskId, WorkQueue
from ._space_library import NotHeld, TimedOut
from .pipeline import Pipeline

__version__ = _carousel.__version__
__all__ = ["Block", "BlockQueue", "BlockView", "ConfigError", "Configuration", "DeathWatch", "Environment", "Error", "Frame", "FrameEnded", "Latest", "Lease",
           "Metadata", "NotHeld", "NothingNew", "OwnedBlock", "PeerDeath", "Permit", "Pipeline", "Plane", "PlaneFormat", "Pool", "PoolState", "PortRevoked", "Queue",
           "Range", "Reader", "ReaderFrame", "Run", "Running", "Semaphore", "SettingsError", "SharedBlock", "Space", "SpaceSize", "Stage", "Task",
           "TaskId", "TimedOut", "WorkQueue", "Writer", "WriterFrame", "between", "image", "like", "open", "stage", "with_cuda"]
