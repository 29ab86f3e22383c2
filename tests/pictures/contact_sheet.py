"""Pictures of models by Carousel next to those of f3d and of the Khronos sample renderer, and their difference (FLIP).

  contact_sheet.py references --khronos PACKAGE   makes viewers.webp and viewers.json: the pictures of both other viewers, small
  contact_sheet.py compare --programs BUILD [--sheet FILE.webp]    renders by Carousel, and compares with these pictures
  contact_sheet.py accept --programs BUILD        the same, and writes the files that differ into viewers.json as known
  contact_sheet.py feature-references --khronos PACKAGE    makes features.webp and features.json
  contact_sheet.py features --programs BUILD [--sheet FILE.webp]   one model per feature of glTF (feature_models.py)

The foreign models are those of Debian's package assimp-testmodels (5.2.5). With --models FOLDER --name NAME they are those of the folder;
the pictures of the others are then in --work, and only NAME.json is written here. PACKAGE: the unpacked npm package
@khronosgroup/gltf-viewer (1.1.0), with draco_decoder_gltf* of draco3dgltf (1.5.7) in dist/libs. Takes numpy, ffmpeg; the references also
f3d (1.3.1), xvfb-run and Chromium.

All three have the same light (the sky of Carousel, no sun), the same direction of the camera and no tone map. A picture is cut to the
model, scaled to 96 x 96 pixels and put on grey, because each viewer has its own background and fits the view in its own way. The limit of
a foreign model that the Khronos renderer shows is that of features with light (feature_models.py). The limit of one that only f3d shows
is the FLIP that 90 % of the files have between these two, because f3d 1.3.1 mirrors the sky upside down in reflections and draws OBJ and
PLY files without their materials and colours, or ends by a signal. A file beyond it, or one that only the others show, must be known with
its reason: `compare` fails with a list of the others. A feature has its own limit, which the picture must keep and the picture of the
same model without the feature must exceed."""
import argparse
import concurrent.futures
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from processes import skip  # noqa: E402

try:
    import numpy as np
    import feature_models
    import flip
    import other_viewers
    from own_pictures import Carousel
    from tiles import atlas_of, cut, sheet, tiles_of
except ImportError:   # --help needs none of them
    np = None

KINDS = (".gltf", ".glb", ".obj", ".ply")
VIEWERS = ("f3d", "khronos")
# The loss of -quality 88 is a FLIP of 0.06 to 0.08 by itself.
LOSSLESS = ("-c:v", "libwebp", "-lossless", "1", "-quality", "100", "-compression_level", "6")


def models_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
                  if name.lower().endswith(KINDS) and f"{os.sep}invalid" not in at)


def is_gltf(model):
    return model.lower().endswith((".gltf", ".glb"))


def reference_pictures(a, models, jobs):
    """The cut pictures of the other viewers, or why there is none: {(viewer, name): f64[...] or text}. `jobs`: {name: (file, how it is
    shown)}, of files in the folder `models`. Whole pictures stay in --work and are not made again."""
    folder = os.path.abspath(a.work)
    os.makedirs(folder, exist_ok=True)
    khronos = other_viewers.Khronos(a.khronos, models, folder)
    viewers = {"khronos": khronos}
    if not a.without_f3d:
        viewers["f3d"] = other_viewers.F3d(folder)

    def tile_of(viewer, number, file, shown):
        out = os.path.join(folder, f"{number}-{viewer}.png")
        why = None if os.path.exists(out) else viewers[viewer].render(os.path.join(models, file), out, **shown)
        if why:
            return why
        tile = cut(np.load(out + ".npy") if os.path.exists(out + ".npy") else flip.read(out))
        return tile if tile is not None else "an empty picture"

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as several, concurrent.futures.ThreadPoolExecutor(1) as one:
        made = {(viewer, name): pool.submit(tile_of, viewer, number, file, shown)
                for viewer, pool in (("f3d", several), ("khronos", one)) for number, (name, (file, shown)) in enumerate(jobs.items())
                if viewer in viewers and (viewer != "khronos" or is_gltf(file))}
        made = {key: future.result() for key, future in made.items()}
    khronos.close()
    return made


def table_of(made, names):
    """The rows of a table, and the pictures that they number."""
    table, tiles = {}, []
    for name in names:
        row = table[name] = {}
        for viewer in VIEWERS:
            found = made.get((viewer, name))
            if isinstance(found, np.ndarray):
                row[viewer] = len(tiles)
                tiles.append(found)
            elif found:
                row[viewer] = found
        if all(isinstance(row.get(viewer), int) for viewer in VIEWERS):
            row["flip"] = round(float(flip.flip(made["khronos", name], made["f3d", name]).mean()), 4)
        print(name, row)
    return table, tiles


def write_table(path, table):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)
        f.write("\n")


def read_table(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def references(a):
    models = os.path.abspath(a.models)
    names = models_in(models)
    table, tiles = table_of(reference_pictures(a, models, {name: (name, {}) for name in names}), names)
    both = [row["flip"] for row in table.values() if "flip" in row]
    limits = {"khronos": a.limit or feature_models.LIGHT, "f3d": round(float(np.quantile(both, 0.9)), 4) if both else None}
    flip.write(a.atlas, atlas_of(tiles), *LOSSLESS)
    result = {"limits": limits, "files_of_both": len(both), "known": {}, "models": table}
    write_table(a.table, result)
    print(f"{len(tiles)} pictures; limits {limits}; {len(both)} files of both viewers")


def how_shown(feature):
    return {"time": feature.time, "camera": feature.camera, "lights": feature.lights}


def feature_references(a):
    features = feature_models.FEATURES
    with tempfile.TemporaryDirectory(prefix="carousel-features-") as folder:
        for name, feature in features.items():
            feature_models.write(os.path.join(folder, name + ".gltf"), feature.same() if feature.same else feature.make(True))
        table, tiles = table_of(reference_pictures(a, folder, {name: (name + ".gltf", how_shown(f)) for name, f in features.items()}), features)
    flip.write(a.atlas, atlas_of(tiles), *LOSSLESS)
    write_table(a.table, {"known": {}, "features": table})


def own_tiles(a, folder, jobs):
    """The cut pictures by Carousel, or why there is none. `jobs`: {name: (file, how it is shown)}."""
    own = Carousel(a.programs, folder)

    def tile_of(number, file, shown):
        picture = own.render(file, str(number), **shown)
        tile = picture if isinstance(picture, str) else cut(picture)
        return tile if tile is not None else "an empty picture"

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        made = {name: pool.submit(tile_of, number, file, shown) for number, (name, (file, shown)) in enumerate(jobs.items())}
        return {name: future.result() for name, future in made.items()}


def mean_flip(reference, tile):
    return None if reference is None or tile is None else round(float(flip.flip(reference, tile).mean()), 4)


def others_of(row, tile_of):
    return [tile_of(row[viewer]) if isinstance(row.get(viewer), int) else None for viewer in VIEWERS]


def features(a):
    """The table of features: FLIP to the Khronos renderer with and without the feature."""
    known, table = (read_table(a.table)[key] for key in ("known", "features"))
    tile_of, rows, failed = tiles_of(a.atlas), [], []
    with tempfile.TemporaryDirectory(prefix="carousel-features-") as folder:
        jobs = {}
        for name, feature in feature_models.FEATURES.items():
            for shown in (True, False):
                file = os.path.join(folder, f"{name}-{shown}.gltf")
                feature_models.write(file, feature.make(shown))
                # A control without an animation, a camera or lights of its own is shown in the usual way.
                jobs[name, shown] = (file, how_shown(feature) if shown else {"lights": feature.lights})
        made = own_tiles(a, folder, jobs)
    print(f"{'feature':28} {'limit':>6} {'FLIP':>7} {'without':>8} {'f3d':>7}")
    for name, feature in feature_models.FEATURES.items():
        f3d, khronos = others_of(table[name], tile_of)
        tiles = [None if isinstance(made[name, shown], str) else made[name, shown] for shown in (True, False)]
        value, without = (mean_flip(khronos, tile) for tile in tiles)
        # Where nothing is lit or drawn without the feature, there is no picture of the control.
        passed = value is not None and value <= feature.limit and (without is None or without > feature.limit)
        if not passed and name not in known:
            failed.append(name)
        numbers = [f"{number:.3f}" if number is not None else "-" for number in (value, without, table[name].get("flip"))]
        why = "" if passed else known.get(name, "FAILED") + ("" if value is not None else f" {made[name, True]}")
        print(f"{name:28} {feature.limit:6.2f} {numbers[0]:>7} {numbers[1]:>8} {numbers[2]:>7}  {why}")
        rows.append((name, [*tiles, f3d, khronos], numbers[0]))
    print(f"{len(rows)} features, {len(failed)} failed, {len(known)} known")
    if a.sheet:
        sheet(a.sheet, rows)
    if failed:
        sys.exit("beyond the limit, or not distinct from the picture without it: " + ", ".join(failed))


def compare(a):
    table = read_table(a.table)
    tile_of, rows, found, unknown, nearer, within = tiles_of(a.atlas), [], {}, [], [], []
    models = os.path.abspath(a.models)
    with tempfile.TemporaryDirectory(prefix="carousel-sheet-") as folder:
        made = own_tiles(a, folder, {name: (os.path.join(models, name), {}) for name in table["models"]})
    for model, row in table["models"].items():
        own = made[model]
        f3d, khronos = others_of(row, tile_of)
        tile = None if isinstance(own, str) else own
        best = khronos if khronos is not None else f3d
        value = mean_flip(best, tile)
        if value is None and (tile is None) == (best is None):
            text = "shown by none" if tile is None else ""
        else:
            text = "refused" if tile is None else "only here" if best is None else f"{value:.3f}"
        if value is not None and "flip" in row:
            nearer.append(value < row["flip"])
        if value is not None:
            within.append(value <= table["limits"]["f3d" if khronos is None else "khronos"])
        if text == "refused" or (value is not None and not within[-1]):
            found[model] = own if tile is None else value
            if model not in table["known"]:
                unknown.append(model)
        rows.append((model, [tile, f3d, khronos], text))
        row["carousel"] = own if tile is None else value
        print(f"{text:>14}  {model}{'  ' + own if tile is None else ''}")
    values = [float(text) for _, _, text in rows if text[:2] in ("0.", "1.")]
    print(f"{len(rows)} files, {len(values)} compared: median FLIP {np.median(values):.3f}, {sum(within)} within the "
          f"limits {table['limits']}; {len(found)} beyond them or refused, {len(unknown)} of them not known; "
          f"nearer to the Khronos renderer than f3d is: {sum(nearer)} of {len(nearer)}")
    if a.sheet:
        sheet(a.sheet, [row for row in rows if row[2] != "shown by none"])
    if a.what == "accept":
        table["known"] = {model: table["known"].get(model, "") for model in found}
        write_table(a.table, table)
    elif unknown:
        sys.exit("not known in " + os.path.basename(a.table) + ": " + ", ".join(unknown))


COMMANDS = {"references": references, "compare": compare, "accept": compare, "feature-references": feature_references, "features": features}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--models", default="/usr/share/assimp/models")
    parser.add_argument("--name", help="of the table [viewers, features]")
    parser.add_argument("--programs", help="folder of the programs of this build")
    parser.add_argument("--khronos", help="folder of the npm package")
    parser.add_argument("--work", help="folder of the whole pictures of the others, which are not made again [the table's name]")
    parser.add_argument("--sheet", help="the contact sheet, a .webp file")
    parser.add_argument("--limit", type=float, help="of the files that the Khronos renderer shows [that of features with light]")
    parser.add_argument("--without-f3d", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="pictures that are made at the same time [2]")
    a = parser.parse_args()
    if np is None:
        skip("no numpy (apt-get install python3-numpy)")
    of_features = "feature" in a.what
    own_name = "features" if of_features else "viewers"
    a.name = a.name or own_name
    a.work = a.work or a.name
    a.table = os.path.join(HERE, a.name + ".json")
    a.atlas = os.path.join(HERE if a.name == own_name else a.work, a.name + ".webp")
    if not of_features and not os.path.isdir(a.models):
        skip(f"no folder {a.models} (apt-get install assimp-testmodels)")
    needed = "khronos" if "references" in a.what else "programs"
    if not getattr(a, needed):
        parser.error(f"--{needed} is missing")
    COMMANDS[a.what](a)


if __name__ == "__main__":
    main()
