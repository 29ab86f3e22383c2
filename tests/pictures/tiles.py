"""Small pictures of models: cut out of larger ones, kept in one file, and shown side by side."""
import os
import tempfile

import flip
import numpy as np

TILE, COLUMNS, GREY = 96, 16, 0.5


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


def tiles_of(path):
    """The function that returns the picture of a number in a file that was made from atlas_of()."""
    pixels = flip.read(path)[..., :3]
    per_row = pixels.shape[1] // TILE

    def tile(k):
        y, x = k // per_row * TILE, k % per_row * TILE
        return pixels[y:y + TILE, x:x + TILE]
    return tile


def sheet(path, rows):
    """`rows`: [(name, [tile or None], text)]. Several models per line, each with its pictures, its name and the text."""
    count = max(len(tiles) for _, tiles, _ in rows)
    per_line, line = 12 // count, TILE + 16
    lines = -(-len(rows) // per_line)
    width = per_line * (count * TILE + 12)
    out, events = np.full((lines * line, width, 3), 0.08), []
    for k, (model, tiles, text) in enumerate(rows):
        y, x = k // per_line * line, k % per_line * (count * TILE + 12)
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
