"""Packs the GPU tests of a build for a machine that has the GPU but not the packages to build with.

Usage: pack.py BUILD OUT.tar.xz
There, in a checkout of the same commit at the same path (ctest's files name it):

  tar -xf OUT.tar.xz -C BUILD && . BUILD/gpu/environment && python3 -B tests/campaigns/run.py gpu BUILD --seconds 570

(--commit NAME if the copy has no version control; results are in build/campaigns/gpu.json, which --keep moves.)

The programs and the tests that ctest has for a GPU, stripped; the libraries that they name, except those of the C++ runtime and
UCX, whose transports are plug-ins; no window and no film; ctest's own files; the package for Python without its module, which is of
one version of Python: `environment` makes it, if that machine's python3 has pybind11 and its C++ compiler C++20, from what is packed
for it. Without that, tests of Python are reported as skipped."""
import argparse
import glob
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile

# Excludes the C and C++ runtime, the driver and UCX: any machine has its own, and they match each other.
OF_THE_MACHINE = re.compile(r"^(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|cuda|nvidia-ml|uc[pstm]|numa)[.-])")
LEFT_OUT = re.compile(r"-asan$|-viewer|-film\b")   # what they need is large, and no test on a GPU needs them
# The programs have much in common: a window over all of them.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 28}]
HEADERS = ("fmt", "nlohmann")   # that the module includes, in addition to the tree's own and Python's

ENVIRONMENT = """# Sourced: sets what the packed programs need here, and makes the module for this machine's python3 where it can.
packed=@BUILD@
export LD_LIBRARY_PATH="$packed/gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if ! ls "$packed"/python/carousel/_carousel*.so > /dev/null 2>&1; then
    includes=$(python3 -m pybind11 --includes 2>/dev/null) ||
        includes=$(python3 -c 'import sysconfig; print("-isystem", sysconfig.get_paths()["include"])')
    suffix=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
    (cd "$packed" && sh gpu/make_module "$includes" "$suffix" "${CUDA_HOME:-/usr/local/cuda}") ||
        echo "no module for Python: that takes pybind11 (python3 -m pip install pybind11)" >&2
fi
"""


def output_of(*command, **how):
    return subprocess.run(command, check=True, capture_output=True, text=True, **how).stdout


def is_program(path):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def programs_of(build):
    """Those of tests on a GPU, and all that are the product's or the tests' stages."""
    tests = json.loads(output_of("ctest", "--show-only=json-v1", "-L", "gpu", cwd=build))["tests"]
    found = {t["command"][0] for t in tests if "command" in t}
    ours = ("carousel", "guard_cost", "libcarousel", "test_block_guard")
    found |= {os.path.join(build, name) for name in os.listdir(build) if name.startswith(ours)}
    return sorted(p for p in found if not LEFT_OUT.search(p) and os.path.dirname(p) == build and is_program(p))


def modules_of(build):
    """The libraries that tests have a program load."""
    return sorted(glob.glob(os.path.join(build, "tests", "**", "lib*.so"), recursive=True))


def libraries_of(programs):
    found = {}
    for program in programs:
        for line in output_of("ldd", program).splitlines():
            if m := re.match(r"\s*(\S+) => (/\S+)", line):
                if not OF_THE_MACHINE.match(m[1]):
                    found[m[1]] = m[2]
    return found


def module_maker(build):
    """(the script that makes the module, the archives and sources that it reads): the build's own commands, for another Python."""
    commands = output_of("ninja", "-t", "commands", "carousel_python", cwd=build).splitlines()
    commands = [c for c in commands if "stages/python" in c]
    reads = [word for word in commands[-1].split() if word.endswith(".a") and not os.path.isabs(word)]
    sources = sorted(set(re.findall(r"-c (\S+)", "\n".join(commands))))
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
        compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", f.read(), re.M)[1]
    script = ["# make_module INCLUDES SUFFIX CUDA", "set -e", "mkdir -p gpu/objects"]
    for k, source in enumerate(sources):
        compiled, = (c for c in commands if f"-c {source}" in c)
        own = r"-isystem \S+|-M[DTF]( \S+\.o(\.d)?)?|-o \S+|-c \S+|-Werror\S*|-Wno-error\S*"   # of this build alone
        words = re.sub(own, " ", compiled).split()
        words = " ".join(words[words.index(compiler) + 1:])   # without the compiler and its launcher, such as ccache
        script.append(f"c++ {words} $1 -isystem gpu/include -isystem $3/include -o gpu/objects/{k}.o -c {source}")
    script += ["mkdir -p python/carousel",
               f"c++ -shared -Wl,--exclude-libs,ALL -o python/carousel/_carousel$2 gpu/objects/*.o {' '.join(reads)} "
               "gpu/lib/libfmt.so.* -L$3/lib64 -lcudadevrt -lcudart_static -lrt -lpthread -ldl"]
    return "\n".join(script) + "\n", reads, [s for s in sources if s.startswith(build)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=os.path.abspath), p.add_argument("out", type=os.path.abspath)
    a = p.parse_args()
    programs = programs_of(a.build)
    if not any(os.path.basename(p).startswith("test_") for p in programs):
        sys.exit(f"{a.build} has no tests for a GPU: build them first (./tests/run --gpu-only does)")
    with (tempfile.TemporaryDirectory() as folder, lzma.open(a.out, "w", filters=FILTERS) as packed,
          tarfile.open(fileobj=packed, mode="w") as out):
        def text(name, content):
            path = os.path.join(folder, os.path.basename(name))
            with open(path, "w", encoding="utf-8") as f:
                f.write(content)
            out.add(path, name)

        for program in programs:
            stripped = os.path.join(folder, "stripped")
            subprocess.run(["strip", "-o", stripped, program], check=True)
            os.chmod(stripped, 0o755)
            out.add(stripped, os.path.basename(program))
        for path in modules_of(a.build):
            out.add(path, os.path.relpath(path, a.build))
        for name, path in libraries_of(programs).items():
            out.add(os.path.realpath(path), f"gpu/lib/{name}")
        for at, _, names in os.walk(a.build):
            for name in names:
                inside = os.path.relpath(os.path.join(at, name), a.build)
                ctests = name == "CTestTestfile.cmake" or re.search(r"(_include|_tests|_properties)(-\w+)?\.cmake$", name)
                if ctests:   # its interpreter is that of the other machine
                    with open(os.path.join(at, name), encoding="utf-8") as f:
                        text(inside, re.sub(r'"/[^"]*/python3(\.\d+)?"', '"python3"', f.read()))
                elif inside == "CMakeCache.txt" or (inside.startswith("python/") and not name.endswith((".so", ".pyc"))):
                    out.add(os.path.join(at, name), inside)
        if os.path.isdir(os.path.join(a.build, "python", "carousel")):
            script, archives, sources = module_maker(a.build)
            text("gpu/make_module", script)
            for path in archives:
                out.add(os.path.join(a.build, path), path)
            for path in sources:
                out.add(path, os.path.relpath(path, a.build))
            for header in HEADERS:
                out.add(os.path.join("/usr/include", header), f"gpu/include/{header}")
        text("gpu/environment", ENVIRONMENT.replace("@BUILD@", a.build))
    print(f"{a.out}: {len(programs)} programs, {os.path.getsize(a.out) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
