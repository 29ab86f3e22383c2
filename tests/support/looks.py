"""pipelines/looks.toml with a comparison: its pictures are joined with a recording of the same frames by an undisturbed run."""

STAGES = ["geometry", "vertex", "fragment", "shadow", "light", "post"]
COMPARED_STAGES = [*STAGES, "undisturbed", "compare"]


def with_taa(text):
    """The text with temporal anti-aliasing: a jittered camera, and the stage taa between light and post."""
    post = 'name = "post"\nrun = "carousel-post"\ninputs = ["light"]\n'
    assert post in text and "[parameters]\n" in text
    taa = 'name = "taa"\nrun = "carousel-taa"\ninputs = ["light", "fragment"]\n\n[[stage]]\n'
    return text.replace("[parameters]\n", "[parameters]\njitter = 1.0\n").replace(post, taa + post.replace("light", "taa") + "smooth_edges = false\n")


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
