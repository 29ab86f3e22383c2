"""Makes the documentation site from the documents of the tree and the programs of a finished build.

Usage: make_site.py BUILD FOLDER     writes the site, which needs no server and no network, into FOLDER (index.html)

mkdocs-material makes the pages, Doxygen the reference of the C++ headers. assemble.py and reference.py write what mkdocs reads."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import assemble  # noqa: E402
import reference  # noqa: E402

ROOT = assemble.ROOT

def missing_packages():
    """Debian packages that a site needs and this machine lacks."""
    missing = [command for command in ("mkdocs", "doxygen") if not shutil.which(command)]   # packages of the same names
    if "mkdocs" in missing or "material" not in run("mkdocs", "build", "--help"):   # its help lists the themes
        missing.append("mkdocs-material")
    return missing


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def cpp_reference(build, scratch):
    """Returns Doxygen's folder, with html/ and xml/."""
    headers = os.path.join(scratch, "headers")
    os.makedirs(headers)
    run("cmake", f"-DSOURCE={ROOT}", f"-DTO={headers}/include", "-P", os.path.join(ROOT, "cmake", "install_headers.cmake"))
    with open(os.path.join(build, "docs", "Doxyfile"), encoding="utf-8") as file:
        write(os.path.join(headers, "Doxyfile"), file.read() + "\nGENERATE_XML = YES\nXML_PROGRAMLISTING = NO\n")
    run("doxygen", "Doxyfile", cwd=headers)
    return headers


def generated_pages(build, doxygen):
    carousel = os.path.join(build, "carousel")
    return {"reference/keys.md": reference.keys_page(carousel), "reference/words.md": reference.words_page(carousel),
            **reference.command_pages(carousel), "reference/cpp.md": reference.cpp_page(doxygen),
            "reference/python.md": reference.python_page(os.path.join(ROOT, "stages", "python", "package", "carousel"))}


def navigation(generated):
    out = []
    for section, listed in assemble.navigation():
        entries = []
        for title, path in listed:
            if path.endswith("/"):
                names = sorted(each for each in generated if each.startswith(path))
                entries.append({title: [{os.path.basename(each)[:-3]: each} for each in names]})
            else:
                entries.append({title: path})
        out.append({section: entries})
    return out


def configuration(docs, to, generated):
    """mkdocs.yml. JSON is YAML, except for the function that makes anchors as GitHub does."""
    highlighting = {"pymdownx.highlight": {"guess_lang": False}}
    config = {
        "site_name": "Carousel", "docs_dir": docs, "site_dir": to, "use_directory_urls": False, "strict": True,
        "theme": {"name": "material", "custom_dir": os.path.join(HERE, "theme"), "font": False, "language": "en",
                  "features": ["navigation.tabs", "navigation.top", "search.highlight"],
                  "palette": [
                      {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "teal", "accent": "teal",
                       "toggle": {"icon": "material/weather-night", "name": "Dark colours"}},
                      {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "teal", "accent": "teal",
                       "toggle": {"icon": "material/weather-sunny", "name": "Light colours"}}]},
        "plugins": [{"search": {"lang": "en", "separator": "[\\s\\-,.:;()\\[\\]\"'/=]+"}}],
        "extra_javascript": [], "extra": {"generator": False},
        "markdown_extensions": ["tables", "attr_list", {"toc": {"permalink": True, "slugify": "SLUGS"}}, "pymdownx.superfences", highlighting],
        "nav": navigation(generated),
    }
    return json.dumps(config, indent=1).replace('"SLUGS"', "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}")


def search_without_server(to):
    """Browsers forbid pages of file:// to fetch the index of the search and to start its worker by an address: a script has both as text."""
    with open(os.path.join(to, "search", "search_index.json"), encoding="utf-8") as file:
        index = file.read()
    worker, = glob.glob(os.path.join(to, "assets", "javascripts", "workers", "search.*.min.js"))
    with open(worker, encoding="utf-8") as file:
        source = re.sub(r"\n//# sourceMappingURL=.*", "", file.read())
    with open(os.path.join(HERE, "theme", "local_search.js"), encoding="utf-8") as file:
        script = file.read()
    write(os.path.join(to, "search", "local.js"), script.replace("INDEX_TEXT", json.dumps(index)).replace("WORKER_TEXT", json.dumps(source)))


def make(build, to):
    """Writes the site into the folder `to`, which is replaced. Exits with a message where that is not possible."""
    if missing := missing_packages():
        sys.exit(f"the site needs packages that are not installed: apt-get install {' '.join(missing)}")
    if not os.path.exists(os.path.join(build, "carousel")):
        sys.exit(f"{build} has no program carousel: build it (cmake --build {build} --target carousel)")
    with tempfile.TemporaryDirectory(prefix="carousel-site-") as scratch:
        docs, doxygen = os.path.join(scratch, "docs"), cpp_reference(build, scratch)
        assembly, generated = assemble.Assembly(), generated_pages(build, doxygen)
        for path in assemble.pages():
            write(os.path.join(docs, path), assembly.page(path))
        for path, text in generated.items():
            write(os.path.join(docs, path), text)
        for path, source in assembly.files.items():
            os.makedirs(os.path.dirname(os.path.join(docs, path)), exist_ok=True)
            shutil.copyfile(source, os.path.join(docs, path))
        shutil.copytree(os.path.join(doxygen, "html"), os.path.join(docs, "reference", "cpp"))
        made = os.path.join(scratch, "site")
        write(os.path.join(scratch, "mkdocs.yml"), configuration(docs, made, generated))
        run("mkdocs", "build", "--config-file", os.path.join(scratch, "mkdocs.yml"))
        search_without_server(made)
        for name in ("sitemap.xml", "sitemap.xml.gz"):
            os.remove(os.path.join(made, name))
        for name in glob.glob(os.path.join(made, "**", "*.map"), recursive=True):
            os.remove(name)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(made, to)


if __name__ == "__main__":
    make(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
    print(os.path.join(sys.argv[2], "index.html"))
