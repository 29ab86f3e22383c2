"""The outputs of a stage: output= and outputs= of the decorator, and the arguments that refer to their planes."""
import json
import re
import typing

from . import _carousel
from ._carousel import ConfigError

EXPECTED = "expected carousel.like(0), carousel.image() or a dict of planes"


class like:
    """output=carousel.like(0): the output has the format of input 0."""

    def __init__(self, index=0):
        self.index = index

    def __repr__(self):
        return f"carousel.like({self.index})"


class image:
    """output=carousel.image(): an image, u8[height, width, 4]; the default size is the pipeline's."""

    def __init__(self, width=None, height=None):
        self.width, self.height = width, height

    def __repr__(self):
        return f"carousel.image({self.width}, {self.height})" if self.width else "carousel.image()"


class PlaneFormat(typing.NamedTuple):
    """A plane in config.inputs; also accepted by output=. Its text is "u8[720, 1280, 4]"."""
    dtype: str
    shape: tuple

    def __str__(self):
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def planes_of(inputs):
    """Returns config.inputs: {an input's name: {a plane's name: PlaneFormat}}. inputs: [(name, its format)]."""
    return {name: {p["name"]: PlaneFormat(p["element"], tuple(p["shape"])) for p in form["planes"]} for name, form in inputs}


def _plane_from(text, owner, name, config):
    text = str(text) if isinstance(text, PlaneFormat) else text
    found = re.fullmatch(r"\s*([a-z]\w*)\s*\[([^\]]*)\]\s*", text) if isinstance(text, str) else None
    if not found:
        raise ConfigError(f"{owner}: output plane {name!r}: {text!r}; expected a type and its extents, e.g. \"f32[720, 1280]\"")
    extents = []
    for word in found[2].split(","):
        word = word.strip()
        value = {"width": config.width, "height": config.height}.get(word, word)
        if not str(value).isdigit():
            raise ConfigError(f"{owner}: output plane {name!r}: the extent {word!r} is not a number, width or height")
        extents.append(int(value))
    return {"name": name, "element": found[1], "shape": extents}


def _format_of(output, owner, config, inputs, name=""):
    """Returns an output's format as JSON; None: there is none."""
    described = f"outputs[{name!r}]={output!r}" if name else f"output={output!r}"
    if output is None:
        return None
    if output is like or output is image:
        word = f"carousel.{output.__name__}"
        call = f"{word}({'0' if output is like else ''})"
        raise ConfigError(f"{owner}: {described.split('=')[0]}={word} needs parentheses; write {call}")
    if isinstance(output, like):
        if not isinstance(output.index, int) or output.index < 0:
            raise ConfigError(f"{owner}: {described}; expected the number of an input, 0 for the first")
        if output.index >= len(inputs):
            raise ConfigError(f"{owner}: {described}, but the stage has {len(inputs)} inputs; write inputs = [\"NAME\"]")
        return json.dumps(inputs[output.index][1])
    if isinstance(output, image):
        return _carousel._image(output.width or config.width, output.height or config.height)
    if isinstance(output, dict) and output:
        planes = [_plane_from(text, owner, plane, config) for plane, text in output.items() if plane != "type"]
        kind = output.get("type", f"{owner}.{name}" if name else owner)
        return _carousel._lay_out(json.dumps({"type": kind, "planes": planes, "constants": {}}))
    raise ConfigError(f"{owner}: {described}; {EXPECTED}")


def formats_of(output, outputs, owner, config, inputs):
    """Returns [(name, format as JSON)]. For output= the list has one entry, whose name is ""; for outputs= it has one entry per output; for
    a sink it is empty."""
    if outputs is None:
        form = _format_of(_of_configuration(output, config), owner, config, inputs)
        return [("", form)] if form else []
    outputs = _of_configuration(outputs, config)
    if not isinstance(outputs, dict) or not outputs or not all(isinstance(name, str) for name in outputs):
        raise ConfigError(f"{owner}: outputs={outputs!r}; expected a name for each, e.g. {{\"color\": carousel.like(0), "
                          "\"depth\": {\"z\": \"f32[720, 1280]\"}}; a sink has neither output= nor outputs=")
    found = [(name, _format_of(each, owner, config, inputs, name)) for name, each in outputs.items()]
    for name, form in found:
        if form is None:
            raise ConfigError(f"{owner}: outputs[{name!r}]=None; {EXPECTED}")
    return found


def state_of(state, owner, config):
    """Returns the format of a stage's state as JSON; "": it has none."""
    state = _of_configuration(state, config)
    if state is None:
        return ""
    if not isinstance(state, dict) or not state:
        raise ConfigError(f"{owner}: state={state!r}; expected a dict of planes, e.g. {{\"history\": \"f32[height, width, 4]\"}}")
    planes = [_plane_from(text, owner, plane, config) for plane, text in state.items()]
    return _carousel._lay_out(json.dumps({"type": "state", "planes": planes, "constants": {}}))


def _of_configuration(output, config):
    return output(config) if callable(output) and output is not like and output is not image else output


def spelled(name):
    """Returns the form of a name used as a part of an argument's name."""
    return re.sub(r"[^0-9A-Za-z]", "_", name)


def arguments_of(written):
    """Returns the planes to which an argument may refer: {its name: [(output, plane), ...]}. written: [(output, [plane, ...])].

    An output's name takes precedence over a plane's: with outputs color and half that both have a plane
    color, out_color is the plane of output color."""
    by_output, by_plane = {}, {}
    for k, (name, planes) in enumerate(written):
        own = f"out_{spelled(name)}" if name else "out"
        if len(planes) == 1:
            by_output.setdefault(own, []).append((k, 0))
        for p, plane in enumerate(planes):
            if name:
                by_output.setdefault(f"{own}_{plane}", []).append((k, p))
            by_plane.setdefault(f"out_{plane}", []).append((k, p))
    return {**by_output, **{argument: planes for argument, planes in by_plane.items() if argument not in by_output}}
