"""The tables of a result, for the terminal and the HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_HEADS = ("", "nodes", "MEPs", "lost", "moved", "p50 [ms]", "p99 [ms]", "p99.99 [ms]", "max [ms]", "buffer [s]", "busy")

_GROUPS = {
    "faults": "Faults",
    "loads": "Loads",
    "back_ends": "The same number of back ends in fewer or more nodes",
    "sweep": "Sweep",
}


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table under a title; the first cell of a row is its name."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """The table in columns."""
        lines = [list(self.heads), *map(list, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        shown = [self.title]
        for name, *cells in lines:
            padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            shown.append("  ".join([name.ljust(widths[0]), *padded]).rstrip())
        return "\n".join(shown)


def number(value: float | None, digits: int = 4) -> str:
    """A number with some digits; a dash for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def _run_row(name: str, run: dict[str, Any]) -> list[str]:
    if "error" in run:
        return [name, *["-"] * (len(_HEADS) - 1)]
    latency = run["latency_ms"]
    return [
        name,
        str(run["nodes"]),
        str(run["meps"]["produced"]),
        str(run["meps"]["lost"]),
        str(run["meps"]["moved"]),
        *(number(latency[key]) for key in ("p50", "p99", "p99_99", "max")),
        number(run["buffer"]["used_seconds"]) + (" grows" if run["grows"] else ""),
        f"{run['back_ends_busy']:.1%}",
    ]


def _lacks_ids(run: dict[str, Any]) -> bool:
    return "error" not in run and run["ids"]["largest_span"] > run["ids"]["accepted_span"]


def _ids_row(name: str, run: dict[str, Any]) -> list[str]:
    ids = run["ids"]
    return [name, str(ids["largest_span"]), str(ids["accepted_span"]), str(run["refused_fragments"])]


def _runs_text(result: dict[str, Any]) -> str:
    return f", {result['runs']} runs of {result['seconds']:g} s" if result["runs"] > 1 else ""


def tables_of(result: dict[str, Any]) -> list[TextTable]:
    """The tables of the result of `answers`."""
    runs = {"as described": result}
    if dead := result.get("dead_node"):
        runs["a node dies"] = dead
    runs |= result.get("policies", {})
    swept = {", ".join(f"{key}={value}" for key, value in run["set"].items()): run for run in result.get("sweep", ())}
    tables = [
        TextTable(
            "MEPs from their production to their acknowledgement" + _runs_text(result),
            _HEADS,
            [_run_row(name, run) for name, run in runs.items()],
        ),
        TextTable(
            "Parts of the time [ms]",
            ("", "mean", "p50", "p99", "p99.9", "max"),
            [
                [name, *(number(result[key][of]) for of in ("mean", "p50", "p99", "p99_9", "max"))]
                for name, key in (
                    ("first fragment to complete MEP", "build_ms"),
                    ("sealed slot to back end", "slot_wait_ms"),
                    ("batch in a back end", "batch_ms"),
                )
            ],
        ),
    ]
    if any(run.get("consumers") for run in runs.values()):
        of_consumers = (
            "",
            "policy",
            "messages",
            "sent",
            "dropped",
            "lost with nodes",
            "wait p99 [ms]",
            "wait max [ms]",
        )
        rows = [
            [
                f"{name}: {each['output']} ({each['number']})",
                each["policy"],
                *(str(each[key]) for key in ("messages", "sent", "dropped")),
                str(each["abandoned"] + each["lost_with_nodes"]),
                *(number(run["delivery_ms"][key]) for key in ("p99", "max")),
            ]
            for name, run in runs.items()
            for each in run.get("consumers", ())
        ]
        tables.append(
            TextTable("Messages to consumers; the wait is that of a batch for all of them", of_consumers, rows)
        )
    if any(result[key] is not None for key in ("watts_per_khz", "cost_per_khz")):
        rows = [
            [name, str(run["nodes"]), number(run["watts_per_khz"]), number(run["cost_per_khz"])]
            for name, run in (runs | swept).items()
            if "error" not in run
        ]
        tables.append(TextTable("Power and cost", ("", "nodes", "power [W per kHz]", "cost per kHz"), rows))
    if rows := [_ids_row(name, run) for name, run in (runs | swept).items() if _lacks_ids(run)]:
        title = "Nodes refused MEPs: more ids were in use than node.builder.closed_ring"
        tables.append(TextTable(title, ("", "ids in use", "closed_ring", "refused fragments"), rows))
    if needed := result.get("nodes_needed"):
        rows = [
            ["at least, by capacity", str(needed["at_least"])],
            ["needed", str(needed["nodes"])],
            ["loss below (95 %)", number(needed["loss_below"], 2)],
        ]
        tables.append(TextTable("Nodes for the rate without loss", ("", "number"), rows))
    if placements := result.get("placements"):
        heads = ("back ends each", "servers", "in [Gb/s]", "out, in builders [Gb/s]", "out, to a farm [Gb/s]")
        rows = [
            [str(row["back_ends"]), f"{row['servers']:.0f}"]
            + [number(row[key]) for key in ("in_gbps", "out_of_builder_gbps", "out_to_filter_farm_gbps")]
            for row in placements
        ]
        tables.append(TextTable("Back ends in event builders, or in a filter farm", heads, rows))
    for key, title in _GROUPS.items():
        of_group = swept if key == "sweep" else result.get(key)
        if of_group:
            tables.append(TextTable(title, _HEADS, [_run_row(name, run) for name, run in of_group.items()]))
            tables += [
                TextTable(f"{name}: cannot work", ("",), [[line] for line in run["error"].splitlines()])
                for name, run in of_group.items()
                if "error" in run
            ]
    return tables
