"""Generated pages of the site, as {path: Markdown}: keys and words from `carousel explain`, commands from the help of the parser, Python
from the stub of the module, C++ from Doxygen's XML."""
import ast
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from man_pages import ENTRY, HEADING, help_of, subcommands  # noqa: E402

KEY_COLUMNS = ("key", "values", "unit", "default", "meaning")


def output_of(carousel, *words):
    done = subprocess.run([carousel, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{carousel} {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def keys_of(text):
    """[(section, {column: cell})] of the tables that `carousel explain --keys` prints."""
    found, section = [], ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.append((section, dict(zip(KEY_COLUMNS, cells))))
    return found


def keys_page(carousel):
    out = ["# Keys from A to Z", "", "Each key of a pipeline file: its section, values, unit and default. `carousel explain KEY` prints an entry.", ""]
    for section, row in sorted(keys_of(output_of(carousel, "explain", "--keys")), key=lambda each: (each[1]["key"].strip("`"), each[0])):
        unit = f" ({row['unit']})" if row["unit"] else ""
        out += [f"## {row['key'].strip('`')} in {section}", "", row["meaning"], "", f"- Values, range: {row['values']}{unit}",
                f"- Default: {row['default']}", ""]
    return "\n".join(out)


def words_page(carousel):
    kinds = {}
    for each in json.loads(output_of(carousel, "explain", "--json")):
        if each["kind"] != "key" and not each["kind"].startswith("key "):
            kinds.setdefault(each["kind"], []).append(each)
    out = ["# Exit codes, errors, states", "",
           "What a log, a report, `carousel ps` or CUDA may print. `carousel explain WORD` prints an entry.", ""]
    for kind, entries in kinds.items():
        out += [f"## {kind[0].upper()}{kind[1:]}", ""]
        for each in entries:
            out += [f"### {kind[0].upper()}{kind[1:]} {each['word']}", "", plain(each["means"]), ""]
            out += [f"**In Carousel:** {plain(each['here'])}", ""] if each.get("here") else []
            out += [f"**What to do:** {plain(each['act'])}", ""] if each.get("act") else []
    return "\n".join(out)


def plain(text):
    """Text of a program as Markdown: outside code, characters of tags, such as <NAME>, and of emphasis are escaped."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text.strip()))
    return "".join(part if part.startswith("`") else re.sub(r"([*_\\])", r"\\\1", part).replace("<", "&lt;") for part in parts)


def help_as_markdown(text, called, level):
    """A help text without its first line: options as a table, examples as they are. `called`: the command with its parents."""
    out, heading, block, rows = [], "", [], []

    def flush():
        while block and not block[-1].strip():
            block.pop()
        if rows:
            out.extend([f"| {heading.lower().removesuffix('s')} | meaning |", "|---|---|", *rows, ""])
        if block:
            out.extend(["```text", *block, "```", ""])
        rows.clear()
        block.clear()
    for line in text.splitlines():
        found, entry = HEADING.match(line), ENTRY.match(line)
        if found:
            flush()
            heading = found[1]
            out += [f"{'#' * level} {heading}", ""]
        elif line.startswith("Usage: "):
            out += ["```text", f"{called} {line[7:].split(' ', 1)[1]}" if " " in line[7:] else called, "```", ""]
        elif heading in ("Example", "Examples"):
            if line.strip():
                block.append(line[2:] if line.startswith("  ") else line)
            else:
                flush()
                heading = ""
        elif entry:
            rows.append(f"| `{entry[1].replace('|', chr(92) + '|')}` | {plain(entry[2] or '').replace('|', chr(92) + '|')} |")
        elif line.strip() and rows and line.startswith("   "):
            rows[-1] = rows[-1][:-2] + " " + plain(line).replace("|", "\\|") + " |"
        elif line.strip():
            flush()
            out.append(plain(line))
        else:
            flush()
            out.append("")
    flush()
    return out


def command_pages(carousel):
    pages = {}
    whole = help_of(carousel)
    pages["reference/commands/carousel.md"] = "\n".join(["# carousel", "", plain(whole.split(chr(10), 1)[0]), "", *help_as_markdown(whole.split("\n", 1)[1], "carousel", 2)])
    for command in subcommands(whole):
        text = help_of(carousel, command)
        about, rest = text.split("\n", 1)
        out = [f"# carousel {command}", "", plain(about), "", f"On an installed system: `man carousel-{command}`.", "", 
               *help_as_markdown(rest, f"carousel {command}", 2)]
        for below in subcommands(text):
            more = help_of(carousel, command, below)
            out += ["", f"## carousel {command} {below}", "", plain(more.split(chr(10), 1)[0]), "",
                    *help_as_markdown(more.split("\n", 1)[1], f"carousel {command} {below}", 3)]
        pages[f"reference/commands/{command}.md"] = "\n".join(out)
    return pages


# --- Python ------------------------------------------------------------------------------------------------------------------------
def signature(node):
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){result}"


def documented(body):
    return [each for each in body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not each.name.startswith("_")]


def is_property(node):
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def describe(node, level):
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        out = [f"{'#' * level} {node.name}", "", f"`class {node.name}{f'({bases})' if bases else ''}`", "", text, ""]
        for each in documented(node.body):
            out += describe(each, level + 1)
        return out
    form = f"{node.name}: {ast.unparse(node.returns)}" if is_property(node) and node.returns else signature(node)
    return [f"{'#' * level} {node.name}", "", f"`{form}`", "", text, ""]


def parsed(package, name):
    """The syntax tree of a module of the package: of its stub, if it has one."""
    paths = [os.path.join(package, name + suffix) for suffix in (".pyi", ".py")]
    with open(next(path for path in paths if os.path.exists(path)), encoding="utf-8") as source:
        return ast.parse(source.read())


def with_imported(package, tree):
    """The documented definitions of a module, and those that it imports from modules of the package."""
    yield from documented(tree.body)
    for each in tree.body:
        if isinstance(each, ast.ImportFrom) and each.level == 1:
            names = {alias.name for alias in each.names}
            yield from (found for found in documented(parsed(package, each.module).body) if found.name in names)


def python_page(package):
    out = ["# Python", "", "The module `carousel`. [Stages, ports and runs in Python](../stages/python/README.md) has examples.", ""]
    for name, title in (("__init__", ""), ("testing", "carousel.testing")):
        tree = parsed(package, name)
        if title:
            out += [f"## {title}", "", ast.get_docstring(tree) or "", ""]
        for each in documented(tree.body) if title else with_imported(package, tree):
            out += describe(each, 3 if title else 2)
    return "\n".join(out)


# --- C++ ---------------------------------------------------------------------------------------------------------------------------
def text_of(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


def cpp_page(doxygen):
    """The public names, with the first sentence of each and a link to its page; `doxygen` has Doxygen's html/ and xml/."""
    folder = os.path.join(doxygen, "xml")
    out = ["# C++", "", "The public headers. Each name leads to its page of the [whole reference](cpp/index.html). "
           "[Stages in C++](../stages/README.md) has examples.", ""]
    rows = {}
    for compound in xml.parse(os.path.join(folder, "index.xml")).getroot().findall("compound"):
        if compound.get("kind") not in ("class", "struct", "namespace"):
            continue
        root = xml.parse(os.path.join(folder, compound.get("refid") + ".xml")).getroot().find("compounddef")
        location = root.find("location").get("file") if root.find("location") is not None else ""
        name = text_of(root.find("compoundname"))
        if compound.get("kind") == "namespace":
            for member in root.iter("memberdef"):
                at = member.find("location").get("file", "")
                if member.get("kind") in ("function", "enum") and is_public(at):
                    entry = f"{name}::{text_of(member.find('name'))}"
                    anchor = member.get("id").rsplit("_1", 1)
                    rows.setdefault(header_of(at), {}).setdefault(entry, (f"{anchor[0]}.html#{anchor[1]}", text_of(member.find("briefdescription"))))
        elif is_public(location) and os.path.exists(os.path.join(doxygen, "html", compound.get("refid") + ".html")):   # a private one has none
            rows.setdefault(header_of(location), {})[name] = (compound.get("refid") + ".html", text_of(root.find("briefdescription")))
    for header in sorted(rows):
        out += [f"## <code>&lt;{header}&gt;</code>", "", "| name | what it does |", "|---|---|"]
        out += [f"| [`{name}`](cpp/{page}) | {plain(brief).replace('|', chr(92) + '|')} |" for name, (page, brief) in sorted(rows[header].items())]
        out.append("")
    return "\n".join(out)


def header_of(location):
    return re.sub(r"^.*?(?=carousel/)", "", location)


def is_public(location):
    return bool(re.search(r"(^|/)carousel/[^/]+\.(hpp|cuh)$", location))
