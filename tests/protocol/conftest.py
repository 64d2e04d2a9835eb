"""Real files for several tests of the formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from hltnode.protocol import RawBank, iter_records


@pytest.fixture(scope="session")
def retina_mdf(shared: Path) -> bytes:
    """Seven simulated events with retina clusters, super-pixels and truth of bank version 2."""
    return (shared / "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf").read_bytes()


@pytest.fixture(scope="session")
def superpixel_mdf(shared: Path) -> bytes:
    """The same events without retina clusters, truth of bank version 1."""
    return (shared / "data/lhcb-minbias-mdf/minbias_80a10f3e_noretina_ev6001_6007.mdf").read_bytes()


@pytest.fixture(scope="session")
def compressed_mdf(shared: Path) -> bytes:
    """The same events without retina clusters and truth, zlib-compressed."""
    return (shared / "data/lhcb-minbias-mdf/minbias_601cb8ae_zlib_nomc_ev6001_6007.mdf").read_bytes()


@pytest.fixture(scope="session")
def run3_mdf(shared: Path) -> bytes:
    """Two records of 2025 data, trigger banks only."""
    return (shared / "data/lhcb-run3-records/test.mdf").read_bytes()


@pytest.fixture(scope="session")
def mep2019_file(shared: Path) -> bytes:
    """One packet of ten simulated events in the 2019 layout."""
    return (shared / "data/lhcb-mep-2019/minbias_pf10_1db9a6ba.mep").read_bytes()


@pytest.fixture(scope="session")
def retina_events(retina_mdf: bytes) -> list[list[RawBank]]:
    """The raw banks of the events of `retina_mdf`."""
    return [record.banks() for record in iter_records(retina_mdf)]


@pytest.fixture(scope="session")
def superpixel_events(superpixel_mdf: bytes) -> list[list[RawBank]]:
    """The raw banks of the events of `superpixel_mdf`."""
    return [record.banks() for record in iter_records(superpixel_mdf)]
