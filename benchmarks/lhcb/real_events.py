"""The chain that most benchmarks measure and its real events, in one place.

Targets and baselines of the benchmarks are figures of LHCb: its seven real events, its sources and its sequences. A
benchmark of another chain needs events of that chain, and a module like this one that finds them.
"""

from pathlib import Path

from hltnode.processing.framework.event_files import read_events
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol.raw_data.raw_bank import RawBank

__all__ = ["CHAIN", "REAL_FILES", "geometry_folder", "has_real_events", "real_events", "real_file"]

REAL_FILES = {"retina": "*_retina3_*.mdf", "superpixel": "*_noretina_*.mdf"}
"""Names of the files of real events, by the encoding of the VELO."""


def geometry_folder(shared: Path) -> Path:
    """The geometry with which the real events were taken."""
    return shared / "data" / "lhcb-geometry"


def has_real_events(shared: Path) -> bool:
    """Whether the folder of shared data has the real events."""
    return _folder(shared).is_dir()


def real_file(shared: Path, encoding: str = "retina") -> Path:
    """The seven minimum-bias events. Raises FileNotFoundError."""
    found = list(_folder(shared).glob(REAL_FILES[encoding]))
    if len(found) != 1:
        raise FileNotFoundError(
            f"{_folder(shared)} has {len(found)} files {REAL_FILES[encoding]}; HLTNODE_SHARED names another folder"
        )
    return found[0]


def real_events(shared: Path) -> list[list[RawBank]]:
    """The seven minimum-bias events, with retina clusters."""
    return list(read_events(real_file(shared)))


def _folder(shared: Path) -> Path:
    return shared / "data" / "lhcb-minbias-mdf"
