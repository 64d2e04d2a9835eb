"""Files of events that belong to another chain: none of their sources is one that the chain reads."""

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.event_files import EventFileError, read_events
from hltnode.protocol.raw_data.source_id import subdetector_of


def require_sources(path: Path, chain: Chain) -> None:
    """Check that a file has a bank of a source that the chain reads.

    The first such bank ends the search: a file of the chain costs one event.

    Raises EventFileError, which names the file, the sub-detectors of its sources, and those that the chain reads.
    """
    sources: set[int] = set()
    for banks in read_events(path):
        for bank in banks:
            source = chain.readout.source_of(bank)
            if source is not None and subdetector_of(source) in chain.subdetectors:
                return
            sources.add(bank.source_id if source is None else source)
    raise EventFileError(
        f"{path}: chain {chain.name} reads none of its {len(sources)} sources, "
        f"which are of the sub-detectors {_listed(map(subdetector_of, sources))}; "
        f"the chain reads the sub-detectors {_listed(chain.subdetectors)}"
    )


def _listed(subdetectors: Iterable[int]) -> str:
    """Their numbers, with the names that a chain gives to its own."""
    texts = (f"{int(it)} ({it.name})" if isinstance(it, Enum) else str(it) for it in sorted(set(subdetectors)))
    return ", ".join(texts) or "(none)"
