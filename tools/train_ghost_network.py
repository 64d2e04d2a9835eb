"""Train the network of the ghost probability on simulated events, and report its performance on others.

    hltnode simulate --sample minbias -n 2500 --seed 21 -o minbias.mdf
    hltnode simulate --sample bsphiphi -n 600 --seed 32 -o bsphiphi.mdf
    python tools/train_ghost_network.py minbias.mdf bsphiphi.mdf --force -o processing/lhcb/tracks/kalman
    python tools/train_ghost_network.py real.mdf --geometry lhcb-geometry

Of every three events, two are for training and one for the test. Without -o all events test the present network
(docs/physics/ghost-probability.md).
"""

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.result_files import FORCE_HELP, require_new
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.event_files import read_event_tables
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import CompletedBatch, OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch, retained
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.tracks.kalman.ghost_network import (
    GHOST_NETWORK_FILE,
    INPUTS,
    N_HIDDEN,
    GhostNetwork,
    inputs_of,
)
from hltnode.processing.lhcb.tracks.kalman.ghost_probability import ghost_probability
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_tracks
from hltnode.processing.lhcb.velo.collections import track_hit_count
from hltnode.processing.lhcb.velo.collections import tracks as velo_tracks
from hltnode.processing.offline.truth_faults import TruthFaults

EVENTS_PER_MEP = 16
LIMITS = BatchLimits(events=64, input_bytes=8 << 20)
TRAINED_OF_THREE = 2

EPOCHS, BATCH, FIRST_RATE, LAST_RATE, WEIGHT_DECAY = 30, 256, 3e-3, 1e-5, 1e-4
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Sample:
    """Long tracks: inputs f64[n, N_INPUTS]; whether no particle matches; whether it belongs to a particle to find
    (long, no electron); event i64[n]."""

    def __init__(self, parts: list[tuple[FloatArray, Mask, Mask, NDArray[np.int64]]]) -> None:
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        self.inputs, self.is_ghost, self.is_wanted, self.event = columns

    @classmethod
    def read(cls, path: Path, geometry: Path | None, first_event: int) -> "Sample":
        """The tracks that the configured sequence finds in events with truth."""
        configuration = CHAIN.load_trigger(None, "forward_then_matching")
        chain = CHAIN.with_sequence(configuration.sequence)
        columns = [column.name for column in (*ghost_probability.reads, *ghost_probability.writes)]
        engine = CHAIN.create_engine(
            create_backend("cpu", CHAIN.kernels, threads=1, device=0),
            chain.load_geometry(geometry),
            configuration,
            LIMITS,
            retain=tuple(dict.fromkeys((*retained(chain.sequence), *columns))),
        )
        parts = []
        meps = encode_meps(engine.chain, read_event_tables(path), EVENTS_PER_MEP, "auto")
        for batch in OfflineRunner(engine).run(meps):
            parts.append(_tracks_of(batch, first_event))
            first_event += batch.workspace.n_events
        engine.close()
        return cls(parts)


def _tracks_of(batch: CompletedBatch, first_event: int) -> tuple[FloatArray, Mask, Mask, NDArray[np.int64]]:
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
    for column in (*ghost_probability.reads, *ghost_probability.writes):
        if isinstance(column, Column) and column.collection is long_tracks and column is not long_count:
            values = workspace.fetch(column.name).reshape(-1, column.width)[place]
            columns[column.name.partition(".")[2]] = values[:, 0] if column.width == 1 else values
    velo = workspace.first(velo_tracks)[event] + columns["velo_track"]
    columns["velo_hit_count"] = workspace.fetch(track_hit_count.name)[velo]

    is_ghost = np.ones(len(event), dtype=bool)
    is_ghost[matches.track] = False
    is_wanted = np.zeros(len(event), dtype=bool)
    is_wanted[matches.track] = (particles.is_long & ~particles.is_electron)[matches.particle]
    return inputs_of(columns), is_ghost, is_wanted, event + first_event


def train(inputs: FloatArray, is_ghost: Mask, seed: int = 1) -> GhostNetwork:
    """Minimise the cross entropy by Adam (D. Kingma, J.

    Ba, arXiv:1412.6980), with a learning rate that falls along a cosine.
    """
    rng = np.random.default_rng(seed)
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    scaled, target = (inputs - mean) / spread, is_ghost.astype(np.float64)
    n, n_inputs = scaled.shape
    weights = [
        rng.normal(0.0, n_inputs**-0.5, (n_inputs, N_HIDDEN)),
        np.zeros(N_HIDDEN),
        rng.normal(0.0, N_HIDDEN**-0.5, N_HIDDEN),
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
            for i, gradient in enumerate(_gradients(weights, scaled[chosen], target[chosen])):
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                change = first[i] / (1.0 - 0.9**step) / (np.sqrt(second[i] / (1.0 - 0.999**step)) + 1e-8)
                weights[i] = weights[i] - rate * change
    return GhostNetwork(mean, spread, weights[0], weights[1], weights[2], float(weights[3][0]))


def _gradients(weights: list[FloatArray], x: FloatArray, target: FloatArray) -> list[FloatArray]:
    hidden, hidden_bias, output, output_bias = weights
    before = x @ hidden + hidden_bias
    nodes = np.maximum(before, 0.0)
    u = nodes @ output + output_bias[0]
    probability = np.clip(0.5 * (1.0 + u / np.sqrt(1.0 + u * u)), 1e-6, 1.0 - 1e-6)
    of_u = (probability - target) / (probability * (1.0 - probability)) * 0.5 * (1.0 + u * u) ** -1.5 / len(x)
    of_u = np.clip(of_u, -1.0, 1.0)
    of_nodes = np.outer(of_u, output) * (before > 0.0)
    return [
        x.T @ of_nodes + WEIGHT_DECAY * hidden,
        of_nodes.sum(axis=0),
        nodes.T @ of_u + WEIGHT_DECAY * output,
        np.array([of_u.sum()]),
    ]


def reached(probability: FloatArray, sample: Sample, chosen: Mask) -> dict[str, Any]:
    """Area under the curve of efficiency against ghosts, and the rejected fraction of ghosts at efficiencies of 99, 95
    and 90 %."""
    ghosts = probability[chosen & sample.is_ghost]
    others = probability[chosen & ~sample.is_ghost]
    limits = np.quantile(probability[chosen & sample.is_wanted], (0.99, 0.95, 0.9))
    below = np.searchsorted(np.sort(others), ghosts)
    return {
        "tracks": int(chosen.sum()),
        "ghosts": len(ghosts),
        "area": round(float(np.mean(below) / len(others)), 4),
        "cuts": [round(float(limit), 3) for limit in limits],
        "rejected at 99, 95, 90 %": [round(float(np.mean(ghosts > limit)), 3) for limit in limits],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, nargs="+", help="MDF files with truth")
    parser.add_argument("--geometry", type=Path, help="folder of geometry files; default: the built-in detector")
    parser.add_argument("-o", "--output", type=Path, help=f"folder to write {GHOST_NETWORK_FILE} to")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    arguments = parser.parse_args()
    if arguments.output is not None:
        try:
            require_new(arguments.output / GHOST_NETWORK_FILE, force=arguments.force)
        except ValueError as error:
            parser.error(str(error))
    samples = {path.name: Sample.read(path, arguments.geometry, 0) for path in arguments.input}
    if arguments.output is None:
        network = GhostNetwork.builtin()
        for name, sample in samples.items():
            print(name, reached(network.probability(sample.inputs), sample, np.ones(len(sample.event), dtype=bool)))
        return
    trained = {name: sample.event % 3 < TRAINED_OF_THREE for name, sample in samples.items()}
    inputs = np.concatenate([sample.inputs[trained[name]] for name, sample in samples.items()])
    is_ghost = np.concatenate([sample.is_ghost[trained[name]] for name, sample in samples.items()])
    found = train(inputs, is_ghost)
    results = {
        name: reached(found.probability(sample.inputs), sample, ~trained[name]) for name, sample in samples.items()
    }
    provenance = {
        "made by": f"tools/train_ghost_network.py of hltnode {version('hltnode')}",
        "sequence": "forward_then_matching",
        "tracks": len(inputs),
        "ghosts": int(is_ghost.sum()),
        "other events": results,
    }
    weights = {name: getattr(found, name) for name in ("mean", "spread", "hidden", "hidden_bias", "output")}
    network = GhostNetwork(**weights, output_bias=found.output_bias, provenance=provenance)
    (arguments.output / GHOST_NETWORK_FILE).write_text(network.as_json())
    for name, result in results.items():
        print(name, result)
    print(f"{arguments.output / GHOST_NETWORK_FILE} written; inputs: {', '.join(INPUTS)}")


if __name__ == "__main__":
    main()
