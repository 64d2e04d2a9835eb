"""Tracks of accepted events: `process` writes them as banks, `hltnode.open` and the reader of the chain read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.offline.simulation.sample import TpcOptions, TpcSample, encode_block, event_of
from hltnode.processing.alice.tpc.collections import TRACK
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.alice.track_lists import clusters_of_tracks
from hltnode.protocol.errors import ReportError
from hltnode.protocol.raw_data.list_banks import decode_lists
from hltnode.protocol.raw_data.mdf import iter_records
from tests.processing.alice.toy_events import run_chain

TRIGGER = '[[lines]]\ntype = "Passthrough"\nname = "All"\n'


def test_accepted_events_carry_the_tracks_that_the_chain_finds(tmp_path: Path) -> None:
    # This event has other collisions, and more clusters of tracks than one bank holds.
    sample = TpcSample(SampleRequest(seed=3), TpcOptions())
    file, accepted = tmp_path / "pp.mdf", tmp_path / "accepted.mdf"
    file.write_bytes(encode_block(sample, 0, [event_of(sample, 1)]))
    (tmp_path / "all.toml").write_text(TRIGGER)
    lists = ("--lists", "tracks,track_clusters", "--trigger", str(tmp_path / "all.toml"))
    done = CliRunner().invoke(
        app, ["process", "--chain", "alice_tpc", str(file), "--accepted", str(accepted), "--backend", "cpu", *lists]
    )
    assert done.exit_code == 0, done.output
    (record,) = iter_records(accepted.read_bytes())
    sizes = {kind: [len(bank.payload) for bank in record.banks() if bank.type == kind] for kind in (242, 243)}
    assert len(sizes[242]) == 1
    assert len(sizes[243]) == 2
    assert max(sizes[243]) <= 65_527

    (event,) = hltnode.open(accepted, chain="alice_tpc")
    (given,) = iter_records(file.read_bytes())
    (found,) = run_chain(encode_mep(CHAIN, [given.banks()], encoding="auto"))
    tracks = event.lists["tracks"]
    assert set(tracks) == set(TRACK.dtype.names or ())
    for name, values in tracks.items():
        assert values.tobytes() == np.ascontiguousarray(found.tracks[name]).tobytes()
    read = clusters_of_tracks(event.lists)
    assert len(read) == len(found.tracks) > 300
    assert [each.tolist() for each in read] == [each.tolist() for each in found.clusters_of_tracks()]


def lists_of(sizes: list[int], n_clusters: int) -> dict[str, dict[str, Any]]:
    return {
        "tracks": {"n_clusters": np.array(sizes, np.uint16)},
        "track_clusters": {"cluster": np.arange(n_clusters, dtype=np.uint32)},
    }


def test_lists_that_contradict_each_other_or_are_missing_are_refused() -> None:
    assert [each.tolist() for each in clusters_of_tracks(lists_of([2, 1], 3))] == [[0, 1], [2]]
    assert clusters_of_tracks(lists_of([], 0)) == []
    for wrong in (lists_of([2, 1], 4), lists_of([2, 1], 2), lists_of([], 1)):
        with pytest.raises(ReportError, match=r"clusters, the list has"):
            clusters_of_tracks(wrong)
    for name in ("tracks", "track_clusters"):
        with pytest.raises(ReportError, match=rf"no list {name} with"):
            clusters_of_tracks({key: value for key, value in lists_of([1], 1).items() if key != name})
    with pytest.raises(ReportError, match="no list tracks with n_clusters"):
        clusters_of_tracks(decode_lists([]))
