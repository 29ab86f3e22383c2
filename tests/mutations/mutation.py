"""A mutation: one small change to the product that some test must notice. The lists are the .toml files beside this one; an entry is

  [[mutation]]
  name = "..."          unique
  file = "shared/ring/worker.cpp"
  function = "worker::choose_inputs"   whose body holds the anchor; left out: the whole file
  find = "..."          the anchor: occurs once there; blanks and line ends count as one blank
  replace = "..."
  build = ["test_ring"]                the least that its tests need
  tests = ["test_ring: a sink ..."]    ctest's names
  kills = "..."         the assertion that must fail: text of the failing output
  survives = "..."      in place of kills: why the guard is redundant, and no test can notice
  preset = "tsan"       [release]

An anchor within a function remains valid if the code around it moves."""
import glob
import os
import re
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = {"name", "file", "function", "find", "replace", "build", "tests", "kills", "survives", "preset"}
NEEDED = {"name", "file", "find", "replace", "build", "tests"}


class Broken(Exception):
    """A mutation that can't be made: it says why."""


def load(folder=HERE):
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.toml"))):
        with open(path, "rb") as f:
            for entry in tomllib.load(f)["mutation"]:
                found.append({"preset": "release", "area": os.path.basename(path)[:-5], **entry})
    return found


def check(entry):
    """The error of an entry, "" if there is none."""
    extra, missing = set(entry) - KEYS - {"area"}, NEEDED - set(entry)
    if extra or missing:
        return f"unknown keys {sorted(extra)}, missing keys {sorted(missing)}"
    if ("kills" in entry) == ("survives" in entry):
        return "needs either the assertion that kills it or the reason why it survives"
    if entry["find"] == entry["replace"]:
        return "changes nothing"
    return ""


def ctest_pattern(name):
    """CMake's expression for this text: it knows few escapes."""
    return re.sub(r"([][().*+?^$|\\])", r"\\\1", name)


def skip_literal(text, at):
    """The position behind the comment, string or character at `at`; `at` itself when there is none."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text.startswith("/*", at):
        return text.index("*/", at) + 2
    if text.startswith('R"', at):
        mark = text[at + 2:text.index("(", at)]
        return text.index(")" + mark + '"', at) + len(mark) + 2
    quoted = text[at] == '"' or (text[at] == "'" and not text[at - 1:at].isalnum())  # 1'000 is a number
    if quoted:
        end = at + 1
        while text[end] != text[at]:
            end += 2 if text[end] == "\\" else 1
        return end + 1
    return at


def closing(text, at):
    """The position of the bracket that closes the one at `at`."""
    depth, pairs = 0, {"(": ")", "{": "}"}
    opens, closes = text[at], pairs[text[at]]
    while at < len(text):
        behind = skip_literal(text, at)
        if behind != at:
            at = behind
            continue
        depth += (text[at] == opens) - (text[at] == closes)
        if depth == 0:
            return at
        at += 1
    raise Broken("a bracket is never closed")


def body_of(text, function):
    """Begin and end of the function's body."""
    bodies = []
    for m in re.finditer(r"(?<![\w:>.])" + re.escape(function) + r"\s*\(", text):
        close = closing(text, m.end() - 1)
        between = re.match(r"\s*(const\b\s*)?(noexcept\b\s*)?(override\b\s*)?(->[^{;]*)?(try\b\s*)?(:[^:;{][^;{]*)?\{", text[close + 1:])
        if between:
            begin = close + between.end()
            bodies.append((begin, closing(text, begin)))
    if len(bodies) != 1:
        raise Broken(f"{len(bodies)} functions {function}, expected one")
    return bodies[0]


def apply(entry, text):
    """The file's text with the mutation in it."""
    begin, end = body_of(text, entry["function"]) if "function" in entry else (0, len(text))
    anchor = r"\s+".join(re.escape(word) for word in entry["find"].split())
    places = list(re.finditer(anchor, text[begin:end]))
    if len(places) != 1:
        raise Broken(f"its anchor occurs {len(places)} times, expected once: {entry['find']!r}")
    return text[:begin + places[0].start()] + entry["replace"] + text[begin + places[0].end():]
