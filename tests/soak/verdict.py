"""What the files of a soak hold, event for event, against what was fed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.mdf import iter_records
from tests.soak.content import EVENTS_PER_MEP, event_of, missing_or_damaged

SHOWN = 10


@dataclass(slots=True)
class Found:
    """The events of all files."""

    complete: Counter[int] = field(default_factory=Counter)
    """Events with every bank as it was fed, by number: how often they were found."""
    incomplete: Counter[int] = field(default_factory=Counter)
    """Events of which some sources are missing."""
    missing: dict[int, frozenset[int]] = field(default_factory=dict)
    """Of each incomplete event the sources that are missing."""
    problems: list[str] = field(default_factory=list)

    @property
    def times(self) -> Counter[int]:
        """How often each event was found."""
        return self.complete + self.incomplete


def read_files(directory: Path) -> Found:
    """Read and check every event of every file."""
    found = Found()
    for path in sorted(directory.iterdir()):
        # Of the node: what is finished, its run summaries, and what it took out of files.
        if path.suffix in (".journal", ".json") or path.name == "quarantine":
            continue
        if path.suffix != ".mdf":
            found.problems.append(f"{path.name}: not a finished file")
            continue
        try:
            for record in iter_records(path.read_bytes()):
                banks = record.banks()
                event = event_of(banks)
                missing, damaged = missing_or_damaged(banks, event)
                if damaged:
                    found.problems.append(f"{path.name}: event {event}: banks of sources {sorted(damaged)} differ")
                if missing:
                    found.missing[event] = frozenset(missing)
                (found.incomplete if missing else found.complete)[event] += 1
        except (ProtocolError, ValueError) as error:
            found.problems.append(f"{path.name}: {error}")
    return found


def compare(found: Found, fed: int) -> tuple[list[int], list[int], list[int]]:
    """Events that are lost, that were never fed, and that are there more than once."""
    times = found.times
    lost = [event for event in range(fed) if event not in times]
    invented = sorted(event for event in times if not 0 <= event < fed)
    repeated = sorted(event for event, n in times.items() if n > 1)
    return lost, invented, repeated


def not_named(found: Found, named: Mapping[int, set[frozenset[int]]]) -> list[int]:
    """Incomplete events whose missing sources no decision names; `named` by MEP id, for decisions that were seen."""
    return sorted(
        event
        for event, missing in found.missing.items()
        if (mep := event // EVENTS_PER_MEP) in named and missing not in named[mep]
    )


def some(events: list[int]) -> str:
    """The first few of a list of events."""
    shown = ", ".join(map(str, events[:SHOWN]))
    return shown + (", ..." if len(events) > SHOWN else "")
