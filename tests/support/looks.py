"""pipelines/looks.toml with a comparison: its pictures are joined with a recording of the same frames by an undisturbed run."""

STAGES = ["geometry", "vertex", "fragment", "shadow", "light", "taa", "post"]
COMPARED_STAGES = [*STAGES, "undisturbed", "compare"]


def without_taa(text):
    """The text without temporal anti-aliasing: each picture depends on its own frame alone."""
    taa = text[text.index('[[stage]]\nname = "taa"'):text.index('[[stage]]\nname = "post"')]
    for part, other in ((taa, ""), ('inputs = ["taa"]', 'inputs = ["light"]'), ("jitter = 1.0", "jitter = 0.0"), ("motion = true", "motion = false"),
                        ("smooth_edges = false", "smooth_edges = true")):
        assert text.count(part) == 1, part
        text = text.replace(part, other)
    return text


def compared(text, recording, displays=("compare",)):
    """The text of the pipeline file. `recording`: of the ring post, relative to the file's folder; `displays`: the rings that displays
    read, the first one by the stage "display", another one by "display-RING". The recording is repeated without an end, so that a display
    may read a ring that gets no frames of it."""
    text = text.replace('inputs = ["post"]', f'inputs = ["{displays[0]}"]')
    text += f'\n[[stage]]\nname = "undisturbed"\nrun = "carousel-replay"\nfile = "{recording}"\nrate = 0.0\nloop = true\n'
    text += '\n[[stage]]\nname = "compare"\nrun = "carousel-compare"\ninputs = ["post", "undisturbed"]\n'
    for ring in displays[1:]:
        text += f'\n[[stage]]\nname = "display-{ring}"\nrun = "carousel-display"\ninputs = ["{ring}"]\nout = "{ring}_%05d.png"\n'
    return text
