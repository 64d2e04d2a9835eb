"""Time by algorithm of two revisions, side by side."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.cpu.comparison import Compared

SHOWN = 12
"""Number of algorithms with their own colour."""


def plot(found: Sequence[Compared], against: str, path: Path) -> None:
    """Write a picture: two bars per comparison, one for each revision, divided by algorithm."""
    total: dict[str, float] = {}
    for compared in found:
        for name, us in compared.algorithms_us.items():
            total[name] = total.get(name, 0.0) + us
    shown = sorted(total, key=lambda name: -total[name])[:SHOWN]
    figure, axes = plt.subplots(figsize=(10, 1.5 + len(found)), layout="constrained")
    labels: list[str] = []
    for number, compared in enumerate(found):
        for which, algorithms in enumerate((compared.baseline_algorithms_us, compared.algorithms_us)):
            labels.append(f"{compared.form}, {compared.sample}: {'this' if which else against}")
            left = 0.0
            for colour, name in enumerate([*shown, "others"]):
                if name == "others":
                    us = sum(algorithms.values()) - sum(algorithms.get(it, 0.0) for it in shown)
                else:
                    us = algorithms.get(name, 0.0)
                first = number == 0 and which == 0
                kind = f"C{colour % 10}"
                hatch = "" if colour < 10 else "//"
                axes.barh(2 * number + which, us, left=left, color=kind, hatch=hatch, label=name if first else None)
                left += us
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("processor time per event / us")
    axes.legend(fontsize="small")
    figure.savefig(path)
    plt.close(figure)
