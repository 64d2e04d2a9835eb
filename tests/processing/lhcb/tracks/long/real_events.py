"""Input of seeding and matching for real events, from the decoders in Python and the VELO chain, and truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.stage_counts import StageCounts
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.tracks.matching.seeding_tables import SeedingTables
from hltnode.processing.lhcb.velo.collections import (
    MAX_HITS_PER_TRACK,
    cluster_offset,
    end_state,
    hit_id,
    track_backward,
    track_hit_count,
    track_hits,
    tracks,
)
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.ut import decode_ut
from hltnode.protocol.lhcb.truth_columns import McParticleColumns, decode_particle_columns
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.tracks.long.matching_chain import MatchedEvent, MatchingEvent, hits_of

STATE = ("x", "y", "tx", "ty")


@dataclass(frozen=True)
class RealEvent:
    """Input of the matching, the ids of VELO tracks and SciFi hits, and the particles."""

    given: MatchingEvent
    velo_ids: list[NDArray[np.uint32]]
    scifi_ids: NDArray[np.uint32]
    particles: McParticleColumns


def real_events(shared: Path) -> tuple[list[RealEvent], SeedingTables]:
    """The seven events, and tables of their detector."""
    folder = shared / "data/lhcb-geometry"
    (path,) = (shared / "data/lhcb-minbias-mdf").glob("*retina3*.mdf")
    banks = [list(record.banks()) for record in iter_records(path.read_bytes())]
    columns = (cluster_offset, hit_id, track_hit_count, track_hits, track_backward)
    retain = tuple(column.name for column in (*columns, *(end_state[name] for name in STATE)))
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels),
        geometry_constants(VeloGeometry.load(folder)),
        CHAIN.load_trigger(None, "velo"),
        BatchLimits(events=len(banks), input_bytes=8 << 20),
        retain=retain,
    )
    scifi, ut = SciFiGeometry.load(folder), UtGeometry.load(folder)
    (batch,) = OfflineRunner(engine).run(encode_meps(CHAIN, banks, len(banks)))
    events = [_event(batch.workspace, i, of_event, scifi, ut) for i, of_event in enumerate(banks)]
    engine.close()
    return events, SeedingTables.of(scifi, Magnet.load(folder))


def _event(workspace: Workspace, i: int, banks: list[RawBank], scifi: SciFiGeometry, ut: UtGeometry) -> RealEvent:
    first_hit = int(workspace.fetch("velo_clusters.offset")[i])
    hit_ids = workspace.fetch("velo_hits.id")
    first = int(workspace.first(tracks)[i])
    part = slice(first, first + int(workspace.fetch("velo_tracks.count")[i]))
    counts = workspace.fetch("velo_tracks.hit_count")[part]
    rows = workspace.fetch("velo_tracks.hits").reshape(-1, MAX_HITS_PER_TRACK)[part].astype(np.int64)
    velo = {name: workspace.fetch(f"velo_end.{name}")[part].copy() for name in STATE}
    hits = scifi.hits(decode_scifi(banks))
    order = np.lexsort((hits.lhcb_id, hits.x, hits.zone))
    strips = ut.hits(decode_ut(banks))
    return RealEvent(
        given=MatchingEvent(
            scifi_x=hits.x[order].astype(np.float32),
            scifi_offset=np.searchsorted(hits.zone[order], np.arange(25)),
            velo=velo | {"backward": workspace.fetch("velo_tracks.backward")[part].copy()},
            ut={name: getattr(strips, name).astype(np.float32) for name in ("x", "z", "y_begin", "y_end")},
        ),
        velo_ids=[hit_ids[first_hit + row[:n]] for row, n in zip(rows, counts, strict=True)],
        scifi_ids=hits.lhcb_id[order],
        particles=decode_particle_columns(banks),
    )


def counted(events: list[RealEvent], found: list[MatchedEvent]) -> StageCounts:
    """The long tracks compared with the truth."""
    ids = [
        [
            np.concatenate([event.velo_ids[velo], event.scifi_ids[hits_of(row)]])
            for velo, row in zip(of_event.tracks["velo_track"], of_event.tracks["hits"], strict=True)
        ]
        for event, of_event in zip(events, found, strict=True)
    ]
    particles = ParticleTable.of_events([event.particles for event in events])
    table = TrackTable.of_events(ids)
    counts = StageCounts(Stage.LONG)
    counts.add(table, particles, match_tracks(table, particles))
    return counts
