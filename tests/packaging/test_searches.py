"""A newcomer with the site alone: one search leads to the answer. Builds the site, and opens it as files, without a server.

Usage: test_searches.py BUILD [FOLDER]     writes pictures of the pages into FOLDER"""
import os
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv[1])
PICTURES = sys.argv[2] if len(sys.argv) > 2 else ""
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "pipelines", "setup", "site"), os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "viewer")]
import browser  # noqa: E402
import make_site  # noqa: E402
from processes import skip, wait_for  # noqa: E402

# What is searched, the page of one of the first three results, and words that the page's text below that result has.
QUESTIONS = (
    ("state over frames", "pipelines/docs/state.html", ("exactly once", "rename")),
    ("upgrade", "pipelines/docs/upgrade.html", ("carousel upgrade", "layout version")),
    ("service", "pipelines/docs/service.html", ("systemctl enable",)),
    ("output directory", "pipelines/docs/operate.html", ("runs/NAME-DATE",)),
    ("backtrace", "pipelines/docs/debug.html", ("gdb",)),
    ("environment variables", "pipelines/docs/environment.html", ("CAROUSEL_LOG",)),
    ("max_attempts", "reference/keys.html", ("a whole number from 1 to 7", "Default: 3")),
    ("frame_timeout_ms", "reference/keys.html", ("10 to 3600000", "Default: 2000")),
    ("in_flight", "reference/keys.html", ("from 1 to 16", 'Default: "auto"')),
    ("exit code 73", "reference/words.html", ("threw an exception",)),
)
PAGES = ("index.html", "pipelines/docs/start.html", "pipelines/docs/tutorial.html", "pipelines/docs/learners.html", "pipelines/docs/debug.html",
         "reference/keys.html", "reference/words.html", "reference/commands/chaos.html", "reference/python.html", "reference/cpp.html",
         "shared/ARCHITECTURE.html")


class Searches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="carousel-site-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.site = os.path.join(cls.folder.name, "site")
        make_site.make(BUILD, cls.site)

    def browser(self, *size):
        opened = browser.Browser(browser.find(), *size)
        self.addCleanup(opened.close)
        return opened

    def picture(self, opened, name):
        if PICTURES:
            os.makedirs(PICTURES, exist_ok=True)
            opened.screenshot(os.path.join(PICTURES, name + ".png"))

    @staticmethod
    def open(opened, address):
        opened.open(address)
        wait_for(address, lambda: opened.value("document.readyState") == "complete")

    def results(self, opened, question):
        """Addresses of the results, best first, as the search box shows them."""
        self.open(opened, f"file://{self.site}/index.html?q={question.replace(' ', '+')}")
        wait_for(question, lambda: opened.value("document.querySelectorAll('.md-search-result__item').length"))
        return opened.value("[...document.querySelectorAll('.md-search-result__item')].slice(0, 3).map("
                            "item => [...item.querySelectorAll('a')].map(link => link.href))")

    def test_one_search_leads_to_each_answer(self):
        opened = self.browser(1280, 720)
        for question, page, words in QUESTIONS:
            with self.subTest(question):
                results = self.results(opened, question)
                self.picture(opened, "search-" + question.replace(" ", "-"))
                links = [link for item in results for link in item]
                here = [link for link in links if link.split(self.site + "/")[-1].split("?")[0].split("#")[0] == page]
                self.assertTrue(here, f"{question}: {links}")
                self.open(opened, here[0])
                text = opened.value("document.querySelector('article').innerText")
                for each in words:
                    self.assertIn(each, text, f"{question}: {here[0]}")

    def test_no_page_is_wider_than_its_window(self):
        for name, size in (("wide", (1280, 720)), ("phone", (360, 740))):
            opened = self.browser(*size)
            for page in PAGES:
                self.open(opened, f"file://{self.site}/{page}")
                self.picture(opened, f"{name}-{page.replace('/', '-')[:-5]}")
                widths = opened.value("[document.documentElement.scrollWidth, window.innerWidth]")
                self.assertLessEqual(widths[0], widths[1], f"{name}: {page}")
                broken = opened.value("[...document.images].filter(image => image.complete && image.naturalWidth == 0).map(image => image.src)")
                self.assertEqual(broken, [], page)


if __name__ == "__main__":
    if missing := make_site.missing_packages() + ([] if browser.find() else ["chromium"]):
        skip(f"packages are missing: apt-get install {' '.join(missing)}")
    unittest.main(argv=sys.argv[:1], verbosity=2)
