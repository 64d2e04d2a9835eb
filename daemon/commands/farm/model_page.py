"""The HTML page of `hltnode farm model`. Needs matplotlib and Jinja2."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from hltnode.daemon.farm_model.tables import TextTable, number
from hltnode.processing.framework.page_templates import render
from hltnode.processing.offline.pages.elements import Section, drawn
from hltnode.processing.offline.pages.tables import Row, Table
from hltnode.processing.offline.pages.template_folder import TEMPLATES
from hltnode.processing.offline.plots.figures import COLOURS, panels

_QUANTILES = (("p50", "median"), ("p99", "99 %"), ("p99_9", "99.9 %"), ("p99_99", "99.99 %"), ("max", "maximum"))


def model_page(name: str, result: dict[str, Any], tables: Sequence[TextTable]) -> str:
    """The page of a result, whose description has this file name."""
    runs = {"as described": result}
    if "dead_node" in result:
        runs["a node dies"] = result["dead_node"]
    runs |= result.get("policies", {})
    for group in ("faults", "loads", "back_ends"):
        runs |= {name: run for name, run in result.get(group, {}).items() if "error" not in run}
    runs |= {_set_of(run): run for run in result.get("sweep", ()) if "error" not in run}
    caption = "Time from the production of a MEP to its acknowledgement; no bar: too few MEPs."
    sections = [Section("Latency", [drawn(_latency_figure(runs), caption)])]
    if len(runs) > 1:
        buffer_caption = "Largest number of MEPs in the farm, as seconds of beam."
        sections.append(Section("Buffers", [drawn(_buffer_figure(runs), buffer_caption)]))
    return render(
        "selection.html",
        TEMPLATES,
        title=f"Model of a farm: {name}",
        note="A loss of none is below 3 / MEPs at a confidence of 95 %.",
        warning="; ".join(result["broken_identities"]) or None,
        inputs=f"{name}: {_beam_of(result)}.",
        numbers=[
            (str(result["nodes"]), "nodes"),
            (f"{result['events_per_second'] / 1e6:.4g} MHz", "rate of events"),
            (number(result["loss"]), "part of the MEPs lost"),
            (f"{number(result['latency_ms']['p99'])} ms", "latency, 99 %"),
            (f"{number(result['buffer']['used_seconds'])} s", "buffer used"),
        ],
        found=[Table(table.title, table.heads, [Row(list(row)) for row in table.rows]) for table in tables],
        drawn=sections,
        text="\n\n".join(table.text() for table in tables),
    )


def _beam_of(result: dict[str, Any]) -> str:
    beam = f"{result['seconds']:g} s of beam"
    if result["runs"] == 1:
        return f"{beam}, seed {result['seed']}"
    return f"{result['runs']} runs of {beam}, seeds from {result['seed']}"


def _set_of(run: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in run["set"].items())


def _latency_figure(runs: dict[str, dict[str, Any]]) -> Figure:
    figure, [axes] = panels(1, 1)
    width = 0.8 / len(_QUANTILES)
    for i, (key, label) in enumerate(_QUANTILES):
        found = [(place + i * width, run["latency_ms"][key]) for place, run in enumerate(runs.values())]
        known = [(place, value) for place, value in found if value is not None]
        if known:
            places, values = zip(*known, strict=True)
            axes.bar(places, values, width=width, label=label, color=COLOURS[i])
    axes.set_yscale("log")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(runs))], list(runs))
    axes.set_ylabel("latency [ms]")
    axes.legend()
    return figure


def _buffer_figure(runs: dict[str, dict[str, Any]]) -> Figure:
    figure, [axes] = panels(1, 1)
    axes.bar(range(len(runs)), [run["buffer"]["used_seconds"] for run in runs.values()], color=COLOURS[0])
    axes.set_xticks(range(len(runs)), list(runs))
    axes.set_ylabel("buffer used [s]")
    return figure
