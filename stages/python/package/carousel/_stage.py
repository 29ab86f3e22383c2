"""Stages: the decorator, and the adapter between a Python function and the runner."""
import functools
import inspect
import json
import os
import typing

from ._carousel import ConfigError
from ._errors import SettingsError
from ._outputs import arguments_of, formats_of, planes_of, spelled, state_of

loading = ""   # the file that carousel_stage.py is loading; "": it is loading none

NO_LIMIT = 2**63 - 1
HUGE = 1.7976931348623157e308


class Range(typing.NamedTuple):
    """The permitted range of a number; created by between()."""
    low: float
    high: float


def between(low, high):
    """Limits a setting to [low, high], in its type: strength: Annotated[float, carousel.between(0, 4)] = 0.5"""
    return Range(low, high)


class Environment(typing.TypedDict):
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


class _CreatedOnUse(dict):
    """An Environment whose output_directory is created when it is read: a stage without files leaves no directory."""

    def __init__(self, values, create):
        super().__init__(values)
        self._create = create

    def __missing__(self, key):
        if key != "output_directory":
            raise KeyError(key)
        self[key] = self._create()
        return self[key]

    def __contains__(self, key):
        return key == "output_directory" or super().__contains__(key)

    def get(self, key, default=None):
        return self[key] if key in self else default


class Setting(typing.NamedTuple):
    name: str
    kind: type
    default: object   # inspect.Parameter.empty: it is required
    low: float
    high: float
    choices: tuple

    def read(self, config):
        """Returns the setting's value from the pipeline file. An error contains the setting's key, from which the supervisor finds the
        line in the file."""
        try:
            return self._read(config)
        except SettingsError as failure:
            if not self.limited and ": expected " in failure.args[1]:
                failure = SettingsError(self.name, f"{failure.args[1].split(': expected ')[0]}: expected {self.expected()}")
            raise failure from None

    @property
    def limited(self):
        return bool(self.choices) or abs(self.low) not in (HUGE, NO_LIMIT)

    def _read(self, config):
        required = self.default is inspect.Parameter.empty
        if required and not config._has(self.name):
            raise SettingsError(self.name, f"{self.name} is missing; expected {self.expected()}")
        if self.choices:
            return config._choice(self.name, self.choices[0] if required else self.default, list(self.choices))
        if self.kind is bool:
            return config._flag(self.name, False if required else self.default)
        if self.kind is int:
            return config._integer(self.name, int(self.low) if required else self.default, int(self.low), int(self.high))
        if self.kind is float:
            return config._number(self.name, self.low if required else self.default, self.low, self.high)
        return config._text(self.name, "" if required else self.default)

    def expected(self):
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}[self.kind]


def _settings_of(function, owner):
    settings = []
    hints = typing.get_type_hints(function, include_extras=True)
    for p in inspect.signature(function).parameters.values():
        if p.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        hint, low, high, choices = hints.get(p.name), None, None, ()
        if typing.get_origin(hint) is typing.Annotated:
            limits = [m for m in hint.__metadata__ if isinstance(m, Range)]
            low, high = limits[0] if limits else (None, None)
            hint = hint.__origin__
        if typing.get_origin(hint) is typing.Literal:
            choices, hint = typing.get_args(hint), str
        if hint not in (bool, int, float, str) or not all(isinstance(c, str) for c in choices):
            raise ConfigError(f"{owner}: the setting {p.name} needs a type: bool, int, float, str or a Literal of texts, e.g. "
                              f"{p.name}: float = 0.5")
        limit = NO_LIMIT if hint is int else HUGE
        settings.append(Setting(p.name, hint, p.default, -limit if low is None else low, limit if high is None else high, choices))
    return settings


def _names_of(function, owner, bound):
    """Returns the names of the positional arguments: the frame and planes."""
    names = []
    for p in list(inspect.signature(function).parameters.values())[1 if bound else 0:]:
        if p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise ConfigError(f"{owner}: {p} is not supported; name the planes as arguments")
        if p.kind is not inspect.Parameter.KEYWORD_ONLY:
            names.append(p.name)
    return names


class Stage:
    """A function or a class as a stage. The object can still be called like the function or class itself, with arrays instead of
    planes."""

    def __init__(self, target, output, outputs, device, ends, writable_inputs, reads, wants_tombstones, state, bit_equal):
        self.target, self.output, self.outputs, self.device, self.ends, self.state = target, output, outputs, device, ends, state
        self.writable_inputs, self.reads, self.wants_tombstones = writable_inputs, tuple(reads), wants_tombstones
        self.bit_equal = bit_equal
        self.name, self.module, self.__doc__ = target.__name__, target.__module__, target.__doc__
        self.is_class = inspect.isclass(target)
        if self.is_class and not callable(getattr(target, "process", None)):
            raise ConfigError(f"{self.name}: a stage's class needs process(self, ...)")
        if device not in ("any", "cpu", "cuda"):
            raise ConfigError(f"{self.name}: device={device!r}: expected \"any\", \"cpu\" or \"cuda\"")
        if output is not None and outputs is not None:
            raise ConfigError(f"{self.name}: output= and outputs= exclude each other; use outputs= for several outputs, each with a name")
        own_init = self.is_class and target.__init__ is not object.__init__
        self.settings = _settings_of(target.__init__, self.name) if own_init else \
            [] if self.is_class else _settings_of(target, self.name)
        self.arguments = _names_of(target.process if self.is_class else target, self.name, self.is_class)
        self.finishes = self.is_class and hasattr(target, "finish")
        if isinstance(reads, str) or not all(isinstance(name, str) for name in self.reads):
            raise ConfigError(f"{self.name}: reads={reads!r}: expected names of planes, e.g. reads=[\"color\"]")
        if wants_tombstones and not self.finishes:
            raise ConfigError(f"{self.name}: wants_tombstones=True needs a class with finish(self, frame), which receives the tombstones")

    def __call__(self, *arguments, **settings):
        return self.target(*arguments, **settings)

    def __repr__(self):
        keys = ", ".join(f"{s.name}: {s.kind.__name__}" for s in self.settings)
        return (f"<carousel.Stage {self.name}({', '.join(self.arguments)}{'; ' + keys if keys else ''}) -> "
                f"{self.output if self.outputs is None else self.outputs!r}>")


def stage(target=None, *, output=None, outputs=None, device="any", ends=False, writable_inputs=False, reads=(), wants_tombstones=False,
          state=None, bit_equal=False):
    """Makes a stage of a function, or of a class with process(self, ...) if it has state to prepare.

    Positional arguments are the frame's planes by name: frame (the frame itself), color (a plane of an input), out (the output's only
    plane), out_color (its plane color), fragment_color (the plane color of input fragment, if several inputs have one). Keyword
    arguments with a type (of a class: those of __init__) are the stage's settings in the pipeline file. A class may have
    prepare(self, env), called once with an Environment, and finish(self, frame), called after the work on each frame is complete.

    output: the format that the stage writes: carousel.like(0), carousel.image(), {"depth": "f32[720, 1280]"}, or a function that
    computes one of these from the Configuration (config.inputs["camera"]["color"].shape, config.settings["factor"], ...); None: a sink.
    outputs: for several outputs, a dict of formats by name, one ring per output: {"color": carousel.like(0), "depth": {"z": "f32[720,
    1280]"}}. out_depth is then the only plane of output depth, out_depth_z its plane z, and out_z the plane z of the only output that
    has one. device: where it can run, "any", "cpu", "cuda". ends: a source that may call frame.end_stream().
    writable_inputs: the planes of its inputs can be written, for a library that requires writable memory; other readers of that frame
    see the changes, and the run's plan reports the inputs as unguarded. reads: planes that are read as frame["color"], so that
    `carousel validate` checks them as it checks arguments. wants_tombstones: finish() is also called for frames that were abandoned,
    here or upstream (frame.tombstone_reason), which have no planes. state: planes that the stage remembers from frame to frame,
    {"history": "f32[height, width, 4]"}, or a function of the Configuration. The argument history is then the plane as the frame before
    has left it, read-only, and out_history the plane as this frame leaves it, which must be written as a whole. They are committed with
    the frame, so a killed stage continues from them. The first frame gets zeros (frame.first_state). bit_equal: outputs and state are
    the same bytes on the CPU as on a GPU, so a run with fallback="cpu" may move the stage to the CPU if the GPU fails.

    finish() of a frame runs after process() of later frames. Data that finish() needs of its own frame must
    be kept in frame.local, not in self.
    """
    if target is None:
        return functools.partial(stage, output=output, outputs=outputs, device=device, ends=ends, writable_inputs=writable_inputs,
                                 reads=reads, wants_tombstones=wants_tombstones, state=state, bit_equal=bit_equal)
    return Stage(target, output, outputs, device, ends, writable_inputs, reads, wants_tombstones, state, bit_equal)


class Adapter:
    """The object that the runner calls."""

    def __init__(self, of):
        self.stage, self.finishes, self.values = of, of.finishes, {}

    def configure(self, config):
        inputs = [(name, json.loads(text)) for name, text in config._inputs]
        self.values = {s.name: s.read(config) for s in self.stage.settings}
        config._set_values(planes_of(inputs), dict(self.values))
        outputs = formats_of(self.stage.output, self.stage.outputs, self.stage.name, config, inputs)
        written = [(name, [p["name"] for p in json.loads(form)["planes"]]) for name, form in outputs]
        state = state_of(self.stage.state, self.stage.name, config)
        remembered = [p["name"] for p in json.loads(state)["planes"]] if state else []
        self.require_own_names(remembered, inputs, written)
        picks = [self.pick(name, inputs, written, remembered) for name in self.stage.arguments]
        self.require_writers(picks, written)
        self.require_state_writers(picks, remembered)
        return {"outputs": outputs, "state": state, "device": self.stage.device, "ends": self.stage.ends, "picks": picks,
                "writable_inputs": self.stage.writable_inputs, "wants_tombstones": self.stage.wants_tombstones,
                "bit_equal": self.stage.bit_equal,
                "reads": [(name, self.input_with(name, inputs)) for name in self.stage.reads],
                "accepts_sampled_inputs": "frame" in self.stage.arguments or self.finishes}   # only by frame.sampled()

    @staticmethod
    def input_with(name, inputs):
        """Returns the index of the first input that has a plane of that name; 0 if there is none, which the
        runner then reports."""
        return next((k for k, (_, form) in enumerate(inputs) if any(plane["name"] == name for plane in form["planes"])), 0)

    def pick(self, name, inputs, written, remembered):
        """Returns the plane of an argument: ("input" or "output", the index of that input or output, the index of the plane), ("previous" or
        "next", 0, the index of the state's plane), or ("frame", 0, 0)."""
        if name == "frame":
            return "frame", 0, 0
        for p, plane in enumerate(remembered):
            if name in (plane, f"out_{plane}"):
                return "previous" if name == plane else "next", 0, p
        there = [(k, p, source, plane["name"]) for k, (source, form) in enumerate(inputs) for p, plane in enumerate(form["planes"])]
        found = [("input", k, p) for k, p, source, plane in there if name in (plane, f"{spelled(source)}_{plane}")]
        to_write = arguments_of(written)
        found = found or [("output", k, p) for k, p in to_write.get(name, [])]
        if len(found) == 1:
            return found[0]
        known = ["frame"] + [f"{spelled(source)}_{plane}" if len(inputs) > 1 else plane for _, _, source, plane in there] + \
            [each for each, planes in to_write.items() if len(planes) == 1] + \
            [each for plane in remembered for each in (plane, f"out_{plane}")]
        why = "is not a plane here" if not found else f"is a plane of {len(found)} {found[0][0]}s"
        raise ConfigError(f"{self.words()}: the argument {name} {why}; there are {', '.join(known)} (settings are keyword arguments, after *)")

    def require_writers(self, picks, written):
        """Raises an error for an output that no argument refers to, because it would keep the slot's old content, and for two arguments
        that refer to one plane."""
        for k, pick in enumerate(picks):
            if pick[0] == "output" and pick in picks[:k]:
                raise ConfigError(f"{self.words()}: {self.stage.arguments[picks.index(pick)]} and {self.stage.arguments[k]} are the same "
                                  "plane; name it once")
        for k, (name, planes) in enumerate(written):
            if not any(pick[0] == "frame" or pick[:2] == ("output", k) for pick in picks):
                can = [argument for argument, of in arguments_of(written).items() if [o for o, _ in of] == [k]]
                raise ConfigError(f"{self.words()}: no argument writes {f'the output {name!r}' if name else 'the output'}; add "
                                  f"{' or '.join(can)} or frame")

    def require_own_names(self, remembered, inputs, written):
        """Raises an error for a plane of the state whose argument already refers to something else, which the state would hide."""
        taken = {"frame": "the frame", **{argument: "a plane of an output" for argument in arguments_of(written)}}
        for source, form in inputs:
            for plane in form["planes"]:
                taken.update({name: f"a plane of input {source}" for name in (plane["name"], f"{spelled(source)}_{plane['name']}")})
        for plane in remembered:
            for argument in (plane, f"out_{plane}"):
                if argument in taken:
                    raise ConfigError(f"{self.words()}: the argument {argument} of the state's plane {plane!r} is also {taken[argument]}; "
                                      "rename the plane of the state")
                taken[argument] = f"that of the state's plane {plane!r}"

    def require_state_writers(self, picks, remembered):
        """Raises an error for a plane of the state that no argument writes: the next frame would continue from the slot's old content."""
        for p, plane in enumerate(remembered):
            if not any(pick[0] == "frame" or pick == ("next", 0, p) for pick in picks):
                raise ConfigError(f"{self.words()}: no argument writes the plane {plane!r} of the state; add out_{plane} or frame")

    def words(self):
        return f"{self.stage.name}({', '.join(self.stage.arguments)})"

    def prepare(self, env, create_output_directory):
        """Returns the two functions that process() and finish() call."""
        if not self.stage.is_class:
            return functools.partial(self.stage.target, **self.values) if self.values else self.stage.target, None
        made = self.stage.target(**self.values)
        if hasattr(made, "prepare"):
            made.prepare(_CreatedOnUse(env, create_output_directory))
        if not self.finishes:
            return made.process, None
        return made.process, made.finish


def adapter_of(file, module, name=""):
    """Returns the adapter of the stage of that name in the file; if the name is "", the adapter of the file's only stage."""
    if name:
        found = getattr(module, name, None)
        if not isinstance(found, Stage):
            raise ConfigError(f"{os.path.basename(file)} has no stage {name}: expected a function or class of that name with @carousel.stage")
        return Adapter(found)
    stages = {id(s): s for s in vars(module).values() if isinstance(s, Stage) and s.module == module.__name__}
    if len(stages) != 1:
        names = ", ".join(s.name for s in stages.values())
        one = f"; name one: run = \"{os.path.basename(file)}:NAME\"" if names else ""
        raise ConfigError(f"{os.path.basename(file)} defines {len(stages) or 'no'} stage{'s' if len(stages) > 1 else ''}"
                          f"{': ' + names if names else ''}; expected one function or class with @carousel.stage{one}")
    return Adapter(*stages.values())
