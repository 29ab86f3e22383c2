"""Manual pages of the installed `carousel`, generated from the help of its parser.

Usage: man_pages.py CAROUSEL FOLDER     writes carousel.1.gz and carousel-COMMAND.1.gz into FOLDER"""
import gzip
import os
import re
import subprocess
import sys

HEADING = re.compile(r"^([A-Z][A-Za-z ]+):$")
ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


def help_of(carousel, *command):
    done = subprocess.run([carousel, *command, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join([carousel, *command])} --help ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def version_of(carousel):
    return subprocess.run([carousel, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def subcommands(text):
    """Names in the section "Subcommands" of a help text."""
    section = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", section[1], re.M) if section else []


def body(text):
    """Converts a help text without its description to roff: options become tagged paragraphs, and examples keep their lines."""
    out, verbatim = [], False
    for line in text.splitlines():
        heading, entry = HEADING.match(line), ENTRY.match(line)
        if heading:
            out += [".fi"] * verbatim + [f".SH {heading[1].upper()}"]
            verbatim = heading[1] in ("Example", "Examples")
            out += [".nf"] * verbatim
        elif line.startswith("Usage: "):
            continue
        elif not verbatim and entry:
            out += [".TP", f"\\fB{roff(entry[1])}\\fR", roff(entry[2] or "")]
        elif line.strip():
            out += [".PP"] * (not verbatim and not line.startswith(" ")) + [roff(line.strip() if not verbatim else line)]
        elif verbatim:
            out += [".fi"]
            verbatim = False
    return out + [".fi"] * verbatim


def page(carousel, name, command):
    text = help_of(carousel, *command)
    about, rest = text.split("\n", 1)
    usage = re.search(r"^Usage: (.*)$", rest, re.M)[1]
    words = [f"carousel {' '.join(command)}".strip(), usage.split(" ", 1)[1] if " " in usage else ""]
    out = [f'.TH {name.upper()} 1 "" "Carousel {version_of(carousel)}" "Carousel"', ".SH NAME", f"{roff(name)} \\- {roff(about)}", ".SH SYNOPSIS",
           f"\\fB{words[0]}\\fR {roff(words[1])}", *body(rest)]
    for below in subcommands(text) if command else []:
        out += [f".SH {below.upper()}", *[line.replace(".SH ", ".SS ") for line in body(help_of(carousel, *command, below))]]
    if command:
        out += [".SH SEE ALSO", "\\fBcarousel\\fR(1)"]
    return "\n".join(out) + "\n"


def write_pages(carousel, folder):
    """Returns the names of the files."""
    os.makedirs(folder, exist_ok=True)
    pages = {"carousel": (), **{f"carousel-{command}": (command,) for command in subcommands(help_of(carousel))}}
    for name, command in pages.items():
        with open(os.path.join(folder, name + ".1.gz"), "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(page(carousel, name, command).encode())
    return [name + ".1.gz" for name in pages]


if __name__ == "__main__":
    print("\n".join(write_pages(*sys.argv[1:])))
