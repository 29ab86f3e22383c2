"""Pipelines that are read from a file or built in Python."""
import collections.abc
import json
import os
import re
import sys
import tempfile
import tomllib

from . import _stage
from ._carousel import ConfigError, Error
from ._running import Running, program


def _file_of(stage, place):
    """Returns the value of `run` for a function or class of this program: its file and its name there."""
    module = sys.modules.get(stage.module)
    file = getattr(module, "__file__", None) or ""
    if not file.endswith(".py"):
        raise ConfigError(f"{place}: run: {stage.name} is not defined in a file, so the stage's process can't load it; write it into a .py file")
    names = [name for name, value in vars(module).items() if value is stage]
    if not names:
        raise ConfigError(f"{place}: run: {stage.name} is not at the top level of {file}, so the stage's process can't find it")
    return f"{os.path.abspath(file)}:{names[0]}"


def _entry(given, place):
    """Returns the keys of one stage, as in [[stage]] of a pipeline file."""
    if isinstance(given, _stage.Stage):
        given = {"run": given}
    if not isinstance(given, collections.abc.Mapping):
        raise ConfigError(f"{place}: {given!r}: expected a dict of keys, or a function or class with @carousel.stage")
    run = given.get("run")
    if isinstance(run, _stage.Stage):
        return {"name": run.name, **given, "run": _file_of(run, place)}
    if callable(run):
        raise ConfigError(f"{place}: run: {run!r} has no decorator @carousel.stage")
    return dict(given)


def _text(value, place):
    """Returns a value as TOML. place: the stage and the key, for the error if it has no TOML form."""
    value = value.tolist() if hasattr(value, "tolist") else value   # NumPy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):   # TOML has the escapes of JSON, and does not allow DEL
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(each, place) for each in value)}]"
    if isinstance(value, collections.abc.Mapping):
        return f"{{{', '.join(f'{_key(k, place)} = {_text(v, place)}' for k, v in value.items())}}}"
    raise ConfigError(f"{place} = {value!r}: expected a bool, a number, a text, a path, or a list or dict of these")


def _key(name, place):
    if not isinstance(name, str):
        raise ConfigError(f"{place}: the key {name!r} is not a text")
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name, place)


class _Document:
    """The text of a pipeline file. `places` contains, for each line, the arguments of Pipeline(...) from which the line was made."""

    def __init__(self):
        self.lines, self.places = [], {}

    def add(self, line, *place):
        self.lines.append(line)
        self.places[len(self.lines)] = place

    def section(self, header, owner, keys):
        self.add(header, owner)
        for name, value in keys.items():
            if value is not None:
                self.add(f"{_key(name, owner)} = {_text(value, f'{owner}: {name}')}", owner, name)
        self.lines.append("")

    def tables(self, path, owner, table):
        """Adds a table that contains tables; each of them gets its own header."""
        own = {name: value for name, value in table.items() if not isinstance(value, collections.abc.Mapping)}
        if own:
            self.section(f"[{'.'.join(_key(each, owner) for each in path)}]", owner, own)
        for name, value in table.items():
            if name not in own:
                self.tables([*path, name], f"{owner}.{name}", value)

    def text(self):
        return "\n".join(self.lines)

    def explained(self, file, text):
        """`file` was not written by the user, so this function replaces each place in `file` that the text names by the stage and the
        key, and returns the text."""
        def words(found):
            place, message = self.places.get(int(found[1]), ()), found[2]
            return message if all(word in message for word in place) else f"{': '.join(place)}: {message}"
        return re.sub(rf"{re.escape(file)}:(\d+):\d+: (.*)", words, text)


class Pipeline:
    """A pipeline, read from a file, Pipeline("demo.toml"), or built in Python, Pipeline(stages=[...]). start() and run() run it.

    stages: one entry per stage, a dict with the keys of [[stage]] in a pipeline file (name, run, inputs, the stage's own settings, ...), or
    a function or class with @carousel.stage, which is short for {"run": function}. The key `run` of a dict may be such a function, too,
    even a function in this program's own file: the stage then has the function's name, unless the dict has a name. A program whose own file
    has stages starts its pipeline below `if __name__ == "__main__":`, because the stages' processes load that file.

    parameters, link, hosts: dicts with the content of the sections of these names in a pipeline file. All other arguments are keys of
    [pipeline] (name, fps, size, device, ...), with the same default values; the default name is "pipeline". Relative paths refer to
    `folder`, by default the current directory. A key whose value is None is left out. Raises ConfigError for a file that can't be read or
    parsed, and, with the stage and the key, for values that have no TOML form; start() checks everything else."""

    def __init__(self, file=None, *, stages=None, parameters=None, link=None, hosts=None, **pipeline):
        if (file is None) == (stages is None):
            raise TypeError("Pipeline: expected a file or stages=[...]")
        if file is not None:
            if pipeline or parameters or link or hosts:
                raise TypeError("Pipeline: no other keys can be given with a file, which has all keys itself; start() takes options")
            self.file, self._sections = os.path.abspath(file), self._read(file)
        else:
            self.file = None
            entries = [_entry(each, f"stages[{k}]") for k, each in enumerate(stages)]
            self._sections = {"pipeline": {"name": "pipeline", "folder": os.getcwd(), **pipeline}, "parameters": dict(parameters or {}),
                              "stage": entries, "link": dict(link or {}), "hosts": dict(hosts or {})}
        own = self._sections.get("pipeline", {})
        self.name = own.get("name", os.path.splitext(os.path.basename(self.file or ""))[0])
        self.folder = os.path.normpath(os.path.join(os.path.dirname(self.file or ""), own.get("folder") or ""))
        self._document()   # this call reports values that have no TOML form at once

    @staticmethod
    def _read(file):
        try:
            with open(file, "rb") as text:
                return tomllib.load(text)
        except OSError as failure:
            raise ConfigError(f"{file}: {failure.strerror}") from None
        except tomllib.TOMLDecodeError as failure:
            raise ConfigError(f"{file}: {failure}") from None

    def __repr__(self):
        stages = [stage.get("name", "?") for stage in self._sections.get("stage", [])]
        return f"<carousel.Pipeline \"{self.name}\" of {self.file or ', '.join(stages)}>"

    def _document(self, folder=None):
        """folder: the folder of the file that will contain the text. If it is the pipeline's folder, the text does not need the key
        `folder`."""
        made, sections = _Document(), self._sections
        own = {**sections.get("pipeline", {}), "folder": None if folder == self.folder else self.folder}
        made.section("[pipeline]", "pipeline", own)
        if sections.get("parameters"):
            made.section("[parameters]", "parameters", sections["parameters"])
        for k, stage in enumerate(sections.get("stage", [])):
            made.section("[[stage]]", f"stage \"{stage['name']}\"" if "name" in stage else f"stages[{k}]", stage)
        for name in ("link", "hosts"):
            made.tables([name], name, sections.get(name, {}))
        return made

    def to_toml(self):
        """Returns the pipeline as the text of a pipeline file, without the comments of a file that it was read from. Its key `folder` is
        absolute, so that the text has the same meaning in any folder."""
        return self._document().text()

    def save(self, file):
        """Writes the pipeline to a pipeline file, for the command `carousel` and Pipeline(file). The file has the key `folder` unless it
        is in the pipeline's folder."""
        made = self._document(os.path.dirname(os.path.abspath(file)))
        with open(file, "w", encoding="utf-8") as out:
            out.write(made.text())

    def start(self, *, device=None, frames=None, fps=None, name=None, options=(), wait_s=60.0):
        """Starts the pipeline and returns a Running when all stages run; programs may enter its ports later. device, frames, fps, name:
        replace the keys of [pipeline] with these names. options: further arguments for `carousel run`, e.g. ["--out", ""]. Raises
        ConfigError if the pipeline is refused, with the stage and the key or with the place in the file, and Error if it does not start
        for another reason, or does not run within wait_s seconds."""
        if _stage.loading:
            raise Error(f"{_stage.loading} starts a pipeline while the process of a stage loads it: start the pipeline below if __name__ == \"__main__\":")
        words, file, folder, explained = [program(), "run"], self.file, None, lambda text: text
        if file is None:
            folder, made = tempfile.mkdtemp(prefix="carousel-"), self._document()
            file = os.path.join(folder, "pipeline.toml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(made.text())
            def explained(text):
                return made.explained(file, text)
        words += [file, "--no-color", "-p", name or self.name]
        for key, value in (("--device", device), ("--frames", frames), ("--fps", fps)):
            if value is not None:
                words += [key, str(value)]
        return Running(name or self.name, words + list(options), wait_s, folder, explained)

    def run(self, **options):
        """Starts the pipeline, waits for its end, and returns its report (Running.report()); options: those of start(). Ctrl-C ends the
        run, after its last frame."""
        with self.start(**options) as running:
            running.wait()
            return running.report()
