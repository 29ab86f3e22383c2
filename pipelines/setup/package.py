"""Makes packages of what `cmake --install` installs from a finished build.

Usage: package.py deb|wheel|tarball|image|site BUILD FOLDER [--base IMAGE]

Prints the package files that it has written into FOLDER; for images, prints their names. The version is that of CMakeLists.txt.

Debian packages depend on the distribution's libraries. A tarball and a wheel contain these libraries (in lib/carousel, where the
programs' RUNPATH points), except the libraries of SYSTEM and OPTIONAL. check_portable() refuses a package that needs any other library."""
import argparse
import fnmatch
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "site")]
import make_site  # noqa: E402
import man_pages  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
SUMMARY = "Crash-isolated, GPU-resident streaming pipelines"
MAINTAINER = "The Carousel developers <carousel@localhost>"
LICENSE = "Apache-2.0"

COMPRESSION = 6   # tests set 0, because they discard their packages

# Tarballs and wheels need Debian 12 or a newer system. manylinux_2_36 means the glibc of Debian 12.
NEWEST_SYMBOLS = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
PLATFORM = "manylinux_2_36_x86_64"
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libz|ld-linux-x86-64)\.so\.\d+")
# Libraries that only these programs need: each program works as soon as its library is installed.
OPTIONAL = {"carousel-send": "libuc[ps].so.*", "carousel-receive": "libuc[ps].so.*", "carousel-remote": "libuc[ps].so.*",
            "libcarousel-film.so": "lib[as][vw]*.so.*", "libgstcarousel.so": "libg[stol]*-[12].0.so.*",
            "carousel-video": "lib[as][vw]*.so.*", "carousel-viewer": "libglfw.so.*"}
WITH_OWN_PACKAGE = ("carousel-viewer", "libgstcarousel.so")   # in Debian packages, which depend on those libraries


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def version_of(build):
    path = os.path.join(build, "CMakeCache.txt")
    if not os.path.exists(path):
        sys.exit(f"{build} is not a build folder: it has no CMakeCache.txt")
    with open(path, encoding="utf-8") as cache:
        return re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.+)$", cache.read(), re.M).group(1)


def install(build, prefix, final):
    """Installs the build in `prefix`; `final` is the prefix of the installed package, which the unit contains."""
    run("cmake", "--install", build, "--prefix", prefix, "--strip")
    if not os.path.exists(os.path.join(prefix, "bin", "carousel")):
        sys.exit(f"{build} has no programs: build it (cmake --build {build} --target programs), or call without --build")
    unit = os.path.join(prefix, "lib", "systemd", "system", "carousel@.service")
    with open(unit, encoding="utf-8") as file:
        text = file.read().replace(prefix, final)
    write(unit, text)
    man_pages.write_pages(os.path.join(prefix, "bin", "carousel"), os.path.join(prefix, "share", "man", "man1"))
    documents = [document for folder in ("pipelines", "shared", "stages", "viewer") for document in
                 glob.glob(f"{folder}/**/*.md", root_dir=ROOT, recursive=True)]
    for document in [*documents, "CHANGELOG.md", "LICENSE", "README.md"]:   # each document keeps its folder of the tree, so that the links
                                                                            # between documents work
        path = os.path.join(prefix, "share", "doc", "carousel", document)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, document), path)


def add_site(build, prefix):
    """Adds the documents as a site. Without the programs that make it the package has no site, and a warning names their packages."""
    if missing := make_site.missing_packages():
        print(f"warning: the package gets no documentation site, because packages are missing: apt-get install {' '.join(missing)}", file=sys.stderr)
    else:
        make_site.make(build, os.path.join(prefix, "share", "doc", "carousel", "html"))


def files_below(folder):
    """Returns the files and links below the folder; os.walk() lists a link to a folder among the folders."""
    paths = [os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files]
    return sorted(os.path.relpath(path, folder) for path in paths if os.path.islink(path) or not os.path.isdir(path))


def binaries_below(folder):
    """Programs and shared libraries, relative to `folder`."""
    found = []
    for name in files_below(folder):
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    found.append(name)
    return found


def needed_by(path):
    return re.findall(r"^\s*NEEDED\s+(\S+)$", run("objdump", "-p", path), re.M)


def is_optional(program, library):
    return fnmatch.fnmatch(library, OPTIONAL.get(os.path.basename(program), ""))


def add_libraries(prefix):
    """Copies the libraries that a system may lack, and their licences, into the prefix."""
    to, added = os.path.join(prefix, "lib", "carousel"), set()
    for program in binaries_below(prefix):
        path = os.path.join(prefix, program)
        missing = {name for name in needed_by(path) if not SYSTEM.fullmatch(name) and not is_optional(program, name)} - added
        found = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", path), re.M)) if missing else {}
        for name in missing & set(found):
            shutil.copy(os.path.realpath(found[name]), os.path.join(to, name))
            os.chmod(os.path.join(to, name), 0o644)
            add_licence(found[name], os.path.join(prefix, "share", "carousel", "licences"))
            added.add(name)


def add_licence(library, folder):
    for path in (library, os.path.realpath(library), "/usr" + library, "/usr" + os.path.realpath(library)):
        owner = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True, check=False).stdout.split(":")[0]
        text = f"/usr/share/doc/{owner}/copyright"
        if owner and os.path.exists(text):
            os.makedirs(folder, exist_ok=True)
            shutil.copy(text, os.path.join(folder, owner))
            return
    sys.exit(f"{library}: the library may not be passed on, because its package has no copyright file")


def check_portable(prefix):
    """Exits if a library of the binaries is neither in the prefix, nor on each system with the glibc of PLATFORM, nor optional."""
    names, refused = {os.path.basename(b) for b in files_below(prefix)}, []
    for binary in binaries_below(prefix):
        refused += [f"{binary} needs {library}" for library in needed_by(os.path.join(prefix, binary))
                    if library not in names and not SYSTEM.fullmatch(library) and not is_optional(binary, library)]
        for kind, number in set(re.findall(r"\((GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\)", run("objdump", "-T", os.path.join(prefix, binary)))):
            if tuple(map(int, number.split("."))) > NEWEST_SYMBOLS[kind]:
                refused.append(f"{binary} needs {kind}_{number}")
    if refused:
        sys.exit("not portable:\n" + "\n".join(refused))


def portable_prefix(build, prefix):
    install(build, prefix, "/opt/carousel")   # the image has the files there; for any other folder the systemd unit must be adapted
    # pip removes only folders that contain a file, not folders that contain only folders.
    shutil.copyfile(os.path.join(ROOT, "LICENSE"), os.path.join(prefix, "share", "carousel", "LICENSE"))
    add_libraries(prefix)
    check_portable(prefix)


# --- tarball and image -------------------------------------------------------------------------------------------------------------
def make_tarball(build, to, scratch, name="", site=True):
    name = name or f"carousel-{version_of(build)}-linux-x86_64"
    portable_prefix(build, os.path.join(scratch, name))
    if site:
        add_site(build, os.path.join(scratch, name))
    path = os.path.join(to, name + ".tar.gz")
    with gzip.open(path, "wb", compresslevel=COMPRESSION) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(os.path.join(scratch, name), name, filter=owned_by_root)
    return [path]


def owned_by_root(member):
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def make_images(build, scratch, base):
    if not shutil.which("podman"):
        sys.exit("images are built by podman, which is not installed: apt-get install podman")
    version = version_of(build)
    context = os.path.join(scratch, "context")
    os.mkdir(context)
    make_tarball(build, context, scratch, "carousel", site=False)
    made = []
    for stage, name in (("runtime", f"carousel:{version}"), ("cuda", f"carousel:{version}-cuda")):
        # No step of the Containerfile runs a program, so the build needs neither more isolation nor a network.
        run("podman", "build", "--isolation", "chroot", "--target", stage, "--tag", name, "--build-arg", f"BASE={base}",
            "--file", os.path.join(HERE, "Containerfile"), context)
        made.append(name)
    return made


# --- wheel -------------------------------------------------------------------------------------------------------------------------
SETUP = """
import glob, os
from setuptools import Distribution, setup
class Binary(Distribution):
    def has_ext_modules(self):
        return True
setup(name="carousel", version={version!r}, description={summary!r}, license={licence!r}, python_requires={python!r}, packages=["carousel"],
      package_data={{"carousel": ["*"]}}, data_files={{at: files for at, files in {data!r}}}.items(), distclass=Binary)
"""


def make_wheel(build, to, scratch):
    """Makes a wheel for the prefix of an environment: programs in bin, libraries and the starter of Python stages in lib/carousel."""
    prefix = os.path.join(scratch, "prefix")
    portable_prefix(build, prefix)
    modules = glob.glob(os.path.join(prefix, "lib/carousel/python/carousel/_carousel.cpython-*.so"))
    if not modules:
        sys.exit(f"{build} has no module for Python: install python3-dev and pybind11-dev, and build the target python_package")
    python = "cp" + re.search(r"cpython-(\d+)", modules[0]).group(1)
    interpreter = interpreter_for(python)
    for each in ("include", "lib/cmake"):   # a wheel omits these folders, which only C++ stages need; the other kinds of packages contain
                                            # them
        shutil.rmtree(os.path.join(prefix, each))
    for each in glob.glob(os.path.join(prefix, "lib", "**", "*.a"), recursive=True) + glob.glob(os.path.join(prefix, "lib/pkgconfig/*")):
        os.remove(each)
    names = sorted(glob.glob(os.path.join(prefix, "lib/libcarousel-space.so*")), key=len)   # a wheel has no links: the library gets the name
    for link in names[:-1]:                                                                 # by which programs load it
        os.remove(link)
    for library in names[-1:]:
        os.rename(library, os.path.join(prefix, "lib/libcarousel-space.so.0"))
    shutil.move(os.path.join(prefix, "lib/carousel/python/carousel"), scratch)
    folders = {}
    for name in files_below(prefix):
        folders.setdefault(os.path.dirname(name), []).append(os.path.join("prefix", name))
    minor = f"{python[2]}.{python[3:]}"
    with open(os.path.join(scratch, "setup.py"), "w", encoding="utf-8") as setup:
        setup.write(SETUP.format(version=version_of(build), summary=SUMMARY, licence=LICENSE, python=f"=={minor}.*", data=list(folders.items())))
    run(interpreter, "setup.py", "-q", "bdist_wheel", "--plat-name", PLATFORM, "--dist-dir", to,
        "--compression", "deflated" if COMPRESSION else "stored", cwd=scratch)
    return [os.path.join(to, f"carousel-{version_of(build)}-{python}-{python}-{PLATFORM}.whl")]


def interpreter_for(tag):
    """Returns an interpreter that can build a wheel with this tag."""
    question = "import sys, setuptools, wheel; print('cp%d%d' % sys.version_info[:2])"
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", question], capture_output=True, text=True, check=False).stdout.strip() == tag:
            return python
    return sys.exit(f"no interpreter {tag} with setuptools and wheel: apt-get install python3-setuptools python3-wheel")


# --- Debian packages ---------------------------------------------------------------------------------------------------------------
# A file belongs to the first package with a matching pattern. {version}: the version of all of them.
DEBIAN = {
    "carousel-viewer": {"files": ["usr/bin/carousel-viewer"], "section": "graphics", "depends": "carousel (= {version})",
                        "about": "window for a running pipeline"},
    "carousel-dev": {"files": ["usr/include/*", "usr/lib/cmake/*", "usr/lib/*.a", "usr/lib/pkgconfig/*", "usr/lib/libcarousel-space.so"], "section": "libdevel",
                     "depends": "carousel (= {version}), libfmt-dev, nlohmann-json3-dev", "recommends": "g++, cmake, ninja-build",
                     "about": "libraries and headers for stages in C++"},
    "python3-carousel": {"files": ["usr/lib/carousel/python/*", "usr/lib/python3/*"], "section": "python",
                         "depends": "carousel (= {version}), python3 (>= {python}), python3 (<< {next_python}), python3-numpy",
                         "about": "stages, ports and pipelines in Python"},
    "gstreamer1.0-carousel": {"files": ["usr/lib/*/gstreamer-1.0/*"], "section": "video", "depends": "", "recommends": "carousel (= {version})",
                              "about": "GStreamer elements that read and write frames of pipelines"},
    "carousel-doc": {"files": ["usr/share/doc/carousel/html/*"], "section": "doc", "depends": "carousel (= {version})",
                     "about": "documentation as a site, with search, for browsers"},
    "carousel": {"files": ["*"], "section": "utils", "depends": "", "recommends": "libssl3, libdw1",
                 "suggests": "carousel-viewer, carousel-doc, python3-carousel",
                 "about": "programs and pipelines"},
}
# Also removes the compiled files that importing the modules has written.
REMOVE_COMPILED = "#!/bin/sh\nset -e\nrm -rf /usr/lib/carousel/python/__pycache__ /usr/lib/carousel/python/carousel/__pycache__\n"


def make_debs(build, to, scratch):
    made = []
    for name, folder in debian_folders(build, scratch).items():
        path = os.path.join(to, f"{name}_{version_of(build)}_amd64.deb")
        run("dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", folder, path)
        made.append(path)
    return made


def debian_folders(build, scratch):
    """Makes one folder per package, in the form that dpkg-deb packs."""
    whole = os.path.join(scratch, "whole")
    install(build, os.path.join(whole, "usr"), "/usr")
    add_site(build, os.path.join(whole, "usr"))
    add_debian_files(whole)
    folders = {}
    for file in files_below(whole):
        name = next(n for n, package in DEBIAN.items() if any(fnmatch.fnmatch(file, pattern) for pattern in package["files"]))
        folders[name] = os.path.join(scratch, name)
        path = os.path.join(folders[name], file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.move(os.path.join(whole, file), path)
    for name, folder in folders.items():
        shutil.copytree(os.path.join(scratch, "copyright"), os.path.join(folder, "usr/share/doc", name), dirs_exist_ok=True)
        write_control(name, folder, version_of(build))
    return folders


def add_debian_files(whole):
    """Adds the files that the distribution requires in addition, or in other folders."""
    completions = {"bash": "usr/share/bash-completion/completions/carousel", "fish": "usr/share/fish/vendor_completions.d/carousel.fish"}
    for shell, file in completions.items():
        path = os.path.join(whole, file)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as script:
            script.write(run(os.path.join(whole, "usr/bin/carousel"), "completion", shell))
    if os.path.isdir(os.path.join(whole, "usr/lib/carousel/python")):
        os.makedirs(os.path.join(whole, "usr/lib/python3/dist-packages"))
        os.symlink("../../carousel/python/carousel", os.path.join(whole, "usr/lib/python3/dist-packages/carousel"))
    if os.path.isdir(plugins := os.path.join(whole, "usr/lib/gstreamer-1.0")):   # the folder of the distribution's plugins
        os.makedirs(os.path.join(whole, "usr/lib/x86_64-linux-gnu"))
        shutil.move(plugins, os.path.join(whole, "usr/lib/x86_64-linux-gnu/gstreamer-1.0"))
    folder = os.path.join(os.path.dirname(whole), "copyright")
    os.makedirs(folder)
    with open(os.path.join(folder, "copyright"), "w", encoding="utf-8") as text:
        text.write("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n"
                   f"Copyright: the Carousel developers\nLicense: {LICENSE}\n On Debian systems: /usr/share/common-licenses/Apache-2.0\n")


def write_control(name, folder, version):
    package, control = DEBIAN[name], os.path.join(folder, "DEBIAN")
    os.makedirs(control)
    module = "".join(glob.glob(os.path.join(folder, "usr/lib/carousel/python/carousel/_carousel.cpython-*.so")))
    minor = int(re.search(r"cpython-3(\d+)", module).group(1)) if module else 0
    depends, recommends = library_packages(folder)
    own = package["depends"].format(version=version, python=f"3.{minor}", next_python=f"3.{minor + 1}")
    words = {"Depends": [own, depends], "Recommends": [package.get("recommends", "").format(version=version), recommends], "Suggests": [package.get("suggests", "")]}
    size = sum(os.lstat(os.path.join(folder, file)).st_size for file in files_below(folder)) // 1024
    lines = [f"Package: {name}", f"Version: {version}", "Architecture: amd64", f"Section: {package['section']}", "Priority: optional",
             f"Maintainer: {MAINTAINER}", f"Installed-Size: {size}", "Source: carousel"]
    lines += [f"{field}: {', '.join(filter(None, each))}" for field, each in words.items() if any(each)]
    lines += [f"Description: Carousel: {package['about']}", f" {SUMMARY}."]
    write(os.path.join(control, "control"), "\n".join(lines) + "\n")
    sums = [file for file in files_below(folder) if not file.startswith("DEBIAN/") and not os.path.islink(os.path.join(folder, file))]
    write(os.path.join(control, "md5sums"), run("md5sum", *sums, cwd=folder))
    if module:
        write(os.path.join(control, "prerm"), REMOVE_COMPILED, 0o755)


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def library_packages(folder):
    """Returns (Depends, Recommends): packages of libraries. Recommends has those that only OPTIONAL programs need, Depends the others."""
    optional, needed = [], []
    for binary in binaries_below(folder):
        (optional if os.path.basename(binary) in OPTIONAL and os.path.basename(binary) not in WITH_OWN_PACKAGE else needed).append(os.path.join(folder, binary))
    if not optional + needed:
        return "", ""
    with tempfile.TemporaryDirectory() as empty:   # dpkg-shlibdeps requires a source package
        os.mkdir(os.path.join(empty, "debian"))
        write(os.path.join(empty, "debian", "control"), "Source: carousel\n\nPackage: carousel\nArchitecture: any\n")
        fields = run("dpkg-shlibdeps", "-O", "-dDepends", *needed, *(["-dRecommends", *optional] if optional else []), cwd=empty)
    fields = dict(re.findall(r"^shlibs:(\w+)=(.*)$", fields, re.M))
    return fields.get("Depends", ""), fields.get("Recommends", "")


def main():
    parser = argparse.ArgumentParser(description="makes packages of a finished build")
    parser.add_argument("kind", choices=("deb", "wheel", "tarball", "image", "site"))
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("to", type=os.path.abspath)
    parser.add_argument("--base", default="docker.io/library/debian:bookworm-slim", help="what the image is based on")
    words = parser.parse_args()
    os.umask(0o022)
    os.makedirs(words.to, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="carousel-package-") as scratch:
        if words.kind == "image":
            made = make_images(words.build, scratch, words.base)
        elif words.kind == "site":
            make_site.make(words.build, os.path.join(words.to, "site"))
            made = [os.path.join(words.to, "site", "index.html")]
        else:
            made = {"deb": make_debs, "wheel": make_wheel, "tarball": make_tarball}[words.kind](words.build, words.to, scratch)
    print("\n".join(made))


if __name__ == "__main__":
    main()
