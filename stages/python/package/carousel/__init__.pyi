import os
from typing import Any, AsyncIterator, Callable, Iterator, Mapping, MutableMapping, NamedTuple, Sequence, TypedDict, overload

from ._space import Permit as Permit, Semaphore as Semaphore, Space as Space, SpaceSize as SpaceSize
from ._space_deaths import DeathWatch as DeathWatch, OwnedBlock as OwnedBlock, PeerDeath as PeerDeath
from ._space_memory import BlockView as BlockView
from ._space_pool import Block as Block, Pool as Pool, PoolState as PoolState, SharedBlock as SharedBlock
from ._space_queues import BlockQueue as BlockQueue, Lease as Lease, Queue as Queue, Task as Task, TaskId as TaskId, WorkQueue as WorkQueue
from ._space_library import NotHeld as NotHeld, TimedOut as TimedOut

__version__: str
with_cuda: bool

class Error(RuntimeError):
    """An error in Carousel, in one sentence."""
class ConfigError(Error):
    """A request is invalid: a file, a setting, a run, a port, a plane."""
class NothingNew(Error):
    """A loop got no frame for patience_s; the text names what the pipeline waits for."""
class PortRevoked(Error):
    """A frame was kept for too long: the port now belongs to another program, and the frame was not committed."""
class FrameEnded(RuntimeError):
    """A frame or a plane was used after its end."""
class SettingsError(Exception):
    """A wrong key or value of the pipeline file: (key, message). The supervisor adds its line number."""

class Plane:
    """One array of a frame: numpy.asarray(plane), torch.from_dlpack(plane) and cupy.from_dlpack(plane) are the same memory. It ends with
    its frame and raises FrameEnded afterwards; delete every array made from it before process() returns."""
    @property
    def name(self) -> str:
        """The name of the plane in the frame's format, e.g. "color"."""
    @property
    def dtype(self) -> str:
        """The type of an element: "u8", "f32", "bf16", ..."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of each dimension, the slowest first: (height, width, 4) for a picture."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next of each dimension."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without the gaps of a plane that is not dense."""
    @property
    def readonly(self) -> bool:
        """True for a plane of an input."""
    @property
    def device(self) -> str:
        """Where the memory is: "cpu", or "cuda:0" in this process's numbering."""
    @property
    def bytes(self) -> Plane:
        """The same memory as a plane of u8, with one more dimension if an element has several bytes: for types that a library does not
        support."""
    def cpu(self) -> Plane:
        """A copy in host memory, which stays valid. Waits for the GPU's work on the frame."""
    def copy_from(self, array: Any) -> None:
        """Copies a NumPy array or a tensor of the same device, type and shape into this plane; on a GPU in the order of the frame's stream.
        Raises TypeError or ValueError, with both sides, for any other array."""
    def set_used(self, *elements: int) -> None:
        """For an output: the number of elements along its first dimensions that this frame uses. Downstream stages see a plane of that
        shape."""
    def __array__(self, *dtype: Any, **words: Any) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class Metadata(MutableMapping[str, "bool | int | float | str | bytes"]):
    """Small named values of a frame: bool, int, float, str, bytes. The object is a view that ends with its frame; dict(...) makes a copy
    that remains valid."""
    def __init__(self, frame: Frame) -> None: ...
    def __getitem__(self, key: str) -> bool | int | float | str | bytes: ...
    def __setitem__(self, key: str, value: bool | int | float | str | bytes) -> None: ...
    def __delitem__(self, key: str) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class Frame:
    """A frame: the argument of a stage's function, or a frame that a port delivers. frame["color"] is a plane."""
    @property
    def frame_number(self) -> int:
        """The number of the frame, from 0: the same in every stage and on every host."""
    @property
    def time_s(self) -> float:
        """Time of the frame in the stream, in seconds: frame_number / fps, or the time in a recording."""
    @property
    def born_ns(self) -> int:
        """CLOCK_MONOTONIC, in nanoseconds, when its source started it; 0: unknown."""
    @property
    def capture_ns(self) -> int:
        """CLOCK_MONOTONIC of its capture, in nanoseconds; 0: not set. A source, or a writer, sets it."""
    @capture_ns.setter
    def capture_ns(self, ns: int) -> None: ...
    @property
    def metadata(self) -> Metadata:
        """Small named values, as a dict: bool, int, float, str, bytes. They are sent with the frame."""
    @property
    def stream(self) -> int | None:
        """The cudaStream_t as a number; None on the CPU, and after the frame's end."""
    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the frame, by name, as `carousel set` has set them for this frame."""
    @property
    def tombstone_reason(self) -> str:
        """Not empty in finish() of a tombstone frame: the frame was given up and has no planes. Only a stage with wants_tombstones=True
        receives it."""
    @property
    def first_state(self) -> bool:
        """True in a stage with state if there is no state before this frame, so that its planes are zeros."""
    @property
    def local(self) -> Any:
        """An object that belongs to this frame only, with attributes of any name, passed from process() to finish(). Attributes of self may
        belong to another frame by then."""
    @property
    def inputs(self) -> list[dict[str, Plane]]:
        """A dict of planes for each input, in the file's order."""
    @property
    def output(self) -> dict[str, Plane]:
        """The planes of the output by name; with several outputs, those of the first."""
    @property
    def outputs(self) -> dict[str, dict[str, Plane]]:
        """A dict of planes for each output, by its name; "" is an output without a name."""
    def __getitem__(self, name: str) -> Plane: ...
    def sampled(self, name: str) -> Frame | None:
        """The newest frame of a sampled input (sampled = ["pose"] in the pipeline file), complete and valid as long as this frame; None if
        there is none yet."""
    def copy(self) -> Frame:
        """A copy of the frame in host memory, which stays valid. Waits for the GPU's work on the frame."""
    def end_stream(self) -> None:
        """In a source with ends=True: the stream ends before this frame."""
    def set_hash(self, hash: int, name: str = "own") -> None:
        """In finish() of a sink, or for the frame of a reader: a hash of the frame's data, from 0 to 2**64 - 1, for the run's report. name:
        the kind of hash."""

class Latest:
    """The newest frames of a stage's output: each step of a loop is a newer frame; the loop ends with the run. Never blocks the run. At
    most eight observers per ring, over all programs."""
    def next(self, timeout_s: float = 10.0) -> Frame | None:
        """The newest frame that is newer than the previous one; None after timeout_s seconds without one, or if the run has ended. Releases
        the GIL."""
    def close(self) -> None:
        """Frees its place for another observer of the ring. Delivered frames stay valid."""
    def __iter__(self) -> Iterator[Frame]: ...
    def __next__(self) -> Frame: ...
    def __aiter__(self) -> AsyncIterator[Frame]: ...
    def __enter__(self) -> Latest: ...
    def __exit__(self, *exception: Any) -> None: ...
    @property
    def stage(self) -> str:
        """The ring that it observes."""
    @property
    def ended(self) -> bool:
        """True if the run has ended."""
    @property
    def ending(self) -> str:
        """How the run ended, after its end."""
    @property
    def losses(self) -> dict[str, int]:
        """Frames that were read but not delivered, by cause."""

class ReaderFrame(Frame):
    """A frame of a reader, until its commit(). `with frame:` commits it, unless an exception is raised."""
    def commit(self) -> None:
        """Marks the frame as read, exactly once. No array of the frame may still be held. Raises PortRevoked."""
    def __enter__(self) -> ReaderFrame: ...
    def __exit__(self, *exception: Any) -> None: ...

class WriterFrame(Frame):
    """A frame to fill, until its commit(). `with frame:` commits it; after an exception its number is used again."""
    def commit(self) -> None:
        """Publishes the frame to the downstream stages. No array of the frame may still be held. Raises PortRevoked."""
    def drop(self) -> None:
        """Discards the frame: its number is used again."""
    def __enter__(self) -> WriterFrame: ...
    def __exit__(self, *exception: Any) -> None: ...

class Reader:
    """A reading port: every frame exactly once, in order. Each step of a loop is the next frame, which must be committed; the loop ends
    with the run. `async for` waits without blocking the event loop. A port belongs to one thread at a time."""
    def next(self, timeout_s: float = 10.0) -> ReaderFrame | None:
        """The next frame; None after timeout_s seconds without one, or if the run has ended. Releases the GIL. Refused if the previous
        frame has not been committed. Raises PortRevoked."""
    def close(self) -> None:
        """Releases the port; the current frame goes to the next program."""
    def __iter__(self) -> Iterator[ReaderFrame]: ...
    def __next__(self) -> ReaderFrame: ...
    def __aiter__(self) -> AsyncIterator[ReaderFrame]: ...
    def __enter__(self) -> Reader: ...
    def __exit__(self, *exception: Any) -> None: ...
    @property
    def stage(self) -> str:
        """The port's name."""
    @property
    def ended(self) -> bool:
        """True if no further frame will be delivered."""

class Writer:
    """A writing port. Each step of a loop is a frame to fill; the loop ends with the run. `async for` waits without blocking the event
    loop. A port belongs to one thread at a time."""
    def next(self, timeout_s: float = 10.0) -> WriterFrame | None:
        """The next frame to fill; None if the ring had no free slot for timeout_s seconds, or if the run has ended. Releases the GIL. A
        frame that was not committed is dropped. Raises PortRevoked."""
    def end(self) -> None:
        """The stream ends before the next frame, or before the current one. The port needs `ends = true` in the pipeline file."""
    def close(self) -> None:
        """Releases the port; the current frame goes to the next program."""
    def __iter__(self) -> Iterator[WriterFrame]: ...
    def __next__(self) -> WriterFrame: ...
    def __aiter__(self) -> AsyncIterator[WriterFrame]: ...
    def __enter__(self) -> Writer: ...
    def __exit__(self, *exception: Any) -> None: ...
    @property
    def stage(self) -> str:
        """The port's name."""
    @property
    def ended(self) -> bool:
        """True if no further frame will be delivered."""

class Run:
    """An open run: with carousel.open("demo") as run. The end of `with` closes everything that was opened from it."""
    def latest(self, stage: str = "", patience_s: float = 10.0) -> Latest:
        """Opens the newest frames of the output of `stage`; "": of the input of the last sink. patience_s: seconds that one step of a loop
        waits before it raises NothingNew. Raises ConfigError for a ring that does not exist, and Error if all eight places of its
        observers are taken."""
    def reader(self, name: str, *, planes: Mapping[str, str] = ..., patience_s: float = 10.0) -> Reader:
        """Opens the reading port `name`. planes: the planes that this program expects, e.g. {"color": "u8[720,1280,4]"}; others are
        refused. patience_s: seconds that one step of a loop waits before it raises NothingNew. Raises ConfigError, with the cause, if
        the port does not exist, has other planes, or belongs to another program."""
    def writer(self, name: str, *, planes: Mapping[str, str] = ..., patience_s: float = 10.0) -> Writer:
        """Opens the writing port `name`, in the same way."""
    @property
    def stages(self) -> list[str]:
        """The stages that have an output."""
    @property
    def name(self) -> str:
        """The run's name."""
    def close(self) -> None:
        """Closes everything that latest(), reader() and writer() have opened. Frames of latest() stay valid."""
    def __enter__(self) -> Run: ...
    def __exit__(self, *exception: Any) -> None: ...

def open(name: str, *, device: str = "", wait_s: float = 5.0) -> Run:
    """Opens the run of that name, of this user. device: where frames are delivered: "" (where they are), "cpu" or "cuda:0". Waits up to
    wait_s seconds for the run to start. An open run and its ports belong to one thread at a time. Raises ConfigError if there is no such
    run."""

class Configuration:
    """The argument of output=... functions: the pipeline's picture size, the inputs, the settings."""
    @property
    def stage(self) -> str:
        """The stage's name."""
    @property
    def width(self) -> int:
        """The width of the pipeline's pictures, in pixels."""
    @property
    def height(self) -> int:
        """The height of the pipeline's pictures, in pixels."""
    @property
    def fps(self) -> float:
        """The pipeline's frames per second; 0: as fast as possible."""
    @property
    def device(self) -> str:
        """As in the file: "auto", "cpu", "cuda:0"."""
    @property
    def folder(self) -> str:
        """Absolute path of the folder to which relative paths in the pipeline file refer."""
    @property
    def inputs(self) -> dict[str, dict[str, PlaneFormat]]:
        """A dict of planes for each input, by its name in the file, in the file's order: config.inputs["camera"]["color"].shape, and
        .dtype."""
    @property
    def settings(self) -> dict[str, Any]:
        """The stage's settings, as its function receives them: config.settings["strength"]."""

class Environment(TypedDict):
    """The argument of prepare(env) of a stage's class, which is called once per process. device: the device on which the stage's planes
    are, "cpu" or "cuda:0", numbered as in this process. instance: the number of this process among the stage's processes, from 0.
    in_flight: the maximum number of frames that the process works on at once. output_directory: for files that the user keeps,
    runs/NAME-DATE in the directory in which the run was started; it is created when the key is read. runtime_directory: the directory of
    the run's sockets, state and logs; the run removes it at its end."""
    device: str
    instance: int
    in_flight: int
    output_directory: str
    runtime_directory: str

class PlaneFormat(NamedTuple):
    """A plane in config.inputs; also accepted by output=. Its text is "u8[720, 1280, 4]"."""
    dtype: str
    shape: tuple[int, ...]

class Range(NamedTuple):
    """The permitted range of a number; created by between()."""
    low: float
    high: float

def between(low: float, high: float) -> Range:
    """Limits a setting to [low, high], in its type: strength: Annotated[float, carousel.between(0, 4)] = 0.5"""

class like:
    """output=carousel.like(0): the output has the format of input 0."""
    index: int
    def __init__(self, index: int = 0) -> None: ...

class image:
    """output=carousel.image(): an image, u8[height, width, 4]; the default size is the pipeline's."""
    width: int | None
    height: int | None
    def __init__(self, width: int | None = None, height: int | None = None) -> None: ...

class Stage:
    """A function or a class as a stage. The object can still be called like the function or class itself, with arrays instead of planes."""
    name: str
    def __call__(self, *arguments: Any, **settings: Any) -> Any: ...

_Format = like | image | Mapping[str, "str | PlaneFormat"]

_Output = _Format | Callable[[Configuration], _Format | None] | None

_State = Mapping[str, str | PlaneFormat] | Callable[[Configuration], Mapping[str, str | PlaneFormat]] | None
_Outputs = Mapping[str, _Format] | Callable[[Configuration], Mapping[str, _Format]] | None

@overload
def stage(target: Callable[..., Any], *, output: _Output = None, outputs: _Outputs = None, device: str = "any",
          ends: bool = False, writable_inputs: bool = False, reads: Sequence[str] = (), wants_tombstones: bool = False,
          state: _State = None, bit_equal: bool = False) -> Stage:
    """Makes a stage of a function, or of a class with process(self, ...) if it has state to prepare.

    Positional arguments are the frame's planes by name: frame (the frame itself), color (a plane of an input), out (the output's only
    plane), out_color (its plane color), fragment_color (the plane color of input fragment, if several inputs have one). Keyword
    arguments with a type (of a class: those of __init__) are the stage's settings in the pipeline file. A class may have prepare(self,
    env), called once with an Environment, and finish(self, frame), called after the work on each frame is complete.

    output: the format that the stage writes: carousel.like(0), carousel.image(), {"depth": "f32[720, 1280]"}, or a function that
    computes one of these from the Configuration (config.inputs["camera"]["color"].shape, config.settings["factor"], ...); None: a sink.
    outputs: for several outputs, a dict of formats by name, one ring per output: {"color": carousel.like(0), "depth": {"z": "f32[720,
    1280]"}}. out_depth is then the only plane of output depth, out_depth_z its plane z, and out_z the plane z of the only output that
    has one. device: where it can run, "any", "cpu", "cuda". ends: a source that may call frame.end_stream(). writable_inputs: the planes
    of its inputs can be written, for a library that requires writable memory; other readers of that frame see the changes, and the run's
    plan reports the inputs as unguarded. reads: planes that are read as frame["color"], so that `carousel validate` checks them as it
    checks arguments. wants_tombstones: finish() is also called for frames that were abandoned, here or upstream
    (frame.tombstone_reason), which have no planes. state: planes that the stage remembers from frame to frame,
    {"history": "f32[height, width, 4]"}, or a function of the Configuration. The argument history is then the plane as the frame before
    has left it, read-only, and out_history the plane as this frame leaves it, which must be written as a whole. They are committed with
    the frame, so a killed stage continues from them. The first frame gets zeros (frame.first_state). bit_equal: outputs and state are
    the same bytes on the CPU as on a GPU, so a run with fallback="cpu" may move the stage to the CPU if the GPU fails.

    finish() of a frame runs after process() of later frames. Data that finish() needs of its own frame must be kept in frame.local, not
    in self."""
@overload
def stage(target: None = None, *, output: _Output = None, outputs: _Outputs = None, device: str = "any",
          ends: bool = False, writable_inputs: bool = False, reads: Sequence[str] = (), wants_tombstones: bool = False,
          state: _State = None, bit_equal: bool = False) -> Callable[[Callable[..., Any]], Stage]: ...

class Pipeline:
    """A pipeline, read from a file, Pipeline("demo.toml"), or built in Python, Pipeline(stages=[...]). start() and run() run it.

    stages: one entry per stage, a dict with the keys of [[stage]] in a pipeline file (name, run, inputs, the stage's own settings, ...),
    or a function or class with @carousel.stage, which is short for {"run": function}. The key `run` of a dict may be such a function, too,
    even a function in this program's own file: the stage then has the function's name, unless the dict has a name. A program whose own file
    has stages starts its pipeline below `if __name__ == "__main__":`, because the stages' processes load that file.

    parameters, link, hosts: dicts with the content of the sections of these names in a pipeline file. All other arguments are keys of
    [pipeline] (name, fps, size, device, ...), with the same default values; the default name is "pipeline". Relative paths refer to
    `folder`, by default the current directory. A key whose value is None is left out. Raises ConfigError for a file that can't be read or
    parsed, and, with the stage and the key, for values that have no TOML form; start() checks everything else."""
    name: str
    file: str | None
    folder: str
    @overload
    def __init__(self, file: str | os.PathLike[str]) -> None: ...
    @overload
    def __init__(self, *, stages: Sequence[Mapping[str, Any] | Stage], parameters: Mapping[str, Any] | None = None,
                 link: Mapping[str, Mapping[str, Any]] | None = None, hosts: Mapping[str, Mapping[str, Any]] | None = None,
                 **pipeline: Any) -> None: ...
    def to_toml(self) -> str:
        """Returns the pipeline as the text of a pipeline file, without the comments of a file that it was read from. Its key `folder` is
        absolute, so that the text has the same meaning in any folder."""
    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the pipeline to a pipeline file, for the command `carousel` and Pipeline(file). The file has the key `folder` unless it is
        in the pipeline's folder."""
    def start(self, *, device: str | None = None, frames: int | None = None, fps: float | None = None, name: str | None = None,
              options: Sequence[str] = (), wait_s: float = 60.0) -> Running:
        """Starts the pipeline and returns a Running when all stages run; programs may enter its ports later. device, frames, fps, name:
        replace the keys of [pipeline] with these names. options: further arguments for `carousel run`, e.g. ["--out", ""]. Raises
        ConfigError if the pipeline is refused, with the stage and the key or with the place in the file, and Error if it does not start
        for another reason, or does not run within wait_s seconds."""
    def run(self, **options: Any) -> dict[str, Any]:
        """Starts the pipeline, waits for its end, and returns its report (Running.report()); options: those of start(). Ctrl-C ends the
        run, after its last frame."""

class Running:
    """A pipeline that this process has started: Pipeline.start() returns it. The run ends with end(), after its last frame, at the end of
    `with`, or when this process exits. If this process is killed (SIGKILL, a fault) the run continues; `carousel down` then ends it.

    A stage is named as in `carousel ps`: "fragment" means all its instances, "fragment.1" one of them. Each method that acts on a stage
    returns when the supervisor has carried the request out, and raises Error with its reason if it refuses. Any thread may call any
    method."""
    name: str
    log: str
    def state(self) -> str:
        """Returns "starting", "running", "paused", "waiting", ..., or "done" when it is over."""
    def ps(self) -> dict[str, Any]:
        """Returns the output of `carousel ps --json` for the run."""
    def kill(self, stage: str, sig: str | int = "KILL") -> None:
        """Sends a signal, by name or number, to a stage's process, which is then replaced according to its restart policy."""
    def restart(self, stage: str) -> None:
        """Restarts a stage, with the program that is on disk now. No frame is lost. If the program can't be this stage, for example
        because its output has changed, the request is refused and the old process continues."""
    def pause(self, stage: str) -> None:
        """Pauses a stage: its process stops (SIGSTOP), and no timeout runs. The pipeline waits until resume(). If the process dies
        meanwhile, its successor is paused as well."""
    def resume(self, stage: str) -> None:
        """Continues a paused stage. Refused if it is not paused."""
    def down(self, stage: str) -> None:
        """Ends the processes of a stage until up(): the pipeline waits, and keeps every frame. end() ends the whole run."""
    def up(self, stage: str) -> None:
        """Starts a stage that is down or has failed."""
    def inject(self, stage: str, fault: str = "hang") -> None:
        """Makes a stage fail at its next frame, to test the pipeline: "hang" (found at frame_timeout_ms), "exit", "abort", "gpu-fault" and
        others; `carousel inject --help` lists them."""
    def set(self, **parameters: Any) -> None:
        """Sets parameters during the run."""
    def open(self, *, device: str = "", wait_s: float = 5.0) -> Run:
        """Opens the run to read its frames: carousel.open()."""
    def logs(self, *stages: str, level: str = "debug", lines: int | None = None) -> list[dict[str, Any]]:
        """Returns the run's log lines, oldest first, as dicts: time (UTC, "2026-01-31T12:00:00.000Z"), stage ("carousel": the supervisor),
        pid, level ("debug", "info", "warning", "error"), line (text without the stage's name). stages: if given, only the lines of these
        stages are returned. level: only lines of this level and above. lines: only the last N. The run keeps 4 to 8 MiB per stage and
        deletes them at its end, unless it was started with start(options=["--keep-logs"]). Raises Error if the logs were deleted."""
    def log_text(self, lines: int = 15) -> str:
        """Returns the last lines of what the run has printed, as text. logs() returns the lines of stages one by one, with their levels."""
    def metrics(self) -> dict[str, float]:
        """Returns the run's metrics as a dict {"NAME{LABELS}": value}. The names and units are those of GET /metrics, with which the web
        UI serves the metrics to Prometheus, e.g. 'carousel_run_frames_total'. Needs the program carousel-web, which is not part of a
        build without extras."""
    def trace(self, file: str | os.PathLike[str], *, seconds: float | None = None, frames: int | None = None) -> str:
        """Records every frame through every stage into a file for ui.perfetto.dev, and returns the file's path. Blocks until the
        recording ends: after `seconds` (default: 5 s if `frames` is not given), when `frames` frames have passed, or at the end of the
        run. If only `frames` is given, the call also waits while the pipeline is paused; `seconds` limits this wait."""
    def wait(self, timeout_s: float | None = None) -> int | None:
        """Waits for the end of the run and returns its exit code; returns None if it still runs after timeout_s seconds."""
    def report(self) -> dict[str, Any]:
        """Returns the report of a finished run; during the run its current values under the same keys. Values that are known only at the
        end are None during the run: lost, repeated, torn, ending, exit_code. ps() returns more about a run that is in progress. Raises
        Error if a run wrote no report."""
    def end(self, timeout_s: float = 30.0) -> int | None:
        """Ends the run in the same way as Ctrl-C and `carousel down`: the frames that have begun are finished first. If the run has not
        ended after timeout_s seconds, its stages are ended at once. Returns the exit code, or None if the run has not ended within
        timeout_s further seconds."""
    def __enter__(self) -> Running: ...
    def __exit__(self, *exception: Any) -> None: ...
