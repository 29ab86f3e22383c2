"""Stages: the decorator, and what stands between a function of Python's and the runner."""
import functools
import inspect
import json
import os
import re
import typing

from . import _carousel
from ._carousel import ConfigError
from ._errors import SettingsError

NO_LIMIT = 2**63 - 1
HUGE = 1.7976931348623157e308


class Range(typing.NamedTuple):
    """What a number may be; between() makes it."""
    low: float
    high: float


def between(low, high):
    """In a setting's type: strength: Annotated[float, carousel.between(0, 4)] = 0.5"""
    return Range(low, high)


class like:
    """output=carousel.like(0): the output is as input 0 is."""

    def __init__(self, index=0):
        self.index = index

    def __repr__(self):
        return f"carousel.like({self.index})"


class image:
    """output=carousel.image(): a picture, u8[height, width, 4]; without a size as large as the pipeline's."""

    def __init__(self, width=None, height=None):
        self.width, self.height = width, height

    def __repr__(self):
        return f"carousel.image({self.width}, {self.height})" if self.width else "carousel.image()"


class Setting(typing.NamedTuple):
    name: str
    kind: type
    default: object   # inspect.Parameter.empty: it has to be given
    low: float
    high: float
    choices: tuple

    def read(self, config):
        """Its value in the pipeline file; what is wrong there has its line."""
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
    """The names of the positional arguments: the frame and planes."""
    names = []
    for p in list(inspect.signature(function).parameters.values())[1 if bound else 0:]:
        if p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise ConfigError(f"{owner}: {p} can't be given; name the planes that it takes")
        if p.kind is not inspect.Parameter.KEYWORD_ONLY:
            names.append(p.name)
    return names


class Stage:
    """A function or a class as a stage. It can still be called, with arrays in place of planes."""

    def __init__(self, target, output, device, ends):
        self.target, self.output, self.device, self.ends = target, output, device, ends
        self.name, self.module, self.__doc__ = target.__name__, target.__module__, target.__doc__
        self.is_class = inspect.isclass(target)
        if self.is_class and not callable(getattr(target, "process", None)):
            raise ConfigError(f"{self.name}: a stage's class has process(self, ...)")
        if device not in ("any", "cpu", "cuda"):
            raise ConfigError(f"{self.name}: device={device!r}: expected \"any\", \"cpu\" or \"cuda\"")
        own_init = self.is_class and target.__init__ is not object.__init__
        self.settings = _settings_of(target.__init__, self.name) if own_init else \
            [] if self.is_class else _settings_of(target, self.name)
        self.arguments = _names_of(target.process if self.is_class else target, self.name, self.is_class)
        self.finishes = self.is_class and hasattr(target, "finish")

    def __call__(self, *arguments, **settings):
        return self.target(*arguments, **settings)

    def __repr__(self):
        keys = ", ".join(f"{s.name}: {s.kind.__name__}" for s in self.settings)
        return f"<carousel.Stage {self.name}({', '.join(self.arguments)}{'; ' + keys if keys else ''}) -> {self.output!r}>"


def stage(target=None, *, output=None, device="any", ends=False):
    """Makes a stage of a function, or of a class with process(self, ...) where there is state to prepare.

    Positional arguments are the frame's planes by their names: frame (the frame itself), color (the plane of an input), out (the
    output's only plane), out_color (its plane color), fragment_color (the plane of input fragment, where several have one of that
    name). Keyword arguments (of a class: of __init__) with a type are the stage's settings in the pipeline file.

    output: what it writes. carousel.like(0), carousel.image(), {"depth": "f32[720, 1280]"}, or a function of the Configuration that
    returns one of these; None: nothing (a sink). device: where it can run, "any", "cpu", "cuda". ends: a source that may call
    frame.end_stream().
    """
    if target is None:
        return functools.partial(stage, output=output, device=device, ends=ends)
    return Stage(target, output, device, ends)


def _plane_from(text, owner, name, config):
    found = re.fullmatch(r"\s*([a-z]+[0-9]*)\s*\[([^\]]*)\]\s*", text) if isinstance(text, str) else None
    if not found:
        raise ConfigError(f"{owner}: output plane {name!r}: {text!r}; expected a type and its extents, e.g. \"f32[720, 1280]\"")
    extents = []
    for word in found[2].split(","):
        word = word.strip()
        value = {"width": config.width, "height": config.height}.get(word, word)
        if not str(value).isdigit():
            raise ConfigError(f"{owner}: output plane {name!r}: the extent {word!r} is no number, width or height")
        extents.append(int(value))
    return {"name": name, "element": found[1], "shape": extents}


def _format_of(output, owner, config, inputs):
    """The output's format as JSON; None: a sink."""
    if callable(output) and not isinstance(output, (like, image)):
        output = output(config)
    if output is None:
        return None
    if isinstance(output, like):
        if output.index >= len(inputs):
            raise ConfigError(f"{owner}: output={output!r}, but the stage has {len(inputs)} inputs; write inputs = [\"NAME\"]")
        return json.dumps(inputs[output.index][1])
    if isinstance(output, image):
        return _carousel._image(output.width or config.width, output.height or config.height)
    if isinstance(output, dict) and output:
        planes = [_plane_from(text, owner, name, config) for name, text in output.items() if name != "type"]
        return _carousel._lay_out(json.dumps({"type": output.get("type", owner), "planes": planes, "constants": {}}))
    raise ConfigError(f"{owner}: output={output!r}; expected carousel.like(0), carousel.image() or a dict of planes")


class Adapter:
    """What the runner calls."""

    def __init__(self, of):
        self.stage, self.finishes, self.values = of, of.finishes, {}

    def configure(self, config):
        inputs = [(name, json.loads(text)) for name, text in config._inputs]
        form = _format_of(self.stage.output, self.stage.name, config, inputs)
        self.values = {s.name: s.read(config) for s in self.stage.settings}
        written = [p["name"] for p in json.loads(form)["planes"]] if form else []
        return {"format": form, "device": self.stage.device, "ends": self.stage.ends,
                "takes_latest": "frame" in self.stage.arguments or self.finishes,  # by frame.latest() alone
                "picks": [self.pick(name, inputs, written) for name in self.stage.arguments]}

    def pick(self, name, inputs, written):
        """Which plane an argument is: (input or -1 for the output or -2 for the frame, plane)."""
        if name == "frame":
            return -2, 0
        there = [(k, p, who, plane["name"]) for k, (who, form) in enumerate(inputs) for p, plane in enumerate(form["planes"])]
        found = [(k, p) for k, p, who, plane in there if name in (plane, f"{re.sub(r'[^0-9A-Za-z]', '_', who)}_{plane}")]
        if len(found) == 1:
            return found[0]
        if not found and name == "out" and len(written) == 1:
            return -1, 0
        if not found and name.startswith("out_") and name[4:] in written:
            return -1, written.index(name[4:])
        known = ["frame"] + [f"{who}_{plane}" if len(inputs) > 1 else plane for _, _, who, plane in there] + \
            (["out"] if len(written) == 1 else [f"out_{w}" for w in written])
        why = "is no plane here" if not found else f"is a plane of {len(found)} inputs"
        raise ConfigError(f"{self.stage.name}({', '.join(self.stage.arguments)}): the argument {name} {why}; there are "
                          f"{', '.join(known)} (settings are keyword arguments, behind *)")

    def prepare(self, env):
        """The functions for process() and finish()."""
        if not self.stage.is_class:
            return functools.partial(self.stage.target, **self.values) if self.values else self.stage.target, None
        made = self.stage.target(**self.values)
        if hasattr(made, "prepare"):
            made.prepare(env)
        if not self.finishes:
            return made.process, None
        return made.process, made.finish


def adapter_of(file, module):
    """Of the one stage that a file defines."""
    stages = {id(s): s for s in vars(module).values() if isinstance(s, Stage) and s.module == module.__name__}
    if len(stages) != 1:
        names = ", ".join(s.name for s in stages.values())
        raise ConfigError(f"{os.path.basename(file)} defines {len(stages) or 'no'} stage{'s' if len(stages) > 1 else ''}"
                          f"{': ' + names if names else ''}; expected one function or class with @carousel.stage")
    return Adapter(*stages.values())
