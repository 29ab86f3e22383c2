"""A model as f3d and the Khronos sample renderer show it, in the light of Carousel's sky, from the same side. Takes f3d with Xvfb, Chromium
with software WebGL, and the unpacked npm package @khronosgroup/gltf-viewer, with the decoder of draco3dgltf in its folder dist/libs."""
import base64
import http.server
import math
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse

import flip
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "viewer"))
import browser  # noqa: E402

SIDE = 320                   # pixels
# The Khronos renderer keeps so much room around a model that the model has about as many pixels as in SIDE x SIDE pixels of the others. With
# fewer ones, it would read coarser mip levels.
KHRONOS_SIDE = 960
RIGHT, ABOVE = 35, 25   # degrees: where the camera is
VIEW = 2   # degrees; each viewer computes the distance in its own way, and with a small angle pictures hardly depend on it
PAGE = f"""<!DOCTYPE html><meta charset="utf-8"><canvas id="c" width="{KHRONOS_SIDE}" height="{KHRONOS_SIDE}"></canvas>""" + """
<script src="/viewer/dist/libs/libktx.js"></script>
<script src="/viewer/dist/libs/draco_decoder_gltf_nodejs.js"></script>
<script type="module">
import {GltfView} from '/viewer/dist/gltf-viewer.module.js';
const canvas = document.getElementById('c'), [right, above, angle] = new URL(location).searchParams.get('camera').split(',').map(x => x * Math.PI / 180);
const gl = canvas.getContext('webgl2', {alpha: true, antialias: true, preserveDrawingBuffer: true});
const view = new GltfView(gl), loader = view.createResourceLoader(undefined, undefined, '/viewer/dist/libs/'), state = view.createState();
const p = state.renderingParameters;
p.clearColor = [0, 0, 0, 0];
p.renderEnvironmentMap = false;
p.toneMap = 'None';
p.environmentRotation = 270;   // puts the middle of the panorama at -z
window.problem = '';
window.show = async (url, away, time, ownCamera, ownLights) => {
  state.gltf = await loader.loadGltf(url);
  state.sceneIndex = state.gltf.scene === undefined ? 0 : state.gltf.scene;
  state.animationIndices = time > 0 ? [0] : [];
  state.animationTimer.setFixedTime(time);
  state.cameraIndex = ownCamera ? 0 : undefined;
  p.usePunctual = ownLights;
  p.useIBL = !ownLights;
  const camera = state.userCamera;
  camera.setVerticalFoV(angle);
  camera.aspectRatio = 1;
  camera.resetView(state.gltf, state.sceneIndex);
  const {min, max} = camera.sceneExtents, size = Math.hypot(...max.map((v, k) => v - min[k])) / 2;   // f3d fits the view by the same formula
  camera.setRotation(right, -above);
  camera.distance = away * size / Math.sin(angle / 2);
  camera.setDistanceFromTarget(camera.distance, max.map((v, k) => (v + min[k]) / 2));
  camera.fitCameraPlanesToExtents(min, max);
  for (let k = 0; k < 4; ++k) {
    view.renderFrame(state, canvas.width, canvas.height);
    await new Promise(requestAnimationFrame);
  }
  return canvas.toDataURL('image/png');
};
loader.loadEnvironment('/sky.hdr', {lut_sheen_E_file: '/black.png'}).then(e => { state.environment = e; window.ready = true; }, e => window.problem = String(e));
</script>"""
# The prefiltering of the sky takes minutes in software; this sky has no detail that needs more.
LESS_WORK = {"this.textureSize = 256": "this.textureSize = 64", "this.ggxSampleCount = 1024": "this.ggxSampleCount = 256",
             "this.lambertianSampleCount = 2048": "this.lambertianSampleCount = 1024", "this.lutResolution = 1024": "this.lutResolution = 64"}


def smooth_step(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def sky(rows=128):
    """sky_radiance() of kernels/body/sky.hpp as a panorama: the column in the middle is the direction -z, the columns turn to +x."""
    longitude = (np.arange(2 * rows) + 0.5) / (2 * rows) * 2 * np.pi - np.pi
    latitude = np.pi / 2 - (np.arange(rows) + 0.5) / rows * np.pi
    level = np.cos(latitude)[:, None]
    d = np.stack([level * np.sin(longitude), np.repeat(np.sin(latitude)[:, None], 2 * rows, 1), -level * np.cos(longitude)], -1)
    up, deep = np.clip(d[..., 1:2], 0, 1), np.clip(-4 * d[..., 1:2], 0, 1)
    horizon = np.array([0.80, 0.84, 0.88])
    above = np.array([0.13, 0.24, 0.47]) + (horizon - np.array([0.13, 0.24, 0.47])) / (1 + 7 * up)
    out = np.where(d[..., 1:2] >= 0, above, horizon + (np.array([0.30, 0.28, 0.26]) - horizon) * deep)
    for axis, side, right, top, colour in (((-0.70, 0.5099, 0.50), (0.5812, 0, 0.8137), 0.55, 0.38, (5.2, 4.9, 4.4)),
                                           ((0.75, 0.4243, -0.5074), (0.5603, 0, 0.8283), 0.30, 0.65, (3.4, 4.0, 5.2)),
                                           ((0, 0.9950, 0.0998), (1, 0, 0), 0.85, 0.40, (3, 3, 3))):
        towards = d @ np.array(axis)
        over = 1 / np.maximum(towards, 1e-3)
        x, y = np.abs(d @ np.array(side)) * over, np.abs(d @ np.cross(axis, side)) * over
        inside = (1 - smooth_step(right * 0.7, right, x)) * (1 - smooth_step(top * 0.7, top, y)) * (towards > 0)
        out = out + inside[..., None] * np.array(colour)
    return out


def write_hdr(path, picture):
    """Radiance RGBE, without compression."""
    mantissa, exponent = np.frexp(picture.max(-1))
    scale = np.where(picture.max(-1) > 1e-30, mantissa * 256 / np.maximum(picture.max(-1), 1e-30), 0)
    pixels = np.concatenate([picture * scale[..., None], (exponent + 128)[..., None]], -1).astype(np.uint8)
    rows, columns, _ = picture.shape
    with open(path, "wb") as f:
        f.write(f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {rows} +X {columns}\n".encode() + pixels.tobytes())


def write_nothing(path):
    """Two triangles too small to be seen, at two corners of a cube."""
    with open(path, "w", encoding="utf-8") as f:
        for x, y, z in ((-1, -1, -1), (1, 1, 1)):
            f.write("".join(f"v {x + dx} {y + dy} {z}\n" for dx, dy in ((0, 0), (1e-6, 0), (0, 1e-6))))
        f.write("f 1 2 3\nf 4 5 6\n")


def view_of_f3d(model):
    """The options with which f3d looks from the side of the other viewers. It fits the view for its own angle, which it prints."""
    printed = subprocess.run(["f3d", "--dry-run", "--verbose", "--no-render", model], capture_output=True, text=True, errors="replace", timeout=60, check=False).stdout
    found = dict(re.findall(r"Camera (position|focal point|view angle): (\S+)", printed))
    if len(found) < 3:
        return []
    position, target = (np.array([float(x) for x in found[key].split(",")]) for key in ("position", "focal point"))
    right, above, angle, fitted = (math.radians(degrees) for degrees in (RIGHT, ABOVE, VIEW, float(found["view angle"])))
    away = np.linalg.norm(position - target) * math.sin(fitted / 2) / math.sin(angle / 2)
    position = target + away * np.array([math.cos(above) * math.sin(right), math.sin(above), math.cos(above) * math.cos(right)])
    return [f"--camera-{key}={','.join(map(str, value))}" for key, value in (("position", position), ("focal-point", target))] + [f"--camera-view-angle={VIEW}"]


def run_f3d(model, out, folder, *options):
    words = ["xvfb-run", "-a", "f3d", "--dry-run", "--quiet", "--resolution", f"{SIDE},{SIDE}", "--hdri", os.path.join(folder, "sky-f3d.hdr"),
             *options, "--output", out, model]
    try:
        done = subprocess.run(words, capture_output=True, timeout=90, check=False, env={**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1"})
    except subprocess.TimeoutExpired:
        return "no picture within 90 s"
    return None if os.path.exists(out) else f"exit code {done.returncode}"


class F3d:
    """A process per model. The sky is in the background of its pictures, so what differs from a picture of (nearly) nothing is the model.
    f3d 1.3.1 mirrors the sky upside down in reflections, and only there."""

    def __init__(self, folder):
        self.folder = folder
        panorama = sky()
        write_hdr(os.path.join(folder, "sky-f3d.hdr"), np.roll(panorama, -panorama.shape[1] // 4, 1))   # the middle is +x for f3d
        nothing = os.path.join(folder, "nothing.obj")
        write_nothing(nothing)
        if why := run_f3d(nothing, nothing + ".png", folder, "--geometry-only", *view_of_f3d(nothing)):
            raise RuntimeError(f"f3d makes no picture: {why}")
        self.background = flip.read(nothing + ".png")[..., :3]

    def render(self, model, out, time=0, camera=None, **_):
        """None, or why there is no picture. The alpha of the picture is 1 where the model is."""
        # With materials, 1.3.1 ends by SIGSEGV for most OBJ files.
        options = [] if model.lower().endswith((".gltf", ".glb")) else ["--geometry-only"]
        options += [f"--animation-time={time}"] if time else []
        options += ["--camera-index=0"] if camera else view_of_f3d(model)
        if why := run_f3d(model, out, self.folder, *options):
            return why
        picture = flip.read(out)
        picture = np.concatenate([picture[..., :3], (np.abs(picture[..., :3] - self.background).max(-1) > 2.5 / 255)[..., None]], -1)
        np.save(out + ".npy", picture)
        return None


class Khronos:
    """One page, which renders one model after the other."""

    def __init__(self, package, models, folder):
        write_hdr(os.path.join(folder, "sky.hdr"), sky())
        flip.write(os.path.join(folder, "black.png"), np.zeros((2, 2, 3)))
        roots = {"viewer": package, "models": models}

        class Handler(http.server.SimpleHTTPRequestHandler):
            extensions_map = {".js": "text/javascript", ".wasm": "application/wasm", "": "application/octet-stream"}

            def do_GET(self):
                path = urllib.parse.urlsplit(self.path).path
                if path == "/":
                    return self.answer("text/html", PAGE)
                if path.endswith("/gltf-viewer.module.js"):
                    with open(self.translate_path(path), encoding="utf-8") as f:
                        text = f.read()
                    for before, after in LESS_WORK.items():
                        if before not in text:
                            raise RuntimeError(f"{package}: another version, without \"{before}\"")
                        text = text.replace(before, after)
                    return self.answer("text/javascript", text)
                return super().do_GET()

            def answer(self, kind, text):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def translate_path(self, path):
                parts = [p for p in urllib.parse.unquote(urllib.parse.urlsplit(path).path).split("/") if p not in ("", "..")]
                return os.path.join(roots.get(parts[0], folder), *(parts[1:] if parts[0] in roots else parts))

            def log_message(self, *_):
                pass

        self.models = models
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.page = None

    def open(self):
        self.page = browser.Browser(browser.find(), 400, 400)
        self.page.open(f"http://127.0.0.1:{self.server.server_port}/?camera={RIGHT},{ABOVE},{VIEW}")
        self.wait("window.ready || window.problem", 180)
        if problem := self.page.value("window.problem || ''"):
            raise RuntimeError(f"the Khronos renderer does not start: {problem}")

    def wait(self, expression, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.page.value(expression):
                return found
            time.sleep(0.05)
        return None

    def render(self, model, out, **shown):
        """As F3d.render(); `shown`: see render_from(). Goes further away if the model does not fit, because the extents that the renderer computes can be too small."""
        for away in (1, 2, 4):
            if why := self.render_from(model, out, away, **shown):
                return why
            alpha = flip.read(out)[..., 3]
            if shown.get("camera") or not (alpha[[0, -1]].any() or alpha[:, [0, -1]].any()):
                break
        return None

    def render_from(self, model, out, away, time=0, camera=None, lights=False):
        """`time`: of the first animation, in seconds. `camera`, `lights`: the file's own, without the light of the sky."""
        if not self.page:
            self.open()
        address = "/models/" + urllib.parse.quote(os.path.relpath(model, self.models))
        try:
            self.page.value(f"window.out = null; window.show('{address}', {away}, {time}, {int(bool(camera))}, {int(lights)}).then(x => window.out = x, e => window.out = 'error: ' + e); 0")
            found = self.wait("window.out", 40)
        except AssertionError:   # the page is busy and does not answer
            found = None
        if not found:
            self.page.close()
            self.page = None
        if not found or not found.startswith("data:"):
            return (found or "no picture within 40 s")[:160]
        with open(out, "wb") as f:
            f.write(base64.b64decode(found.split(",")[1]))
        return None

    def close(self):
        if self.page:
            self.page.close()
        self.server.shutdown()
