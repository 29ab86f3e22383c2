"""The Markdown of the tree as mkdocs expects it: which pages the site has, and their text with links that lead somewhere in the site.

A page keeps its path, so links between pages stay as they are. A link to a picture or to a source leads to a copy next to the pages (a
source gets the suffix .txt, so that browsers show it); of a link to a folder without a page only the text is left."""
import os
import re
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PICTURES = (".png", ".svg", ".jpg")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+\S")


def navigation():
    """[(section, [(title, path)])]"""
    with open(os.path.join(HERE, "navigation.toml"), "rb") as file:
        return [(section["title"], [tuple(page) for page in section["pages"]]) for section in tomllib.load(file)["section"]]


def pages():
    """Paths of the pages that are documents of the tree."""
    return [path for _, listed in navigation() for _, path in listed if not path.startswith("reference/")]


def outside_code(text, change):
    """Applies `change` to the parts of a Markdown text that are neither fenced nor inline code."""
    out = []
    for part in re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.M | re.S):
        out.append(part if part.startswith("`") else change(part))
    return "".join(out)


def linked(text):
    """Targets of the links of a text, without those in fenced code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return [match[3] for match in LINK.finditer(text)]


class Assembly:
    def __init__(self, root=ROOT):
        self.root, self.pages, self.files = root, set(pages()), {}   # files: path in the site -> file of the tree

    def page(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            text = file.read()
        fenced = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
        # Links may have inline code as their text, so only fenced code is left out here.
        text = "".join(part if part.startswith("```") else LINK.sub(lambda match: self.link(path, match), part) for part in fenced)
        return with_lists(text)

    def link(self, page, match):
        picture, words, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        file, _, anchor = target.partition("#")
        at = os.path.normpath(os.path.join(os.path.dirname(page), file))
        if at in self.pages:
            return match[0]
        if os.path.isdir(os.path.join(self.root, at)):
            readme = os.path.join(at, "README.md")
            if readme not in self.pages:
                return words
            to = readme
        elif not os.path.isfile(os.path.join(self.root, at)):
            return words
        else:
            to = at if at.endswith(PICTURES) else at + ".txt"
            self.files[to] = os.path.join(self.root, at)
        return f"{picture}[{words}]({os.path.relpath(to, os.path.dirname(page) or '.')}{'#' + anchor if anchor and to.endswith('.md') else ''})"


def with_lists(text):
    """Python-Markdown wants a blank line before a list, and the text of a nested item indented by four columns, not two."""
    out, fenced, in_list = [], False, False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        if not fenced:
            item = ITEM.match(line)
            if item and not in_list and out and out[-1].strip() and not ITEM.match(out[-1]):
                out.append("")
            if item:
                in_list = True
            elif line.strip() and not line.startswith(" "):
                in_list = in_list and bool(out[-1].strip()) if out else False
            if in_list and line.startswith(" "):
                line = " " * (len(line) - len(line.lstrip())) + line
        out.append(line)
    return "\n".join(out) + "\n"
