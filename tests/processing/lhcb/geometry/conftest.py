"""The real events and their geometry."""

from __future__ import annotations

from pathlib import Path

import pytest

from hltnode.protocol import RawBank, iter_records


@pytest.fixture(scope="session")
def geometry_files(shared: Path) -> Path:
    """The geometry files of the real simulated events."""
    return shared / "data" / "lhcb-geometry"


@pytest.fixture(scope="session")
def real_events(shared: Path) -> list[list[RawBank]]:
    """The raw banks of seven simulated events of all detectors, with truth."""
    mdf = (shared / "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf").read_bytes()
    return [record.banks() for record in iter_records(mdf)]
