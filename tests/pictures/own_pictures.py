"""A model as Carousel shows it: by the stages of looks.toml in the light of the sky alone, without tone map, bloom and occlusion."""
import math
import os
import sys

import flip
import numpy as np
import other_viewers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from finished_run import finished_run, pipeline_text  # noqa: E402

FRAMES_PER_SECOND = 60


def usual_view():
    """That of the other viewers, of a mesh of radius 1, with some room around it."""
    right, above, angle = (math.radians(degrees) for degrees in (other_viewers.RIGHT, other_viewers.ABOVE, other_viewers.VIEW))
    distance = 1.15 / math.sin(angle / 2)
    level = distance * math.cos(above)
    return {"eye": [level * math.sin(right), distance * math.sin(above), level * math.cos(right)], "fov_y": angle}


def pipeline_of(model, name, time=0, camera=None, lights=False, view=None):
    """`time`, `camera` and `lights`: as for other_viewers.Khronos.render_from(); the time of frame 1 is that of the animation. `view`: the
    parameters of the camera [that of the other viewers]."""
    geometry = {"run": "carousel-geometry", "mesh": model, "full_materials": True, "speed": time * FRAMES_PER_SECOND or 1.0}
    view = view or usual_view()
    if camera:
        geometry["camera"] = "0"
        view = {}
    if not time:
        geometry["clip"] = "none"
    stages = {
        "geometry": geometry,
        "vertex": {"run": "carousel-vertex", "inputs": ["geometry"]},
        "fragment": {"run": "carousel-fragment", "inputs": ["vertex"], "output": "surface"},
        "light": {"run": "carousel-light", "inputs": ["fragment"], "occlusion": 0.0},
        "post": {"run": "carousel-post", "inputs": ["light"], "smooth_edges": False},
        "display": {"run": "carousel-display", "inputs": ["post"]}}
    side = other_viewers.SIDE
    # Without `sun`, a file with lights of its own has these alone.
    parameters = {**view, "ambient": 0.0 if lights else 1.0, "spin": 0.0, "bloom": 0.0, "tone_map": "linear", **({} if lights else {"sun": 0.0})}
    return pipeline_text(stages, parameters, name=name, size=[side, side])


class Carousel:
    """A run per model. The sky is in the background, so what differs from a picture of (nearly) nothing is the model."""

    def __init__(self, programs, folder):
        self.programs, self.folder = os.path.abspath(programs), folder
        self.nothing = os.path.join(folder, "nothing.obj")
        other_viewers.write_nothing(self.nothing)
        self.background = self.background_of("nothing")

    def background_of(self, name, view=None):
        found = self.picture(self.nothing, name, view=view)
        if isinstance(found, str):
            raise RuntimeError(f"Carousel makes no picture: {found}")
        return found

    def picture(self, model, name, **shown):
        """The picture, or why there is none. `name`: of a folder, another one for each picture."""
        at = os.path.join(self.folder, name)
        os.mkdir(at)
        with open(os.path.join(at, "sheet.toml"), "w", encoding="utf-8") as f:
            f.write(pipeline_of(model, f"sheet-{name}", **shown))
        number = 1 if shown.get("time") else 0
        code, log = finished_run(self.programs, at, "sheet.toml", "--frames", str(number + 1), "--out", "p_%d.png")
        if code is None:
            return "no picture within 120 s"
        if code != 0:
            lines = [line for line in log.splitlines() if os.path.basename(model) in line or "error" in line]
            return (lines or log.splitlines() or [f"exit code {code}"])[0][:300]
        return flip.read(os.path.join(at, f"p_{number}.png"))[..., :3]

    def render(self, model, name, **shown):
        """The picture, with an alpha of 1 where the model is, or why there is none."""
        found = self.picture(model, name, **shown)
        if isinstance(found, str):
            return found
        camera = shown.get("camera")
        background = self.background_of(name + "-background", camera) if camera else self.background
        return np.concatenate([found, (np.abs(found - background).max(-1) > 1.5 / 255)[..., None]], -1)
