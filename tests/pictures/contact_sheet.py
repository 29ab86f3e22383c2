"""Pictures of foreign models by Carousel next to those of f3d and of the Khronos sample renderer, and their difference (FLIP).

  contact_sheet.py references --khronos PACKAGE   makes viewers.webp and viewers.json: the pictures of both other viewers, small
  contact_sheet.py compare --programs BUILD [--sheet FILE.webp]    renders by Carousel, and compares with these pictures
  contact_sheet.py accept --programs BUILD        the same, and writes the files that differ into viewers.json as known

The models are those of Debian's package assimp-testmodels (5.2.5), or in the folder --models. PACKAGE: the unpacked npm package
@khronosgroup/gltf-viewer (1.1.0). Takes numpy, ffmpeg; `references` also f3d (1.3.1), xvfb-run and Chromium.

All three have the same light (the sky of Carousel, no sun), the same direction of the camera and no tone map. A picture is cut to the
model, scaled to 96 x 96 pixels and put on grey, because each viewer has its own background and fits the view in its own way. The
threshold is the FLIP that 90 % of the files have between f3d and the Khronos renderer: those two differ as much. A file beyond it, or one
that only the others show, must be known with its reason: `compare` fails with a list of the others."""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import skip  # noqa: E402

try:
    import numpy as np
    import flip
    import other_viewers
except ImportError:   # --help needs none of them
    np = None

ATLAS, TABLE = os.path.join(HERE, "viewers.webp"), os.path.join(HERE, "viewers.json")
TILE, COLUMNS, GREY = 96, 16, 0.5
KINDS = (".gltf", ".glb", ".obj", ".ply")
PIPELINE = """[pipeline]
name = "sheet{number}"
size = [320, 320]
[parameters]
eye = [2.31, 1.88, 3.30]
fov_y = 0.5236
ambient = 1.0
spin = 0.0
[[stage]]
name = "geometry"
run = "carousel-geometry"
mesh = "{model}"
full_materials = true
[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]
[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]
output = "surface"
[[stage]]
name = "light"
run = "carousel-light"
inputs = ["fragment"]
sun = 0.0
occlusion = 0.0
[[stage]]
name = "post"
run = "carousel-post"
inputs = ["light"]
tone_map = "linear"
bloom = 0.0
[[stage]]
name = "display"
run = "carousel-display"
inputs = ["post"]
[[stage]]
name = "plain"
run = "carousel-fragment"
inputs = ["vertex"]
[[stage]]
name = "mask"
run = "carousel-display"
inputs = ["plain"]
"""


def models_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
                  if name.lower().endswith(KINDS) and f"{os.sep}invalid" not in at)


def cut(picture):
    """The model, cut out by its alpha, on grey: f64[TILE, TILE, 3]; None if the picture shows nothing."""
    ys, xs = np.nonzero(picture[..., 3] > 0.5)
    if len(ys) < 16:
        return None
    side = 1.06 * (max(np.ptp(ys), np.ptp(xs)) + 1)
    on_grey = picture[..., :3] * picture[..., 3:] + GREY * (1 - picture[..., 3:])
    fine = (np.arange(4 * TILE) + 0.5) / (4 * TILE) - 0.5   # 16 samples per pixel
    rows = np.rint((ys.min() + ys.max()) / 2 + fine * side).astype(int)
    columns = np.rint((xs.min() + xs.max()) / 2 + fine * side).astype(int)
    inside = ((rows >= 0) & (rows < picture.shape[0]))[:, None] & ((columns >= 0) & (columns < picture.shape[1]))[None, :]
    samples = on_grey[np.clip(rows, 0, picture.shape[0] - 1)][:, np.clip(columns, 0, picture.shape[1] - 1)]
    return np.where(inside[..., None], samples, GREY).reshape(TILE, 4, TILE, 4, 3).mean((1, 3))


def atlas_of(tiles):
    rows = -(-len(tiles) // COLUMNS)
    out = np.full((rows * TILE, COLUMNS * TILE, 3), GREY)
    for k, tile in enumerate(tiles):
        y, x = k // COLUMNS * TILE, k % COLUMNS * TILE
        out[y:y + TILE, x:x + TILE] = tile
    return out


def references(a):
    os.makedirs(a.work, exist_ok=True)
    folder = os.path.abspath(a.work)
    khronos = other_viewers.Khronos(a.khronos, a.models, folder)
    viewers = {"f3d": other_viewers.F3d(folder), "khronos": khronos}

    def tile_of(name, number, model):
        """The cut picture, or why there is none; None if the viewer does not read such files."""
        if name == "khronos" and not model.lower().endswith((".gltf", ".glb")):
            return None
        out = os.path.join(folder, f"{number}-{name}.png")
        why = None if os.path.exists(out) else viewers[name].render(os.path.join(a.models, model), out)
        if why:
            return why
        tile = cut(np.load(out + ".npy") if os.path.exists(out + ".npy") else flip.read(out))
        return tile if tile is not None else "an empty picture"

    models = models_in(a.models)
    with concurrent.futures.ThreadPoolExecutor(5) as several, concurrent.futures.ThreadPoolExecutor(1) as one:
        made = {(name, model): pool.submit(tile_of, name, number, model)
                for name, pool in (("f3d", several), ("khronos", one)) for number, model in enumerate(models)}
        made = {key: future.result() for key, future in made.items()}
    khronos.close()
    table, tiles, both = {}, [], []
    for model in models:
        row = table[model] = {}
        for name in viewers:
            found = made[name, model]
            if isinstance(found, np.ndarray):
                row[name] = len(tiles)
                tiles.append(found)
            elif found:
                row[name] = found
        if all(isinstance(row.get(name), int) for name in viewers):
            row["flip"] = round(float(flip.flip(made["khronos", model], made["f3d", model]).mean()), 4)
            both.append(row["flip"])
        print(model, row)
    flip.write(ATLAS, atlas_of(tiles), "-c:v", "libwebp", "-quality", "88")
    result = {"threshold": round(float(np.quantile(both, 0.9)), 4), "files_of_both": len(both), "known": {}, "models": table}
    with open(TABLE, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print(f"{len(tiles)} pictures; threshold {result['threshold']} from {len(both)} files")


def background_of(programs, folder):
    other_viewers.write_nothing(os.path.join(folder, "nothing.obj"))
    found = run_carousel(programs, folder, folder, "nothing", "nothing.obj")
    if isinstance(found, str):
        sys.exit(f"Carousel makes no picture: {found}")
    return found[1]


def run_carousel(programs, folder, models, number, model):
    """The picture and that of the mask, or why there is none."""
    at = os.path.join(folder, str(number))
    os.mkdir(at)
    with open(os.path.join(at, "sheet.toml"), "w", encoding="utf-8") as f:
        f.write(PIPELINE.format(number=number, model=os.path.join(models, model)))
    try:
        done = subprocess.run([os.path.join(programs, "carousel"), "run", "sheet.toml", "--device", "cpu", "--frames", "1", "--no-color",
                               "--out", "display=p_%d.png", "--out", "mask=m_%d.png"], cwd=at, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "XDG_RUNTIME_DIR": folder})
    except subprocess.TimeoutExpired:
        return "no picture within 120 s"
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if model in line or "error" in line]
        return (lines or done.stderr.splitlines() or [f"exit code {done.returncode}"])[0][:300]
    return flip.read(os.path.join(at, "p_0.png")), flip.read(os.path.join(at, "m_0.png"))


def render_carousel(programs, folder, models, number, model, background):
    """The cut picture, or why there is none."""
    found = run_carousel(programs, folder, models, number, model)
    if isinstance(found, str):
        return found
    picture, mask = found
    picture = np.concatenate([picture[..., :3], (mask != background).any(-1)[..., None]], -1)
    tile = cut(picture)
    return tile if tile is not None else "an empty picture"


def sheet(path, rows):
    """`rows`: [(model, [tile or None], [FLIP or None])]. Four models per line, each with its three pictures and its name."""
    per_line, line = 4, TILE + 16
    lines = -(-len(rows) // per_line)
    width = per_line * (3 * TILE + 12)
    out, events = np.full((lines * line, width, 3), 0.08), []
    for k, (model, tiles, text) in enumerate(rows):
        y, x = k // per_line * line, k % per_line * (3 * TILE + 12)
        for n, tile in enumerate(tiles):
            if tile is not None:
                out[y:y + TILE, x + n * TILE:x + (n + 1) * TILE] = tile
        events.append(f"Dialogue: 0,0:00:00.00,0:01:00.00,S,,0,0,0,,{{\\pos({x + 2},{y + TILE + 1})}}{os.path.basename(model)[:34]}  {text}")
    with tempfile.TemporaryDirectory(prefix="carousel-sheet-") as folder:
        with open(os.path.join(folder, "names.ass"), "w", encoding="utf-8") as f:
            f.write(f"[Script Info]\nScriptType: v4.00+\nPlayResX: {width}\nPlayResY: {lines * line}\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize, "
                    "PrimaryColour, OutlineColour, BackColour, Bold, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"
                    "Style: S,DejaVu Sans,11,&HD0D0D0&,&H0&,&H0&,0,1,0,0,7,0,0,0,1\n\n[Events]\n"
                    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n" + "\n".join(events) + "\n")
        flip.write(os.path.abspath(path), out, "-vf", f"ass={folder}/names.ass", "-c:v", "libwebp", "-quality", "75")


def compare(a):
    with open(TABLE, encoding="utf-8") as f:
        table = json.load(f)
    pixels = flip.read(ATLAS)[..., :3]
    per_row = pixels.shape[1] // TILE

    def reference(k):
        y, x = k // per_row * TILE, k % per_row * TILE
        return pixels[y:y + TILE, x:x + TILE]

    rows, found, unknown, nearer = [], {}, [], []
    with tempfile.TemporaryDirectory(prefix="carousel-sheet-") as folder:
        programs = os.path.abspath(a.programs)
        background = background_of(programs, folder)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            made = {model: pool.submit(render_carousel, programs, folder, os.path.abspath(a.models), k, model, background)
                    for k, model in enumerate(table["models"])}
        for model, row in table["models"].items():
            own = made[model].result()
            others = {name: reference(row[name]) if isinstance(row.get(name), int) else None for name in ("f3d", "khronos")}
            tile = None if isinstance(own, str) else own
            best = others["khronos"] if others["khronos"] is not None else others["f3d"]
            value = None if tile is None or best is None else round(float(flip.flip(best, tile).mean()), 4)
            if value is None and (tile is None) == (best is None):
                text = "shown by none" if tile is None else ""
            else:
                text = "refused" if tile is None else "only here" if best is None else f"{value:.3f}"
            if value is not None and "flip" in row:
                nearer.append(value < row["flip"])
            if (value is not None and value > table["threshold"]) or text == "refused":
                found[model] = own if tile is None else value
                if model not in table["known"]:
                    unknown.append(model)
            rows.append((model, [tile, others["f3d"], others["khronos"]], text))
            print(f"{text:>14}  {model}{'  ' + own if tile is None else ''}")
    values = [float(text) for _, _, text in rows if text[:2] in ("0.", "1.")]
    print(f"{len(rows)} files, {len(values)} compared: median FLIP {np.median(values):.3f}, {sum(v <= table['threshold'] for v in values)} within the "
          f"threshold {table['threshold']}; {len(found)} beyond it or refused, {len(unknown)} of them not known; "
          f"nearer to the Khronos renderer than f3d is: {sum(nearer)} of {len(nearer)}")
    if a.sheet:
        sheet(a.sheet, [row for row in rows if row[2] != "shown by none"])
    if a.what == "accept":
        table["known"] = {model: table["known"].get(model, "") for model in found}
        with open(TABLE, "w", encoding="utf-8") as f:
            json.dump(table, f, indent=1)
            f.write("\n")
    elif unknown:
        sys.exit("not known in viewers.json: " + ", ".join(unknown))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("references", "compare", "accept"))
    parser.add_argument("--models", default="/usr/share/assimp/models")
    parser.add_argument("--programs", help="folder of the programs of this build")
    parser.add_argument("--khronos", help="folder of the npm package")
    parser.add_argument("--work", default="viewers", help="folder of the whole pictures of the others, which are not made again [viewers]")
    parser.add_argument("--sheet", help="the contact sheet, a .webp file")
    a = parser.parse_args()
    if np is None:
        skip("no numpy (apt-get install python3-numpy)")
    if not os.path.isdir(a.models):
        skip(f"no folder {a.models} (apt-get install assimp-testmodels)")
    if a.what == "references":
        if not a.khronos:
            parser.error("--khronos is missing")
        references(a)
    else:
        if not a.programs:
            parser.error("--programs is missing")
        compare(a)


if __name__ == "__main__":
    main()
