"""What the training of networks on simulated events shares: long tracks with truth, and the training.

`python -m tools.train_ghost_network` and `python -m tools.train_electrons` use it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.collections import Column, View
from hltnode.processing.framework.event_files import read_event_tables
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import CompletedBatch, OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.networks.one_hidden_layer import FloatArray, OneHiddenLayer
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch, retained
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_tracks
from hltnode.processing.lhcb.velo.collections import track_hit_count
from hltnode.processing.lhcb.velo.collections import tracks as velo_tracks
from hltnode.processing.offline.truth_faults import TruthFaults

EVENTS_PER_MEP = 16
LIMITS = BatchLimits(events=64, input_bytes=8 << 20)

EPOCHS, BATCH, FIRST_RATE, LAST_RATE, WEIGHT_DECAY = 30, 256, 3e-3, 1e-5, 1e-4
Mask = NDArray[np.bool_]
Network = TypeVar("Network", bound=OneHiddenLayer)


@dataclass(frozen=True, slots=True, eq=False)
class TracksWithTruth:
    """Long tracks of a batch, one row each: `event` i64[n]; `columns` [n] or [n, width] of `long_tracks`, by name
    without the collection, and `velo_hit_count`; `particle` i64[n]: row of `particles`, -1 for a ghost."""

    event: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    particle: NDArray[np.int64]
    particles: ParticleTable


def tracks_with_truth(
    path: Path, geometry: Path | None, sequence: str, read: Sequence[Column | View]
) -> Iterator[TracksWithTruth]:
    """The long tracks that a sequence finds in a file of events, those without truth and those cut left out.

    `read`: the columns of long tracks to read; others are ignored. `event` counts the events of the file.
    """
    configuration = CHAIN.load_trigger(None, sequence)
    chain = CHAIN.with_sequence(configuration.sequence)
    wanted = [
        column
        for column in dict.fromkeys(read)
        if isinstance(column, Column) and column.collection is long_tracks and column is not long_count
    ]
    names = [column.name for column in (*wanted, track_hit_count)]
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels, threads=1, device=0),
        chain.load_geometry(geometry),
        configuration,
        LIMITS,
        retain=tuple(dict.fromkeys((*retained(chain.sequence), *names))),
    )
    first_event = 0
    meps = encode_meps(engine.chain, read_event_tables(path), EVENTS_PER_MEP, "auto")
    for batch in OfflineRunner(engine).run(meps):
        yield _tracks_of(batch, wanted, first_event)
        first_event += batch.workspace.n_events
    engine.close()


def _tracks_of(batch: CompletedBatch, wanted: Sequence[Column], first_event: int) -> TracksWithTruth:
    workspace = batch.workspace
    found = reconstructed_batch(workspace)
    events = [banks for mep in batch.meps for banks in mep.events]
    faults = TruthFaults()
    truth = [
        None if cut else read_truth(banks, hits, faults)
        for banks, hits, cut in zip(events, found.hits, found.is_cut, strict=True)
    ]
    kept = np.array([it is not None for it in truth])
    particles = ParticleTable.of_events([it.particles for it in truth if it is not None])
    matches = match_tracks(found.tracks[Stage.LONG].of_kept_events(kept), particles)

    n = workspace.fetch(long_count.name, workspace.n_events).astype(np.int64)
    event = np.repeat(np.arange(len(n)), n)
    place = np.arange(len(event)) + np.repeat(workspace.first(long_tracks) - (np.cumsum(n) - n), n)
    rows = kept[event]
    event, place = event[rows], place[rows]
    columns: dict[str, NDArray[Any]] = {}
    for column in wanted:
        values = workspace.fetch(column.name).reshape(-1, column.width)[place]
        columns[column.name.partition(".")[2]] = values[:, 0] if column.width == 1 else values
    if "velo_track" in columns:
        velo = workspace.first(velo_tracks)[event] + columns["velo_track"]
        columns["velo_hit_count"] = workspace.fetch(track_hit_count.name)[velo]
    particle = np.full(len(event), -1)
    particle[matches.track] = matches.particle
    return TracksWithTruth(event + first_event, columns, particle, particles)


def train(
    network: type[Network], inputs: FloatArray, target: Mask, weight: FloatArray | None = None, seed: int = 1
) -> Network:
    """Minimise the cross entropy by Adam (D. Kingma, J. Ba, arXiv:1412.6980), with a learning rate that falls along a
    cosine.

    `weight` f64[n] of each track, of mean 1; all are 1 if not given.
    """
    n_hidden = network.form.n_hidden
    rng = np.random.default_rng(seed)
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    scaled, wanted = (inputs - mean) / spread, target.astype(np.float64)
    n, n_inputs = scaled.shape
    of_track = np.ones(n) if weight is None else weight
    weights = [
        rng.normal(0.0, n_inputs**-0.5, (n_inputs, n_hidden)),
        np.zeros(n_hidden),
        rng.normal(0.0, n_hidden**-0.5, n_hidden),
        np.array([-1.0]),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    step = 0
    for epoch in range(EPOCHS):
        rate = FIRST_RATE * 0.5 * (1.0 + np.cos(np.pi * epoch / EPOCHS)) + LAST_RATE
        order = rng.permutation(n)
        for begin in range(0, n, BATCH):
            chosen = order[begin : begin + BATCH]
            step += 1
            for i, gradient in enumerate(_gradients(weights, scaled[chosen], wanted[chosen], of_track[chosen])):
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                change = first[i] / (1.0 - 0.9**step) / (np.sqrt(second[i] / (1.0 - 0.999**step)) + 1e-8)
                weights[i] = weights[i] - rate * change
    return network(mean, spread, weights[0], weights[1], weights[2], float(weights[3][0]))


def _gradients(weights: list[FloatArray], x: FloatArray, target: FloatArray, of_track: FloatArray) -> list[FloatArray]:
    hidden, hidden_bias, output, output_bias = weights
    before = x @ hidden + hidden_bias
    nodes = np.maximum(before, 0.0)
    u = nodes @ output + output_bias[0]
    probability = np.clip(0.5 * (1.0 + u / np.sqrt(1.0 + u * u)), 1e-6, 1.0 - 1e-6)
    of_u = (probability - target) / (probability * (1.0 - probability)) * 0.5 * (1.0 + u * u) ** -1.5 / len(x)
    of_u = of_track * np.clip(of_u, -1.0, 1.0)
    of_nodes = np.outer(of_u, output) * (before > 0.0)
    return [
        x.T @ of_nodes + WEIGHT_DECAY * hidden,
        of_nodes.sum(axis=0),
        nodes.T @ of_u + WEIGHT_DECAY * output,
        np.array([of_u.sum()]),
    ]
