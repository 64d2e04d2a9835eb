"""The status of a node in a few lines for people."""

from collections.abc import Mapping
from typing import Any

_COLUMN = 12
_LONGEST_LIST = 8


def status_text(status: Mapping[str, Any]) -> str:
    """The content of /status, or the shorter answer of the control socket, as lines of at most 100 columns.

    Parts that the answer lacks are left out.
    """
    state = str(status["state"])
    run = "no run" if status.get("run") is None else f"run {status['run']}"
    closing = f", closing run {status['closing']}" if status.get("closing") is not None else ""
    lines = [f"{status.get('node', 'node')}: {state}, {run}{closing}"]

    def row(name: str, text: str) -> None:
        lines.append(f"  {name:{_COLUMN}}{text}")

    if status.get("waits_for"):
        row("waits for", f"{status['waits_for']} ({status.get('waits_seconds', 0):.0f} s)")
    software = [f"hltnode {status['version']}"] if status.get("version") else []
    software += [f"{name} {status[key]}" for name, key in (("chain", "chain"), ("TCK", "tck")) if status.get(key)]
    software += [str(status["backend"])] if status.get("backend") else []
    if software:
        row("software", ", ".join(software))
    if isinstance(status.get("events"), Mapping):
        row("events", f"{_n(status['events'], 'processed')} processed, {_n(status['events'], 'accepted')} accepted")
    accounts = status.get("accounting", {})
    if "meps" in accounts:
        row("MEPs", _classes(accounts["meps"], "opened"))
    if "fragments" in accounts:
        row("fragments", _classes(accounts["fragments"], "received"))
    if isinstance(status.get("feeders"), list | Mapping):
        row("feeders", f"{len(status['feeders'])}, with {status.get('sources', 0):,} sources")
    if status.get("silent_sources"):
        row("silent", f"{len(status['silent_sources'])} sources: {_some(status['silent_sources'])}")
    if isinstance(status.get("slots"), Mapping):
        row("slots", ", ".join(f"{n} {name}" for name, n in status["slots"].items() if n))
    if isinstance(status.get("combiner"), Mapping):
        row("combiner", combiner_text(status["combiner"]))
        row("held", held_text(status["combiner"]))
    if status.get("output_free_bytes") is not None:
        queued = status.get("output_queue_bytes", 0) / 1e6
        row("output", f"{status['output_free_bytes'] / 1e9:.1f} GB free, {queued:.1f} MB queued")
    if status.get("kept"):
        runs = [run["run"] if isinstance(run, Mapping) else run for run in status.get("kept_runs", ())]
        row("kept runs", f"{status['kept']}: {_some(runs)}")
    return "\n".join(lines)


def combiner_text(of: Mapping[str, Any]) -> str:
    """Whether the combiner of a node answers."""
    if of["session"] is None:
        return f"{of['endpoint']} has not answered yet ({of['silent_seconds']:.0f} s)"
    return f"{of['endpoint']} {'answers' if of['answers'] else 'is silent'}, last {of['silent_seconds']:.1f} s ago"


def held_text(of: Mapping[str, Any]) -> str:
    """The slices that wait for the combiner, and how those that left have ended."""
    ends = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in of["slices"].items() if n) or "none"
    return (
        f"{of['held_slices']:,} slices, the oldest for {of['oldest_seconds']:.1f} s, "
        f"{of['held_bytes'] / 1e6:,.1f} of {of['max_bytes'] / 1e6:,.1f} MB; left: {ends}"
    )


def _n(counts: Mapping[str, Any], name: str) -> str:
    return f"{counts.get(name, 0):,}"


def _classes(account: Mapping[str, int], total: str) -> str:
    """The total and the classes that are not empty: `10 opened: 9 complete, 1 open`."""
    classes = [f"{n:,} {name.replace('_', ' ')}" for name, n in account.items() if n and name != total]
    return f"{account.get(total, 0):,} {total}" + (f": {', '.join(classes)}" if classes else "")


def _some(items: Any) -> str:
    found = list(items)
    return ", ".join(map(str, found[:_LONGEST_LIST])) + (", ..." if len(found) > _LONGEST_LIST else "")
