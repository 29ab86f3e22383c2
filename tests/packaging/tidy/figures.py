"""How large the house is: longest file, function and include chain, and README's words. Usage: figures.py ROOT

A function's length is that of its body, from its opening line to the brace in the first line's column: the tree is
formatted, so that the two stand in one column.
"""
import os
import re
import sys

from tidy import SOURCE, tracked_files

OPENS = re.compile(r"^(\s*)[^\s/#{}].*\)[^;]*\{$")
NO_FUNCTION = re.compile(r"^\s*\{|^\s*(if|for|while|switch|else|namespace|do|try|catch|return|case)\b|=\s*\{$|^\s*}|\bstruct\b|\benum\b|\bclass\b")
INCLUDE = re.compile(r'^#include [<"]([^">]+)[">]', re.M)


def functions(lines):
    """(length, first line) of each function; lambdas count as part of theirs."""
    for k, line in enumerate(lines):
        if not OPENS.match(line):
            continue
        # A declaration may take several lines: the body ends at the brace in the column of the first of them.
        first = k
        while first > 0 and (open_parentheses(lines[first:k + 1]) < 0 or lines[first].lstrip().startswith(": ") or
                             lines[first - 1].rstrip().endswith((",", "(")) and not lines[first - 1].lstrip().startswith("//")):
            first -= 1
        if NO_FUNCTION.search(lines[first]) or open_parentheses(lines[first:k + 1]) != 0:   # a lambda within a call is part of its function
            continue
        indent = re.match(r"\s*", lines[first]).group()
        end = next((e for e in range(k + 1, len(lines)) if re.match(indent + r"}(?!\w)", lines[e])), k)
        yield end - first + 1, first + 1


def open_parentheses(lines):
    """How many are open at the end; below 0: they began above."""
    text = "".join(lines)
    return text.count("(") - text.count(")")


def chain(name, includes, known):
    """The longest way down from a file: names, itself first."""
    if name not in known:
        known[name] = [name]  # a circle ends here; there is none where includes go down only
        known[name] = [name] + max((chain(i, includes, known) for i in includes[name]), key=len, default=[])
    return known[name]


def main():
    root = sys.argv[1]
    texts = {}
    for name in tracked_files(root):
        if name.endswith(SOURCE):
            with open(os.path.join(root, name), encoding="utf-8") as f:
                texts[name] = f.read()
    product = [n for n in texts if not n.startswith("tests/")]
    for what, names in (("product", product), ("tests", [n for n in texts if n.startswith("tests/")])):
        length, name = max((texts[n].count("\n"), n) for n in names)
        print(f"{what}: {len(names)} files; the longest: {name}, {length} lines")
        length, name, line = max((size, n, at) for n in names for size, at in functions(texts[n].split("\n")))
        print(f"{what}: the longest function: {name}:{line}, {length} lines")
    below = ("", "shared/", "pipelines/", "stages/sdk/")
    includes = {n: sorted({p + i for i in INCLUDE.findall(t) for p in below if p + i in texts} - {n}) for n, t in texts.items()}
    known = {}
    longest = max((chain(n, includes, known) for n in product), key=len)
    print(f"the longest include chain: {len(longest)} files: {' > '.join(longest)}")
    with open(os.path.join(root, "README.md"), encoding="utf-8") as f:
        print(f"README.md: {len(f.read().split())} words")


if __name__ == "__main__":
    main()
