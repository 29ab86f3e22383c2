"""The house rules that a program can check. Usage: tidy.py ROOT; prints one line an offence, exit code 1 if there is any."""
import os
import re
import subprocess
import sys

SOURCE = (".cpp", ".hpp", ".cu", ".cuh")
TEXT = SOURCE + (".py", ".sh", ".cmake", ".toml", ".json", ".md", ".in", ".txt", "launch", "run")
MAX_PROSE = 120

# Which folders a folder may include, besides itself and its own subfolders. Includes go down only. The longest name that fits counts.
# The core never includes an extra: it is built and tested alone with -DCAROUSEL_EXTRAS=OFF.
BASE = ["core", "shm"]
RUN = BASE + ["frame", "parameters", "ring", "ledger", "telemetry", "run", "dead_letters", "control"]   # what a process needs that loads no CUDA
LIBRARY = RUN + ["device", "session"]
SUPERVISOR = ["os", "runs", "spec", *(f"supervisor/{part}" for part in (
    "plan", "mps", "policy", "stores", "processes", "engine", "web", "service"))]
RENDERER = LIBRARY + ["kernels", "stages/sdk", "stages/scene"]
VIEWER = ["viewer/watch", "viewer/ui", "viewer/window", "viewer/session", "viewer/panels"]
COMMAND = RUN + SUPERVISOR + ["cli"]
CORE = {
    "core": [],
    "shm": ["core"],
    "device": BASE,
    "frame": BASE,
    "parameters": BASE,
    "ring": BASE + ["device", "frame"],
    "ring/check": BASE + ["ring"],   # reads a control block that may be damaged; the protocol does not depend on it
    "ledger": ["core"],
    "telemetry": BASE + ["device", "frame", "ring"],
    "run": BASE + ["ring", "ledger", "telemetry"],
    "dead_letters": BASE + ["device", "frame", "parameters"],
    "control": BASE + ["device", "frame", "parameters", "ring", "telemetry", "run"],
    "session": RUN + ["device"],
    "picture": ["core", "frame"],   # for programs that make pictures; the library that is installed has none of it
    "kernels": ["core", "device"],
    "stages/sdk": LIBRARY + ["kernels"],
    "stages/scene": LIBRARY + ["kernels", "stages/sdk"],
    "stages/runner": LIBRARY + ["stages/sdk"],
    "stages/assets": BASE + ["device", "kernels", "stages/sdk"],   # files of meshes; no CUDA: `carousel mesh-info` reads them, too
    "stages/geometry": RENDERER + ["stages/assets"],
    "stages/vertex": RENDERER,
    "stages/fragment": RENDERER,
    "stages/fused": RENDERER + ["stages/vertex", "stages/fragment"],
    "stages/media": BASE + ["frame"],   # what stages with FFmpeg's libraries share
    "stages/encode": RENDERER + ["stages/media"],
    "stages/display": RENDERER + ["picture", "stages/encode"],
    "stages/sharpen": RENDERER,
    "stages/shadow": RENDERER,
    "stages/light": RENDERER + ["stages/assets"],
    "stages/taa": RENDERER,
    "stages/post": RENDERER,
    "stages/compare": RENDERER,
    **{folder: RUN + ["ring/check"] + SUPERVISOR[:number] for number, folder in enumerate(SUPERVISOR)},   # no CUDA, ever
    "graph": RUN + ["os", "spec", "supervisor/plan"],
    "top": RUN + ["os", "runs", "spec"],
    "trace": RUN + ["os"],
    "alloc": BASE + ["device", "run", "control"],
    "backtrace": BASE + ["run"],
    "cli": RUN + SUPERVISOR + ["graph", "top", "trace"],
    **{folder: LIBRARY + VIEWER[:number] for number, folder in enumerate(VIEWER)},
    "viewer/watch": LIBRARY + ["picture", "kernels"],   # kernels: the encodings of planes, and the tone maps
    "viewer/peek": LIBRARY + ["viewer/watch"],
    "viewer": LIBRARY + VIEWER,
}
EXTRAS = {
    "ipc": BASE,
    "ipc/cuda": BASE + ["ipc", "device"],
    "ipc/c": BASE + ["ipc"],   # <carousel/space.h>
    "ipc/c/cuda": BASE + ["ipc", "ipc/c", "ipc/cuda", "device"],
    "hosts": ["core"],     # several hosts: for supervisors and links
    "stages/inference": RENDERER,
    "stages/compression": ["core"],
    "stages/video": LIBRARY + ["stages/sdk", "stages/media"],
    "stages/recording": LIBRARY + ["kernels", "picture", "stages/sdk", "stages/compression", "stages/display"],
    "stages/hosts/link": LIBRARY + ["hosts"],  # what two hosts say: no socket, no UCX
    "stages/hosts/ucx": LIBRARY,
    "stages/hosts": LIBRARY + ["hosts", "kernels", "stages/sdk", "stages/compression", "stages/hosts/link", "stages/hosts/ucx"],
    "stages/gstreamer": LIBRARY + ["stages/sdk"],
    "stages/python": LIBRARY + ["stages/sdk"],
    "stages/examples": [],   # outside projects: the public headers alone, see check_example
    "spaces": COMMAND + ["ipc"],
    "alloc/space": BASE + ["alloc", "device", "ipc", "ipc/cuda"],
    "supervisor/hosts": COMMAND + ["hosts"],
    "doctor": COMMAND + ["ipc"],
    "chaos": COMMAND,
    "projects": COMMAND,
    "mesh_info": COMMAND + ["stages/assets"],
    "recording": COMMAND,
    "plot": ["core"],
    "lab": COMMAND + ["plot", "spaces"],
    "bench": LIBRARY + ["cli", "ipc", "ipc/cuda", "kernels", "plot", "os", "spaces", "spec", "supervisor/plan", "viewer/watch"],
    "bench/threads": RENDERER + ["bench", "os", "spec", "supervisor/plan", "stages/geometry", "stages/vertex", "stages/fragment",
                                 "stages/fused", "stages/sharpen", "stages/display"],
    "viewer/web": LIBRARY + ["viewer/watch"],
}
LAYERS = CORE | EXTRAS
# What a stage on a GPU includes by choice; none of our own files does.
CUDA_FOR_USERS = ("stages/sdk/carousel/cuda.hpp", "tests/gpu/device_stage.cpp")
EXAMPLES = "stages/examples/"
LESSON_COMMON = re.compile(r"(\.\./)+(program\.hpp|cuda/program\.cuh)$")   # what the programs of all lessons share
LESSON_PROGRAM = re.compile(r"pipelines/lab/lessons/[^/]+/(?!lesson\.cpp$)")   # a lesson's programs; lesson.cpp is its data
PUBLIC = ("carousel/stage.hpp", "carousel/cpu.hpp", "carousel/cuda.hpp", "carousel/hash.hpp", "carousel/port.hpp", "carousel/testing.hpp",
          "carousel/ipc.hpp", "carousel/ipc_cuda.cuh", "carousel/space.h")
# The environment, the umask and the working directory belong to the whole process: who changes them races with every thread that reads
# the environment or creates a file. So they are changed here alone, each time before the process has a second thread.
PROCESS_WIDE = re.compile(r"\b((?:setenv|unsetenv|putenv|clearenv|umask|chdir|fchdir)\s*\(|environ\s*=(?!=))")
PROCESS_WIDE_PLACES = {
    "shared/device/cuda/devices.cpp": "initialises a static: when the program or module is loaded",
    "stages/runner/stage_main.cpp": "first in main() of a stage",
    "stages/hosts/ucx/settings.cpp": "first in main() of a link's stage, which then starts itself again",
    "pipelines/supervisor/plan/compatibility.cpp": "in `carousel restart`, `reload` and `upgrade`, which have one thread",
    "pipelines/supervisor/engine/run.cpp": "first in `carousel run`, which has one thread then",
    "pipelines/bench/raster.cpp": "first in `bench raster`, which has one thread then",
    "pipelines/bench/opengl/peer.cpp": "before a GL is loaded, the first that starts threads in `bench raster --peer opengl`",
    "pipelines/bench/ipc/mps_daemon.cpp": "in a child, before its first thread",
    "pipelines/bench/ipc/cuda/gpu_hops.cpp": "in a child, before its first thread",
    "pipelines/bench/ipc/cuda/gpu_primitives.cpp": "in a child, before its first thread",
    "viewer/watch/tap.cpp": "stay_outside_mps(), first in main() of what shows pictures",
    "viewer/window/window_glfw.cpp": "the viewer's first object, before GL is loaded",
    "pipelines/lab/lessons/05_coherence/cuda/main.cu": "a program of its own, before its first child",
    "pipelines/lab/lessons/12_isolation/cuda/main.cu": "a program of its own, before its first child",
    "pipelines/lab/lessons/14_ranks/main.cpp": "a program of its own, which has one thread",
}
# What the supervisor, which holds all memory, needs of the device layer: what a handle is (pipeline files name kinds of memory), and how
# the CPU's memory is made. No CUDA in either.
EXCEPTIONS = {("spec", "device/backend.hpp"), ("supervisor", "device/backend.hpp"), ("supervisor", "device/cpu/memfd.hpp"),
              ("supervisor", "device/canary.hpp"), ("supervisor", "device/device_failure.hpp")}


def tracked_files(root):
    """Files under version control; without git (a source archive) all but what is built or run."""
    try:
        out = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z"], capture_output=True, check=True)
        names = [n for n in out.stdout.decode().split("\0") if n]
        if names:
            return [n for n in names if os.path.isfile(os.path.join(root, n))]
    except (OSError, subprocess.CalledProcessError):
        pass
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", "runs", "__pycache__") and not f.startswith(".")]
        names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return names


def layer_of(name):
    """The layer of a file of the tree; None for what has none (tests)."""
    parts = name.split("/")
    if parts[0] not in ("shared", "kernels", "stages", "viewer", "pipelines"):
        return None
    folder = parts[1:-1] if parts[0] in ("shared", "pipelines") else parts[:-1]
    while folder and "/".join(folder) not in LAYERS:
        folder.pop()
    return "/".join(folder) or "a folder without a layer"


def layer_of_include(name, path):
    """The layer that an #include of PATH in the file NAME goes to: the file's own for a header of another project."""
    if path.startswith("carousel/"):  # <carousel/stage.hpp>, as users write it; <carousel/ipc.hpp> stands in shared/ipc
        path = {"carousel/ipc.hpp": "ipc/", "carousel/ipc_cuda.cuh": "ipc/cuda/", "carousel/space.h": "ipc/c/"}.get(path, "stages/sdk/") + path
    folder = path.removeprefix("shared/").removeprefix("pipelines/").split("/")[:-1]
    while folder and "/".join(folder) not in LAYERS:
        folder.pop()
    return "/".join(folder) or layer_of(os.path.normpath(os.path.join(os.path.dirname(name), path)))   # relative, as ../ipc/pool.hpp


def check_includes(name, text):
    layer = layer_of(name)
    if layer is None or name.startswith(EXAMPLES) or LESSON_PROGRAM.match(name):
        return
    for number, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
        if not m:
            continue
        target = layer_of_include(name, m[2])
        allowed = LAYERS.get(layer, [])
        if layer in CORE and target in EXTRAS:
            yield number, f"{layer} includes {m[2]}: the core is built without extras, and declares what an extra implements"
        elif target and target != layer and target not in allowed and (layer.split("/")[0], m[2]) not in EXCEPTIONS:
            yield number, f"{layer} includes {m[2]}: includes go down only ({layer} may use {', '.join(allowed) or 'nothing'})"
        if name.startswith("shared/") and re.match(r"boost/interprocess/(sync/|managed_)", m[2]):
            yield number, f"{m[2]}: no Boost mutex, condition or managed segment in shared memory (a killed holder wedges everybody)"
        if re.match(r"(cuda|cuda_runtime|cuda_runtime_api)\.h$", m[2]) and "/cuda/" not in name and name not in CUDA_FOR_USERS:
            yield number, f"{m[2]} outside a folder cuda/"


def check_example(name, text):
    """An example, and a lesson's program, is what a user writes: of Carousel it knows the installed headers, and no other file but its
    own."""
    folder = "/".join(name.split("/")[:3]) + "/"
    for number, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
        if not m or not (name.startswith(EXAMPLES) or LESSON_PROGRAM.match(name)):
            continue
        if m[1] == '"' and "/" in m[2] and not (LESSON_PROGRAM.match(name) and LESSON_COMMON.match(m[2])):
            yield number, f"{m[2]}: an example includes its own files ({folder}) and <{'>, <'.join(PUBLIC)}>"
        if m[1] == "<" and m[2].startswith("carousel/") and m[2] not in PUBLIC:
            yield number, f"<{m[2]}> is no public header: an example includes <{'>, <'.join(PUBLIC)}>"


def check_protocol(name, text):
    """The protocol's words are changed in ring/, where their argument stands, and nowhere else."""
    if name.startswith(("shared/ring/", "tests/")):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\bring::cas\b", line):
            yield number, "a word of the protocol is changed outside shared/ring"


def check_json(name, text):
    """JSON from a socket or a file has limits of size and depth; core/json_text is the one place that parses it."""
    if layer_of(name) is None or name.startswith(("shared/core/json_text.", EXAMPLES)):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\bjson::(parse|accept|sax_parse|from_(cbor|msgpack|ubjson|bjdata|bson))\b|>>\s*\w*json\w*\s*[;)]", line):
            yield number, "JSON is parsed without limits: use parse_json of core/json_text.hpp"
        if "<nlohmann/json.hpp>" in line and name != "shared/core/json.hpp":
            yield number, "integers of this JSON value are read unchecked: include core/json.hpp instead"


def check_process_wide(name, text):
    """State of the whole process is changed only at the listed places."""
    if name.startswith("tests/") or name in PROCESS_WIDE_PLACES:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if m := PROCESS_WIDE.search(line.split("//")[0]):
            yield number, f"`{m[1]}` changes the whole process while its other threads run: avoid it, or list the place in tidy.py with a reason"


def check_waits(name, text):
    """A wait for descriptors outlasts a signal: by core/io.hpp, which restarts it. Benchmarks and lessons stand alone."""
    if layer_of(name) is None or name.startswith(("shared/core/io.", "pipelines/bench/", "pipelines/lab/", EXAMPLES)):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"(?<![\w:])::p?poll\(", line):
            yield number, "poll() ends at each signal: use poll_until() or events_of() (core/io.hpp)"


def check_text(name, text):
    lines = text.splitlines()
    # The patterns are put together here so that this file does not offend by itself.
    machine = re.compile("/(" + "|".join(("work", "home", "root")) + r")/[A-Za-z.]")
    design = "shared/" + "design"
    undone = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
    for number, line in enumerate(lines, 1):
        if "\t" in line and not name.endswith((".md", ".tsv")):
            yield number, "a tab"
        if machine.search(line):
            yield number, f"a path of one machine: {machine.search(line)[0]}..."
        if design in line:
            yield number, f"a reference to {design}, which no reader of this repository has"
        if undone.search(line):
            yield number, f"{undone.search(line)[0]}: finish it or leave it out"
        if name.endswith(SOURCE) and re.match(r'TEST_CASE\("[^"]*;', line):
            yield number, "a test case with a semicolon in its name: Catch's script for ctest cuts the name there, and asks for no such case"
        if name.endswith(SOURCE) and re.match(r'TEST_CASE\("-', line):
            yield number, "a test case whose name begins with a dash: ctest asks for it by name, and the program takes that for an option"
        if name.endswith(SOURCE) and re.match(r"\s*using namespace std\b", line):
            yield number, "using namespace std"
    if name.endswith(".hpp") and "#pragma once" not in text and not text.startswith("// No include guard on purpose"):
        yield 1, "a header without #pragma once (or with the reason: \"// No include guard on purpose: ...\")"
    if name.endswith((".cu", ".cuh")) and "/cuda/" not in "/" + name and not name.startswith(EXAMPLES):
        yield 1, "CUDA sources live under a folder cuda/"


def check_cmake(name, text):
    if name.endswith("CMakeLists.txt") or name.endswith(".cmake"):
        for number, line in enumerate(text.splitlines(), 1):
            # Tests look for every pipeline file by design; sources are listed, so that a build never depends on stray files.
            if re.search(r"file\s*\(\s*GLOB", line) and "*.toml" not in line:
                yield number, "sources are listed, never globbed"


def check_document(name, text, root):
    """Prose fits a terminal; tables and code need not. The target of each relative link exists."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.startswith("```")
        if len(line) > MAX_PROSE and not code and not line.startswith(("|", "![", "    ")):
            yield number, f"prose of {len(line)} columns, at most {MAX_PROSE}"
        for target in [] if code else re.findall(r"\]\(([^)#\s]+)", line):
            if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(name), target)):
                yield number, f"a link to {target}, which is not there"


def unlisted_sources(files, texts):
    """Sources that no CMakeLists.txt names, as a path from its own folder or behind a variable: they are never built."""
    listed, variable_paths = set(), []
    for name, text in texts.items():
        if not name.endswith(("CMakeLists.txt", ".cmake")):
            continue
        folder = os.path.dirname(name)
        for before, word in re.findall(r"(\}?)([\w./-]+\.(?:cpp|cu))\b", text):
            if before:   # ${folder}/main.cpp
                variable_paths.append((folder, word))
            listed.add(os.path.normpath(os.path.join(folder, word.lstrip("/"))))
            listed.add(os.path.normpath(word.lstrip("/")))
    for name in files:
        if name.endswith((".cpp", ".cu")) and name not in listed:
            if not any(name.startswith(f + "/") and name.endswith(w) for f, w in variable_paths):
                yield name


SOURCE_CHECKS = (check_includes, check_example, check_protocol, check_json, check_process_wide, check_waits)


def check_tree(root):
    files = tracked_files(root)
    texts = {}
    for name in files:
        if name.endswith(TEXT) and name != "LICENSE":
            with open(os.path.join(root, name), encoding="utf-8") as f:
                texts[name] = f.read()
    offences = []
    for name, text in sorted(texts.items()):
        for check in (check_text, check_cmake) + (SOURCE_CHECKS if name.endswith(SOURCE) else ()):
            offences += [f"{name}:{number}: {what}" for number, what in check(name, text)]
        if name.endswith(".md"):
            offences += [f"{name}:{number}: {what}" for number, what in check_document(name, text, root)]
    offences += [f"{name}:1: no CMakeLists.txt names it" for name in unlisted_sources(files, texts)]
    return len(texts), offences


if __name__ == "__main__":
    count, found = check_tree(sys.argv[1])
    for offence in found:
        print(offence)
    print(f"{count} files, {len(found)} offences")
    sys.exit(1 if found or count == 0 else 0)
