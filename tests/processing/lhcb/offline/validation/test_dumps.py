"""Dumps of events: written events are read back, and damaged files are refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.validation.reference import dumps
from hltnode.processing.lhcb.offline.validation.reference.dumps import DumpError, ReferenceDump
from hltnode.processing.lhcb.offline.validation.reference.forward_tracks import ForwardTracksError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.truth import decode_particles
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.offline.validation.dump_writer import write_dump

READERS: dict[str, Callable[[Path], Any]] = {
    dumps.BANKS[LhcbBankType.UT]: lambda path: dumps.read_banks(path, LhcbBankType.UT, 3),
    dumps.BANKS[LhcbBankType.FT_CLUSTER]: lambda path: dumps.read_banks(path, LhcbBankType.FT_CLUSTER, 5),
    dumps.PARTICLES: dumps.read_particles,
    dumps.VERTICES: dumps.read_vertices,
    dumps.FORWARD_TRACKS: dumps.read_tracks,
    dumps.MUON_HITS: dumps.read_muon_hits,
    dumps.MUON_COORDINATES: dumps.read_muon_tiles,
}


@pytest.fixture(scope="module")
def event() -> list[RawBank]:
    detector = Detector.builtin()
    return next(FullSimulation(detector, sample_source("minbias", 3.0, detector.velo.beamline)).events(1, 5))


@pytest.fixture
def folder(event: list[RawBank], tmp_path: Path) -> Path:
    write_dump(tmp_path, event, 3, 12, Detector.builtin().muon)
    return tmp_path


def test_what_a_dump_holds_is_what_the_event_has(event: list[RawBank], folder: Path) -> None:
    dump = ReferenceDump(folder)
    assert dump.events() == [(3, 12)]
    assert dump.path(dumps.PARTICLES, 3, 13) is None
    paths = {kind: folder / kind / "3_12.bin" for kind in READERS}
    for kind, name in dumps.BANKS.items():
        known = [(bank.source_id, bytes(bank.payload)) for bank in event if bank.type == kind]
        assert [(bank.source_id, bytes(bank.payload)) for bank in READERS[name](paths[name])] == known
    particles = decode_particles(event)
    read = dumps.read_particles(paths[dumps.PARTICLES])
    assert read.values["key"].tolist() == [particle.key for particle in particles]
    assert len(read.scifi_ids) == sum(len(particle.scifi_ids) for particle in particles)
    hits = Detector.builtin().muon.hits(decode_muon(event))
    assert dumps.read_muon_hits(paths[dumps.MUON_HITS])["x"].tolist() == hits.x.astype(np.float32).tolist()
    tiles = dumps.read_muon_tiles(paths[dumps.MUON_COORDINATES])
    assert sorted(tiles.tolist()) == sorted(hits.tile.tolist())


@pytest.mark.parametrize("kind", dumps.FOLDERS)
@pytest.mark.parametrize("size", [-4, -1, 6, 0])
def test_a_dump_that_is_cut_off_is_refused_by_name(folder: Path, kind: str, size: int) -> None:
    path = folder / kind / "3_12.bin"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises((DumpError, ForwardTracksError), match=str(path)):
        READERS[kind](path)


def test_a_dump_may_lack_kinds_but_not_all(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="no dump of events"):
        ReferenceDump(tmp_path)
    (tmp_path / dumps.MUON_HITS).mkdir()
    assert ReferenceDump(tmp_path).events() == []
