"""The text of a pipeline file from Python values, and a run of it to its end."""
import json
import os
import subprocess

from processes import end_process


def pipeline_text(stages, parameters=None, **keys):
    """`stages`: {name: its keys}, `keys`: those of [pipeline]. JSON's numbers, texts, flags and lists are TOML's as well."""
    def lines(values):
        return [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    text = ["[pipeline]", *lines(keys)]
    if parameters:
        text += ["[parameters]", *lines(parameters)]
    for name, values in stages.items():
        text += ["[[stage]]", f'name = "{name}"', *lines(values)]
    return "\n".join(text) + "\n"


def finished_run(programs, folder, file, *options, seconds=120):
    """Runs a pipeline file on the CPU, with its own runtime directory in `folder`. Returns (exit code, log); a run that has not ended
    after `seconds` is ended, and its exit code is None."""
    log = os.path.join(folder, "log")
    with open(log, "w", encoding="utf-8") as out:
        run = subprocess.Popen([os.path.join(programs, "carousel"), "run", file, "--device", "cpu", "--no-color", *options], cwd=folder,
                               env={**os.environ, "XDG_RUNTIME_DIR": folder}, stdout=subprocess.DEVNULL, stderr=out)
    try:
        code = run.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        end_process(run)
    with open(log, encoding="utf-8", errors="replace") as f:
        return code, f.read()
