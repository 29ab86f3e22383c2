"""The documentation site, without building it: navigation, links, generated pages, and tables that repeat what the sources state.

Usage: test_site.py ROOT CAROUSEL"""
import ast
import os
import re
import subprocess
import sys
import unittest

ROOT, CAROUSEL = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(ROOT, "pipelines", "setup", "site"), os.path.join(HERE, "tidy")]
import assemble  # noqa: E402
import document_commands  # noqa: E402
import reference  # noqa: E402
from tidy import tracked_files  # noqa: E402

# Variables that a program reads and no user sets: the supervisor's own (environment.md lists them in a sentence), and those of tests.
NOT_FOR_USERS = re.compile(r"CAROUSEL_TEST_")
READS = re.compile(r"(?:getenv|variable)\(\"([A-Z][A-Z_]+)\"|environ(?:\.get\(|\[)\"([A-Z_]+)\"")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def slug(heading):
    """The anchor of a heading, as GitHub and the site make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)}


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.assembly = assemble.Assembly(ROOT)
        cls.pages = {path: cls.assembly.page(path) for path in assemble.pages()}

    def test_each_document_of_the_tree_is_a_page(self):
        documents = {name for name in tracked_files(ROOT) if name.endswith(".md")}
        self.assertGreater(len(documents), 40)
        self.assertEqual(documents, set(self.pages))

    def test_each_page_is_listed_once(self):
        listed = [path for _, pages in assemble.navigation() for _, path in pages]
        self.assertEqual(len(listed), len(set(listed)))
        titles = [title for _, pages in assemble.navigation() for title, _ in pages]
        self.assertEqual(len(titles), len(set(titles)))

    def test_each_link_leads_to_a_page_of_the_site_and_to_a_heading_there(self):
        count, wrong = 0, []
        for path, text in self.pages.items():
            for target in assemble.linked(text):
                if "://" in target:
                    continue
                file, _, anchor = target.partition("#")
                at = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                count += 1
                if at not in self.pages and at not in self.assembly.files:
                    wrong.append(f"{path}: {target}: no such page")
                elif anchor and anchor not in anchors(self.pages[at]):
                    wrong.append(f"{path}: {target}: no such heading")
        self.assertGreater(count, 250)
        self.assertEqual(wrong, [])

    def test_a_link_to_a_source_leads_to_a_copy_of_it(self):
        self.assertIn("shared/ring/words.hpp.txt", self.assembly.files)
        self.assertIn("](ring/words.hpp.txt)", self.pages["shared/ARCHITECTURE.md"])
        for to, source in self.assembly.files.items():
            self.assertTrue(os.path.isfile(source), to)
            self.assertTrue(to.endswith((".txt", *assemble.PICTURES)), to)

    def test_lists_get_what_python_markdown_needs(self):
        self.assertEqual(assemble.with_lists("a:\n- b\n  c\n  - d\n\nend\n"), "a:\n\n- b\n    c\n    - d\n\nend\n")
        self.assertEqual(assemble.with_lists("```\n- b\n  c\n```\n"), "```\n- b\n  c\n```\n")

    def test_the_missing_packages_are_named(self):
        script = os.path.join(ROOT, "pipelines", "setup", "site", "make_site.py")
        done = subprocess.run([sys.executable, "-B", script, "nowhere", "nowhere"], env={"PATH": "/nonexistent"}, capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "the site needs packages that are not installed: apt-get install mkdocs doxygen mkdocs-material\n"))


class Commands(unittest.TestCase):
    """documents.toml compared with the documents; test_commands.py runs the commands."""

    def setUp(self):
        self.commands = {name: document_commands.commands_of(read(name)) for name in assemble.pages()}

    def test_each_block_names_its_language(self):
        unnamed = [f"{name}: {content.splitlines()[0]}" for name in assemble.pages() for language, content in document_commands.blocks(read(name))
                   if not language]
        self.assertEqual(unnamed, [], "sh for commands, console for commands with their output, text for anything else")

    def test_each_document_with_commands_is_run(self):
        listed = [document["path"] for document in document_commands.plan()["document"]]
        self.assertEqual(sorted(listed), sorted(name for name, commands in self.commands.items() if commands))
        self.assertGreater(sum(map(len, self.commands.values())), 150)

    def test_each_row_is_of_a_command_and_each_exception_has_a_reason(self):
        run = 0
        for document in document_commands.plan()["document"]:
            commands = document_commands.with_entries(document, self.commands[document["path"]])
            used = {row["begins"] for _, row in commands if row}
            rows = document.get("commands", []) + ([document["rest"]] if "rest" in document else [])
            self.assertEqual({row["begins"] for row in rows} - used, set(), document["path"])
            for row in rows:
                self.assertTrue(row.get("not_run", "gpu").startswith(document_commands.KINDS), row)
            run += sum("not_run" not in row for _, row in commands)
        self.assertGreater(run, 110)

    def test_commands_are_found(self):
        text = "```sh\na \\\n  b\n# c\ncat > d <<'END'\n# e\nEND\nf\n```\n```console\n$ g\noutput\n```\n```toml\nh\n```\n"
        self.assertEqual(document_commands.commands_of(text), ["a \\\n  b", "cat > d <<'END'\n# e\nEND", "f", "g"])


class Generated(unittest.TestCase):
    def test_each_key_has_an_entry_with_range_and_default(self):
        page = reference.keys_page(CAROUSEL)
        rows = [line for line in read("pipelines/docs/keys.md").splitlines() if line.startswith("| `")]
        self.assertEqual(page.count("\n## "), len(rows))
        self.assertIn("## max_attempts in `[[stage]]`\n", page)
        entry = page.split("## max_attempts in ")[1].split("\n## ")[0]
        self.assertIn("- Values, range: a whole number from 1 to 7 (deaths)", entry)
        self.assertIn("- Default: `3`", entry)

    def test_each_explained_word_has_an_entry(self):
        page = reference.words_page(CAROUSEL)
        self.assertIn("### Exit code 73\n", page)
        self.assertIn("exception", page.split("### Exit code 73\n")[1].split("\n### ")[0])
        self.assertGreater(page.count("\n### "), 100)

    def test_each_command_has_a_page_with_its_options(self):
        pages = reference.command_pages(CAROUSEL)
        commands = reference.subcommands(reference.help_of(CAROUSEL))
        self.assertEqual(set(pages), {f"reference/commands/{name}.md" for name in ["carousel", *commands]})
        self.assertIn("--dead-letter", pages["reference/commands/replay.md"])
        self.assertIn("carousel new stage [OPTIONS] NAME", pages["reference/commands/new.md"])

    def test_each_name_of_the_python_module_has_an_entry(self):
        page = reference.python_page(os.path.join(ROOT, "stages/python/package/carousel"))
        names = ast.literal_eval(re.search(r"^__all__ = (\[.*?\])", read("stages/python/package/carousel/__init__.py"), re.M | re.S)[1])
        headings = set(re.findall(r"^## (.*)$", page, re.M))
        self.assertEqual({name for name in names if name != "with_cuda"} - headings, set())


class Tables(unittest.TestCase):
    """Tables of documents whose source is in several places."""

    def test_the_environment_variables_are_those_that_are_read(self):
        read_by_programs = set()
        for name in tracked_files(ROOT):
            if name.startswith(("shared/", "kernels/", "stages/", "viewer/", "pipelines/")) and name.endswith((".cpp", ".hpp", ".py", ".cu")):
                read_by_programs |= {a or b for a, b in READS.findall(read(name))}
        self.assertGreater(len(read_by_programs), 30)
        page = read("pipelines/docs/environment.md")
        documented = set(re.findall(r"`([A-Z][A-Z_]+)`", page))
        self.assertEqual({name for name in read_by_programs if not NOT_FOR_USERS.match(name)} - documented, set())
        sources = "\n".join(read(name) for name in ("pipelines/launch", "tests/run", "pipelines/setup/setup.sh", "tests/support/seed.hpp",
                                                    "pipelines/deploy/carousel@.service.in", "pipelines/cli/profile.cpp", "tests/campaigns/run.py"))
        others = documented - read_by_programs - {"PYTHONPATH", "ON"}   # Python itself reads the first
        self.assertEqual({name for name in others if name not in sources}, set())

    def test_the_versions_of_formats_are_those_of_the_sources(self):
        page = read("pipelines/docs/compatibility.md")
        for source, pattern, row in (("shared/shm/control_block.hpp", r"control_version = (\d+);", r"layout version, {} in this version"),
                                     ("stages/hosts/link/message.hpp", r"link_version = (\d+);", r"protocol version {} on both sides"),
                                     ("stages/recording/recording.cpp", r'recording_version = "(\d+)";', r"version {}\. The player reads version {}"),
                                     ("shared/dead_letters/dead_letter.cpp", r"dead_letter_version = (\d+);", r"dead letters \| version {},"),
                                     ("shared/ipc/space_block.hpp", r"space_version = (\d+);", r"layout version {} for all clients")):
            number = re.search(pattern, read(source))[1]
            self.assertRegex(page, row.replace("{}", number), source)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
