"""The screen of `hltnode top`: one row for each node, sums, and the longer lists of some nodes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hltnode.daemon.commands.node.status_text import combiner_text, held_text
from hltnode.daemon.monitoring.status_page.missing import missing_rows

SHOWN_LINES = 8
SHOWN_SOURCES = 8
GIB = 1 << 30

Node = Mapping[str, Any]
"""The shown values of a node, or its `error`."""


def _rate_of(name: str, node: Node) -> float:
    return -((node.get("per_second") or {}).get(name) or 0.0)


def _dead_sum(node: Node) -> float:
    return sum(share or 0.0 for share in node.get("dead_time", {}).values())


ORDERS: Mapping[str, Any] = {
    "as given": None,
    "state": lambda node: node.get("state", ""),
    "name": lambda node: node.get("node", ""),
    "events/s": lambda node: _rate_of("events", node),
    "accepted/s": lambda node: _rate_of("accepted", node),
    "dead time": lambda node: -_dead_sum(node),
    "missing feeders": lambda node: -node.get("n_missing_feeders", 0),
    "silent sources": lambda node: -len(node.get("silent_sources", ())),
}
"""Names of the orders of rows, and their keys. Nodes that do not answer come first in all but the first."""
KEYS = (
    ("s", "next order of the rows"),
    ("r", "reverse the order"),
    ("up, down, k, j", "select a node, whose lists are shown"),
    ("a", "show the lists of all nodes, or of the selected one only"),
    ("?, h", "this help"),
    ("q", "quit"),
)


@dataclass(slots=True)
class View:
    """What the keys have chosen. `selected`: address of the node whose lists are shown; None: those of all nodes."""

    order: str = "as given"
    reverse: bool = False
    selected: str | None = None
    help: bool = False
    wants_to_quit: bool = False

    def sorted(self, nodes: Mapping[str, Node]) -> Sequence[str]:
        """The addresses in the order of the rows."""
        found = list(nodes)
        if (key := ORDERS[self.order]) is not None:
            found.sort(key=lambda url: ("error" not in nodes[url], key(nodes[url])))
        return found[::-1] if self.reverse else found

    def press(self, key: str, nodes: Mapping[str, Node]) -> None:
        """Change the view by a key; keys without a meaning change nothing."""
        shown = self.sorted(nodes)
        match key:
            case "q":
                self.wants_to_quit = True
            case "?" | "h":
                self.help = not self.help
            case "s":
                names = list(ORDERS)
                self.order = names[(names.index(self.order) + 1) % len(names)]
            case "r":
                self.reverse = not self.reverse
            case "a":
                self.selected = shown[0] if self.selected is None else None
            case "up" | "k" | "down" | "j":
                step = -1 if key in ("up", "k") else 1
                place = -1 if self.selected is None else shown.index(self.selected)
                self.selected = shown[max(0, min(len(shown) - 1, place + step))]


def screen(nodes: Mapping[str, Node], view: View | None = None) -> RenderableType:
    """A table with one row per node and the sums; below it the lists of sources, error banks and lines."""
    shown = view or View()
    table = Table(box=None, pad_edge=False, header_style="bold", expand=False, show_footer=len(nodes) > 1)
    table.add_column("node", overflow="fold")
    table.add_column("state", overflow="fold")
    table.add_column("run", overflow="fold")
    for name in ("events/s", "accepted/s", "MEPs/s", "slots", "dead time", "feeders\nmissing", "sources\nsilent"):
        table.add_column(name, justify="right", no_wrap=True)
    details: list[RenderableType] = []
    for url in shown.sorted(nodes):
        node = nodes[url]
        style = "reverse" if view is not None and url == shown.selected else ""
        if "error" in node:
            table.add_row(Text(url, style="red"), Text("no answer", style="bold red"), style=style)
            details.append(Text(node["error"], style="red"))
            continue
        table.add_row(*_row(node), style=style)
        if shown.selected in (None, url):
            details += _details(url, node)
    for column, footer in zip(table.columns, _sums(nodes), strict=True):
        column.footer = footer
    parts = [table, *details]
    if view is not None:
        order = f"{shown.order}{', reversed' if shown.reverse else ''}"
        now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        parts.insert(0, Text(f"{now}   order: {order}   ?: keys   q: quit", style="dim"))
        if shown.help:
            parts[1:1] = [Text(f"  {key:>16}  {meaning}") for key, meaning in KEYS]
    return Group(*parts)


def _row(node: Node) -> Sequence[Text | str]:
    rates = node["per_second"]
    busy, slots = _slots(node)
    return (
        node["node"],
        Text(node["state"], style="green" if node["state"] == "running" else "yellow"),
        "-" if node["run"] is None else str(node["run"]),
        *(_rate(rates[name]) for name in ("events", "accepted", "meps")),
        f"{busy}/{slots}",
        _dead(node["dead_time"]),
        *(
            Text(str(n), style="bold red" if n else "")
            for n in (node["n_missing_feeders"], len(node["silent_sources"]))
        ),
    )


def _sums(nodes: Mapping[str, Node]) -> Sequence[Text | str]:
    """The last row: how many nodes answer, their sums, and their mean dead time."""
    answering = [node for node in nodes.values() if "error" not in node]
    lost = len(nodes) - len(answering)
    rates = []
    for name in ("events", "accepted", "meps"):
        known = [node["per_second"][name] for node in answering if node["per_second"][name] is not None]
        rates.append(_rate(sum(known)) if known else "-")
    slots = [_slots(node) for node in answering]
    with_run = [_dead_sum(node) for node in answering if any(share is not None for share in node["dead_time"].values())]
    return (
        Text(f"{len(answering)} of {len(nodes)} nodes answer", style="bold red" if lost else ""),
        f"{sum(node['state'] == 'running' for node in answering)} running",
        "",
        *rates,
        f"{sum(busy for busy, _ in slots)}/{sum(all_slots for _, all_slots in slots)}",
        f"{sum(with_run) / len(with_run):.0%} mean" if with_run else "-",
        str(sum(node["n_missing_feeders"] for node in answering)),
        str(sum(len(node["silent_sources"]) for node in answering)),
    )


def _slots(node: Node) -> tuple[int, int]:
    """Busy slots, and all."""
    all_slots = sum(node["slots"].values())
    return all_slots - node["slots"].get("free", 0), all_slots


def _details(url: str, node: Node) -> list[RenderableType]:
    free = node["output_free_bytes"]
    found: list[RenderableType] = [
        Text(f"\n{node['node']}  {url}  {node['backend']}  TCK {node['tck']}", style="bold"),
        Text(
            f"  {node['feeders']} feeders, {node['sources']} sources, {node['events']} events, "
            f"{'unknown' if free is None else f'{free / GIB:.0f} GiB'} free for files"
        ),
    ]
    found += [
        Text(f"  feeder missing: {row}", style="red") for row in missing_rows(node["missing_feeders"][:SHOWN_SOURCES])
    ]
    if (more := node["n_missing_feeders"] - SHOWN_SOURCES) > 0:
        found.append(Text(f"  and {more} more feeders missing", style="red"))
    for name, words in (("silent_sources", "silent"), ("lagging_sources", "that lag (the oldest open MEP lacks them)")):
        if sources := node[name]:
            shown = ", ".join(map(str, sources[:SHOWN_SOURCES])) + (" ..." if len(sources) > SHOWN_SOURCES else "")
            found.append(Text(f"  sources {words}: {shown}", style="yellow"))
    found += [Text(text, style="yellow") for text in _error_banks(node)]
    found += _streaming(node.get("streaming"))
    found += _combiner(node.get("combiner"))
    found += _conditions(node["conditions"])
    found += _channels(node["channels"])
    lines = list(node["lines"].items())
    for line, count in lines[:SHOWN_LINES]:
        share = count / max(1, node["events"])
        found.append(Text(f"  {count:>10}  {share:8.3%}  {line}"))
    if len(lines) > SHOWN_LINES:
        found.append(Text(f"  and {len(lines) - SHOWN_LINES} more lines"))
    return found


def _error_banks(node: Node) -> list[str]:
    """The error banks by type since the start of the node, their rate, and the sources with most."""
    by_type, most = node["error_banks"]["by_type"], node["error_banks"]["most"]
    if not by_type:
        return []
    counts = ", ".join(f"{n} {name}" for name, n in sorted(by_type.items(), key=lambda item: -item[1]))
    shown = ", ".join(f"{row['source']} ({row['banks']} {row['type']})" for row in most[:SHOWN_SOURCES])
    return [
        f"  error banks in place of data: {counts}; now {_rate(node['per_second']['error_banks'])}/s",
        f"  sources with most of them: {shown}" + (" ..." if len(most) > SHOWN_SOURCES else ""),
    ]


def _streaming(of: dict[str, Any] | None) -> list[RenderableType]:
    """Slices and windows of a streaming chain; what is missing of them in yellow."""
    if of is None:
        return []
    rates, share = of["per_second"], of["share"]
    found = [
        Text(
            f"  {_rate(rates['slices'])} slices/s, {_rate(rates['windows'])} windows/s, "
            f"{_share(share['kept'])} of the time kept"
        ),
        Text(
            f"  slices late: {_rate(rates['late'])}/s ({_share(share['late'])}), "
            f"dropped: {_rate(rates['dropped'])}/s ({_share(share['dropped'])})",
            style="yellow" if rates["late"] or rates["dropped"] else "",
        ),
    ]
    if late := of["late_sources"]:
        shown = ", ".join(f"{row['source']} ({row['slices']})" for row in late[:SHOWN_SOURCES])
        found.append(Text(f"  sources late since the start: {shown}", style="yellow"))
    for words, counts in (("flags of sub-slices", of["flagged"]), ("faults of windows", of["faults"])):
        if counts:
            found.append(Text(f"  {words}: " + ", ".join(f"{n} {name}" for name, n in counts.items()), style="yellow"))
    return list(found)


def _combiner(of: dict[str, Any] | None) -> list[RenderableType]:
    """Whether the combiner answers, and the slices that wait for it."""
    if of is None:
        return []
    found = [
        Text(f"  combiner {combiner_text(of)}", style="" if of["answers"] else "bold red"),
        Text(f"  held: {held_text(of)}", style="yellow" if of["held_bytes"] > 0.8 * of["max_bytes"] else ""),
    ]
    if faults := ", ".join(f"{n} {name}" for name, n in of["faults"].items() if n):
        found.append(Text(f"  faults with the combiner: {faults}", style="yellow"))
    return list(found)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _conditions(conditions: dict[str, dict[str, Any]]) -> list[RenderableType]:
    """The numbers of the detector that the node measures, with those that its kernels use."""
    found = [Text("  [conditions]")] if conditions else []
    for name, of in conditions.items():
        measured = "not measured yet" if of["measured"] is None else f"measured {of['measured']:.3f}"
        origin = "followed" if of["followed"] else "configured"
        text = f"    {name}  {measured}, {origin} {of['configured']:.3f}, tolerance {of['tolerance']:g} {of['unit']}"
        found.append(Text(text, style="yellow" if of["is_off"] else ""))
    return list(found)


def _channels(channels: dict[str, dict[str, Any]]) -> list[RenderableType]:
    """Groups of channels that differ from their neighbours, by kind."""
    found: list[RenderableType] = []
    for kind, of in channels.items():
        for finding in ("dead", "noisy"):
            if n := of.get(f"n_{finding}", 0):
                shown = ", ".join(map(str, of.get(finding, ())[:SHOWN_SOURCES])) + (" ..." if n > SHOWN_SOURCES else "")
                found.append(Text(f"  {kind}: {n} {finding}: {shown}", style="yellow"))
    return found


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _dead(shares: dict[str, float | None]) -> str:
    known = {reason: share for reason, share in shares.items() if share is not None}
    if not known:
        return "-"
    reason, _ = max(known.items(), key=lambda item: item[1])
    total = sum(known.values())
    return f"{total:.0%}" + (f" {reason}" if total > 0 else "")
