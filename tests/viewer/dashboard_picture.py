"""The panels of pipelines/monitoring/grafana.json as a picture, with the data of a Prometheus: what Grafana would show.
Usage: dashboard_picture.py PROMETHEUS_ADDRESS PIPELINE SECONDS PICTURE.png   (needs matplotlib)"""
import dataclasses
import json
import math
import os
import re
import sys
import time
import urllib.parse
import urllib.request

MOST_POINTS = 300
# Their data needs a GPU, a recorder, other hosts or a capture time.
OPTIONAL = {"GPU memory", "Recordings", "Other hosts"}


@dataclasses.dataclass
class Panel:
    title: str
    unit: str
    lines: list   # [(legend, times, values)]

    def is_empty(self):
        return not any(math.isfinite(v) for _, _, values in self.lines for v in values)

    def is_optional(self):
        return self.title in OPTIONAL


def legend(template, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""), template) or ", ".join(labels.values())


def panels_of(ask, folder, pipeline, began, ended):
    """`ask(path, **words)`: a request to Prometheus' API, which returns its data."""
    with open(os.path.join(folder, "grafana.json"), encoding="utf-8") as f:
        dashboard = json.load(f)
    panels = []
    for panel in dashboard["panels"]:
        lines = []
        for target in panel["targets"]:
            expression = target["expr"].replace("$pipeline", pipeline).replace("$__rate_interval", "10s")
            found = ask("query_range", query=expression, start=began, end=ended, step=max(1, (ended - began) / MOST_POINTS))["result"]
            lines += [(legend(target["legendFormat"], r["metric"]), [float(t) - began for t, _ in r["values"]],
                       [float(v) for _, v in r["values"]]) for r in found]
        panels.append(Panel(panel["title"], panel["fieldConfig"]["defaults"]["unit"], lines))
    return panels


def draw(panels, path):
    import matplotlib   # only here: the panels are checked without it
    matplotlib.use("Agg")
    from matplotlib import pyplot
    columns = 4
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(6 * columns, 3.2 * rows), squeeze=False)
    for k, place in enumerate(axes.flat):
        if k >= len(panels):
            place.axis("off")
            continue
        panel = panels[k]
        place.set_title(f"{panel.title} ({panel.unit})" if panel.unit != "short" else panel.title, fontsize=10)
        for name, times, values in panel.lines:
            place.plot(times, values, label=name[:40], linewidth=1, marker="." if len(times) < 3 else None)
        if panel.is_empty():
            place.text(0.5, 0.5, "no data", ha="center", va="center", transform=place.transAxes)
        elif len(panel.lines) <= 12:
            place.legend(fontsize=6)
        place.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=70)


def main():
    address, pipeline, seconds, path = sys.argv[1:]

    def ask(what, **words):
        with urllib.request.urlopen(f"{address}/api/v1/{what}?{urllib.parse.urlencode(words)}", timeout=20) as answer:
            return json.load(answer)["data"]
    now = time.time()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "pipelines", "monitoring")
    draw(panels_of(ask, folder, pipeline, now - float(seconds), now), path)


if __name__ == "__main__":
    main()
