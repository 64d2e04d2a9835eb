"""Detects files of events of another chain: the chain reads none of their sources."""

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.event_files import EventFileError, read_events
from hltnode.protocol.raw_data.source_id import subdetector_of


def require_sources(path: Path, chain: Chain) -> None:
    """Check that a file has a bank from a source that the chain reads.

    The first such bank ends the search, so a file of the chain costs one event.

    Raises EventFileError with the file, the sub-detectors of its sources, and the sub-detectors that the chain reads.
    """
    sources: set[int] = set()
    damage: list[EventFileError] = []
    for banks in read_events(path, damaged=damage.append):
        for bank in banks:
            source = chain.readout.source_of(bank)
            if source is not None and subdetector_of(source) in chain.subdetectors:
                return
            sources.add(bank.source_id if source is None else source)
    if damage and not sources:
        raise damage[0]
    raise EventFileError(
        f"{path}: chain {chain.name} reads none of its {len(sources)} sources, "
        f"which belong to the sub-detectors {_listed(map(subdetector_of, sources))}; "
        f"the chain reads the sub-detectors {_listed(chain.subdetectors)}"
    )


def _listed(subdetectors: Iterable[int]) -> str:
    """The numbers of sub-detectors, with the names that the chain gives them."""
    texts = (f"{int(it)} ({it.name})" if isinstance(it, Enum) else str(it) for it in sorted(set(subdetectors)))
    return ", ".join(texts) or "(none)"
