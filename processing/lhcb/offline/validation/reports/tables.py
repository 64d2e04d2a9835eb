"""Tables of the HTML reports."""

from typing import Any

from hltnode.processing.lhcb.offline.validation.checker.downstream import CATEGORIES as DOWNSTREAM
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import CATEGORIES as DOWNSTREAM_TRACKS
from hltnode.processing.lhcb.offline.validation.checker.losses import REASONS
from hltnode.processing.lhcb.offline.validation.reference.comparison import QUANTITIES
from hltnode.processing.offline.pages.tables import Row, Table, percent

STAGES = {"velo": "VELO tracks", "velo_ut": "VELO-UT tracks", "long": "Long tracks"}
"""Titles of the stages, by their keys in a result."""


def stage_tables(result: dict[str, Any]) -> list[Table]:
    """A table of the categories of particles for each stage, with the ghosts as a note."""
    return [_stage(title, result["lines"][stage]) for stage, title in STAGES.items() if stage in result["lines"]]


def _stage(title: str, of: dict[str, Any]) -> Table:
    heads = [
        "category", "found", "of", "efficiency [%]", "mean over events [%]", "clones", "clone rate [%]",
        "hit purity [%]", "hit efficiency [%]",
    ]  # fmt: skip
    ends = {"hit_efficiency_first3": "first three hits [%]", "hit_efficiency_last": "last hit [%]"}
    shown = [key for key in ends if any(key in line for line in of["categories"].values())]
    heads += [ends[key] for key in shown]
    rows = []
    for name, line in of["categories"].items():
        numbers = [percent(line[key]) for key in ("efficiency", "efficiency_per_event")]
        rates = [percent(line[key]) for key in ("clone_rate", "hit_purity", "hit_efficiency", *shown)]
        counts = [str(line["reconstructed"]), str(line["reconstructible"])]
        cells = [name, *counts, *numbers, str(line["clones"]), *rates]
        rows.append(Row(cells, zero=not line["reconstructible"]))
    rate = percent(of["ghosts"] / of["tracks"] if of["tracks"] else None)
    note = f"Ghosts, tracks that match no particle: {of['ghosts']} of {of['tracks']}, {rate} %."
    return Table(f"{title}: efficiencies", heads, rows, note)


def result_tables(result: dict[str, Any]) -> list[Table]:
    """The tables of a result: losses, downstream particles, comparison with dumps, for those that it has."""
    losses = {name: of for name, of in result.get("losses", {}).items() if of["reconstructible"]}
    particles = result.get("downstream", {})
    downstream = {name: particles[name] for name in DOWNSTREAM if name in particles and particles[name]["particles"]}
    reference = result.get("reference")
    return [
        *([_losses(losses)] if losses else []),
        *([_downstream(downstream)] if downstream else []),
        *([_downstream_tracks(particles["tracks"])] if "tracks" in particles else []),
        *([_reference(reference)] if reference else []),
    ]


def _losses(losses: dict[str, Any]) -> Table:
    titles = {"reconstructible": "reconstructible", "found": "found", **REASONS}
    rows = [
        Row([title, *(f"{of[name]} ({percent(of[name] / of['reconstructible'])} %)" for of in losses.values())])
        for name, title in titles.items()
    ]
    return Table(
        "Where long particles are lost: the first reason that holds",
        ["reason", *(f"{name}, particles (%)" for name in losses)],
        rows,
    )


def _downstream(downstream: dict[str, Any]) -> Table:
    heads = [
        "category", "particles", "per event", "UT hits", "UT hits on no long track [%]", "SciFi hits",
        "SciFi hits on no long track [%]",
    ]  # fmt: skip
    rows = []
    for name, of in downstream.items():
        cells = [DOWNSTREAM[name][0], str(of["particles"]), f"{of['per_event']:.2f}"]
        for hits in (of["ut"], of["scifi"]):
            cells += [str(hits["hits"]), percent(hits["unused_rate"])]
        rows.append(Row(cells))
    return Table("Downstream particles: hits in UT and SciFi, none in the VELO", heads, rows)


def _downstream_tracks(of: dict[str, Any]) -> Table:
    rows = []
    for name, line in of["efficiency"].items():
        cells = [DOWNSTREAM_TRACKS[name][0], str(line["found"]), str(line["particles"]), percent(line["efficiency"])]
        rows.append(Row(cells, zero=not line["particles"]))
    note = (
        f"Ghosts: {of['ghosts']} of {of['tracks']}, {percent(of['ghost_rate'])} %. 68 % of the momenta are within "
        f"{percent(of['momentum']['size_68'])} % of the true ones."
    )
    return Table("Downstream tracks: efficiencies", ["category", "found", "of", "efficiency [%]"], rows, note)


def _reference(reference: dict[str, Any]) -> Table:
    rows = []
    for name, of in reference["quantities"].items():
        differences = "; ".join(
            f"{what} {d['median']:.4g}, {d['largest']:.4g} {d['unit']}".rstrip()
            for what, d in of["differences"].items()
        )
        counts = map(str, (of["found"], of["total"], percent(of["rate"]), of["ours"]))
        rows.append(Row([QUANTITIES[name], *counts, differences]))
    heads = ["quantity", "found", "of", "rate [%]", "ours", "differences: median, largest"]
    return Table(f"Against the dumps of {reference['events']} events", heads, rows)
