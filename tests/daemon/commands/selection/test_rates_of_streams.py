"""hltnode rates of a streaming chain: each sub-slice counts once, those at borders of slices as any other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.mep_streams.simulated_stream import write_stretch
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.offline.simulation.sample import TelescopeOptions, TelescopeSample
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.selection.studies.decided_events import EVENTS_PER_MEP
from hltnode.protocol.raw_data.raw_bank import RawBank

CORE, N_SLICES = 12, 6
N = CORE * N_SLICES
SAMPLE = TelescopeSample(SampleRequest(seed=3, run=1), TelescopeOptions(muon_rate=60_000.0, radius=40.0))


def decided_without_cuts(made: list[list[RawBank]]) -> NDArray[np.bool_]:
    """bool[sub-slices, lines]: the decisions of the usual configuration on a stream in one slice."""
    sent = [[bank for bank in banks if CHAIN.readout.source_of(bank) is not None] for banks in made]
    empty = [bank._replace(payload=memoryview(b"")) for bank in sent[0]]
    mep = encode_mep(CHAIN, [empty, *sent, empty])
    limits = BatchLimits(events=N + 2, meps=1, input_bytes=mep.data.nbytes, rows=len(mep.fragments))
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    engine = CHAIN.create_engine(backend, CHAIN.load_geometry(None), CHAIN.load_trigger(None), limits)
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        words = np.ascontiguousarray(batch.workspace.output.lines).view(np.uint8)
        fired = np.unpackbits(words, axis=1, count=len(engine.lines), bitorder="little").astype(np.bool_)
    finally:
        engine.close()
    return np.asarray(fired[1:-1])


def test_margins_are_no_events_and_borders_of_slices_lose_none(tmp_path: Path) -> None:
    of_stream, of_slices = tmp_path / "stream.mdf", tmp_path / "slices.mep"
    write_stretch(CHAIN, SAMPLE, CORE, N_SLICES, of_slices, of_stream, run=1)
    fired = decided_without_cuts(list(SAMPLE.events(N)))
    at_borders = np.isin(np.arange(N) % EVENTS_PER_MEP, (0, EVENTS_PER_MEP - 1))
    assert fired[at_borders].any()
    for path in (of_stream, of_slices):
        json_file = path.with_suffix(".json")
        done = CliRunner().invoke(app, ["rates", str(path), "--chain", "km3net", "--json", str(json_file)])
        assert done.exit_code == 0, done.output
        found = json.loads(json_file.read_text())
        assert found["events"] == N
        assert [line["events"] for line in found["lines"].values()] == fired.sum(axis=0).tolist()
        assert found["total"]["events"] == fired.any(axis=1).sum()
