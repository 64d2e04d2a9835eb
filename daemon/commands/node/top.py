"""hltnode top: the state of one or several nodes, on the terminal."""

import json as json_module
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hltnode.daemon.commands.common import fail
from hltnode.daemon.commands.node.node_pages import NodeUnreachableError, Pages, describe, read_pages
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.text_console import TextConsole

DEFAULT_URL = "http://127.0.0.1:9105"
SHOWN_LINES = 8
SHOWN_SOURCES = 8
# Time between the two readings of --once, for its rates.
ONCE_SECONDS = 1.0
GIB = 1 << 30


def top(
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL]...", help=f"HTTP addresses of nodes (http.port); default: {DEFAULT_URL}."),
    ] = None,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two readings.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print one screen, with the rates of one second.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Like --once, as JSON on standard output.")] = False,
) -> None:
    """Show nodes until Ctrl-C: state, run, rates, slots, dead time, lagging sources, error banks, conditions, lines.

    The exit code is 2 if no node answers at the start, within three seconds.

    Example: hltnode top http://farm1:9105 http://farm2:9105
    """
    watched = Watched(urls or [DEFAULT_URL])
    watched.read()
    if not any(watched.latest.values()):
        fail("\n".join(watched.errors.values()))
    if once or json:
        time.sleep(ONCE_SECONDS)
        watched.read()
        if json:
            echo(json_module.dumps(watched.describe(), indent=1))
        else:
            TextConsole(emoji=False, markup=False).print(screen(watched.describe()))
        return
    console = TextConsole(emoji=False, markup=False)
    with Live(screen(watched.describe()), console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            time.sleep(every)
            watched.read()
            live.update(screen(watched.describe()), refresh=True)


class Watched:
    """The nodes, with the last two readings of their pages."""

    def __init__(self, urls: list[str]) -> None:
        self.before: dict[str, Pages | None] = dict.fromkeys(urls)
        self.latest: dict[str, Pages | None] = dict.fromkeys(urls)
        self.errors: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(len(self.latest))

    def read(self) -> None:
        """Read the pages of all nodes concurrently."""
        for url, pages in zip(self.latest, self._pool.map(_read, self.latest), strict=True):
            self.before[url] = self.latest[url]
            if isinstance(pages, Pages):
                self.latest[url] = pages
                self.errors.pop(url, None)
            else:
                self.latest[url] = None
                self.errors[url] = pages

    def describe(self) -> dict[str, dict[str, Any]]:
        """The shown values of each node, by address."""
        return {
            url: {"error": self.errors[url]} if pages is None else describe(self.before[url], pages)
            for url, pages in self.latest.items()
        }


def _read(url: str) -> Pages | str:
    try:
        return read_pages(url)
    except NodeUnreachableError as error:
        return str(error)


def screen(nodes: dict[str, dict[str, Any]]) -> RenderableType:
    """A table with one row per node; below it the longer lists of sources, error banks and lines."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    for name in ("node", "state", "run"):
        table.add_column(name, overflow="fold")
    for name in ("events/s", "accepted/s", "MEPs/s", "slots", "dead time"):
        table.add_column(name, justify="right", no_wrap=True)
    details: list[RenderableType] = []
    for url, node in nodes.items():
        if "error" in node:
            details.append(Text(node["error"], style="red"))
            continue
        rates = node["per_second"]
        busy = sum(count for state, count in node["slots"].items() if state != "free")
        table.add_row(
            node["node"],
            Text(node["state"], style="green" if node["state"] == "running" else "yellow"),
            "-" if node["run"] is None else str(node["run"]),
            *(_rate(rates[name]) for name in ("events", "accepted", "meps")),
            f"{busy}/{sum(node['slots'].values())}",
            _dead(node["dead_time"]),
        )
        details += _details(url, node)
    return Group(table, *details)


def _details(url: str, node: dict[str, Any]) -> list[RenderableType]:
    free = node["output_free_bytes"]
    found: list[RenderableType] = [
        Text(f"\n{node['node']}  {url}  {node['backend']}  TCK {node['tck']}", style="bold"),
        Text(
            f"  {node['feeders']} feeders, {node['sources']} sources, {node['events']} events, "
            f"{'unknown' if free is None else f'{free / GIB:.0f} GiB'} free for files"
        ),
    ]
    for name, words in (("silent_sources", "silent"), ("lagging_sources", "that lag (the oldest open MEP lacks them)")):
        if sources := node[name]:
            shown = ", ".join(map(str, sources[:SHOWN_SOURCES])) + (" ..." if len(sources) > SHOWN_SOURCES else "")
            found.append(Text(f"  sources {words}: {shown}", style="yellow"))
    found += [Text(text, style="yellow") for text in _error_banks(node)]
    found += _conditions(node["conditions"])
    lines = list(node["lines"].items())
    for line, count in lines[:SHOWN_LINES]:
        share = count / max(1, node["events"])
        found.append(Text(f"  {count:>10}  {share:8.3%}  {line}"))
    if len(lines) > SHOWN_LINES:
        found.append(Text(f"  and {len(lines) - SHOWN_LINES} more lines"))
    return found


def _error_banks(node: dict[str, Any]) -> list[str]:
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


def _conditions(conditions: dict[str, dict[str, Any]]) -> list[RenderableType]:
    """The numbers of the detector that the node measures, with those that its kernels use."""
    found = [Text("  [conditions]")] if conditions else []
    for name, of in conditions.items():
        measured = "not measured yet" if of["measured"] is None else f"measured {of['measured']:.3f}"
        origin = "followed" if of["followed"] else "configured"
        text = f"    {name}  {measured}, {origin} {of['configured']:.3f}, tolerance {of['tolerance']:g} {of['unit']}"
        found.append(Text(text, style="yellow" if of["is_off"] else ""))
    return list(found)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _dead(shares: dict[str, float | None]) -> str:
    known = {reason: share for reason, share in shares.items() if share is not None}
    if not known:
        return "-"
    reason, _ = max(known.items(), key=lambda item: item[1])
    total = sum(known.values())
    return f"{total:.0%}" + (f" {reason}" if total > 0 else "")
