"""Train the network of the ghost probability of downstream tracks on simulated events, and report its performance.

    hltnode simulate --sample minbias -n 1000 --seed 81 -o minbias.mdf
    hltnode simulate --sample minbias -n 2000 --seed 82 -o others.mdf
    python -m tools.train_downstream_network minbias.mdf --others others.mdf --force \
        -o processing/lhcb/tracks/downstream
    python -m tools.train_downstream_network real.mdf --geometry lhcb-geometry

All events of the first files are for training, those of --others for the test. Without -o all events test the present
network. The tracks are those before the cut on the network and the removal of clones
(docs/physics/downstream-tracks.md).
"""

import argparse
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hltnode.daemon.commands.result_files import FORCE_HELP, require_new
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import read_event_tables
from hltnode.processing.framework.offline_runner import CompletedBatch, OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.networks.one_hidden_layer import FloatArray
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import wanted
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch, retained
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.tracks.downstream.collections import downstream_count, downstream_tracks
from hltnode.processing.lhcb.tracks.downstream.ghost_network import FORM, INPUTS, DownstreamNetwork, inputs_of
from hltnode.processing.lhcb.tracks.downstream.select_tracks import select_tracks
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.offline.workspace_columns import Objects
from hltnode.processing.selection.configuration.overrides import Override
from tools.network_training import EVENTS_PER_MEP, LIMITS, Mask, train

SEQUENCE = "hlt1_2026"
ALL_TRACKS = {"max_ghost_probability": 2.0, "max_shared_ut_hits": 4, "max_shared_scifi_hits": 12}
"""Constants that keep every continued seed."""
WEIGHT_OF_STRANGE = 3.0
"""Of tracks of strange particles, which vertices are made of, in units of that of others."""
_COLUMNS = [
    column
    for column in select_tracks.writes
    if column.collection is downstream_tracks and column is not downstream_count
]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Downstream tracks: inputs f64[n, N_INPUTS]; whether no particle matches; whether it belongs to a particle to
    find that comes from a strange one; number of events."""

    inputs: FloatArray
    is_ghost: Mask
    is_strange: Mask
    events: int

    @classmethod
    def read(cls, paths: list[Path], geometry: Path | None) -> "Sample":
        """The tracks of the events of files with truth, those cut left out."""
        chain = CHAIN.with_sequence(SEQUENCE)
        trigger = CHAIN.load_trigger(None, SEQUENCE)
        trigger = replace(
            trigger, overrides=tuple(Override(select_tracks.name, name, value) for name, value in ALL_TRACKS.items())
        )
        names = (downstream_count.name, *(column.name for column in _COLUMNS))
        engine = CHAIN.create_engine(
            create_backend("cpu", CHAIN.kernels, threads=1, device=0),
            chain.load_geometry(geometry),
            trigger,
            LIMITS,
            retain=tuple(dict.fromkeys((*retained(chain.sequence), *names))),
        )
        parts = []
        for path in paths:
            meps = encode_meps(engine.chain, read_event_tables(path), EVENTS_PER_MEP, "auto")
            parts += [_of_batch(batch) for batch in OfflineRunner(engine).run(meps)]
        engine.close()
        inputs, ghost, strange, events = zip(*parts, strict=True)
        return cls(np.concatenate(inputs), np.concatenate(ghost), np.concatenate(strange), sum(events))


def _of_batch(batch: CompletedBatch) -> tuple[FloatArray, Mask, Mask, int]:
    found = reconstructed_batch(batch.workspace)
    assert found.downstream is not None, f"{SEQUENCE} makes downstream tracks"
    events = [banks for mep in batch.meps for banks in mep.events]
    faults = TruthFaults()
    truth = [
        None if cut else read_truth(banks, hits, faults)
        for banks, hits, cut in zip(events, found.hits, found.is_cut, strict=True)
    ]
    kept = np.array([it is not None for it in truth])
    particles = ParticleTable.of_events([it.particles for it in truth if it is not None])
    matches = match_tracks(found.downstream.of_kept_events(kept), particles)
    of = Objects(batch.workspace, downstream_tracks, downstream_count)
    columns = {column.name.partition(".")[2]: of(column)[kept[of.event]] for column in _COLUMNS}
    is_ghost, is_strange = np.ones(len(columns["x"]), dtype=bool), np.zeros(len(columns["x"]), dtype=bool)
    is_ghost[matches.track] = False
    members = wanted(particles) & particles.from_strange
    is_strange[matches.track[members[matches.particle]]] = True
    return inputs_of(columns), is_ghost, is_strange, particles.n_events


def reached(probability: FloatArray, sample: Sample) -> dict[str, Any]:
    """Area under the curve of efficiency against ghosts, and the rejected fraction of ghosts where 99, 95 and 90 % of
    the tracks of strange particles are kept."""
    ghosts, others = probability[sample.is_ghost], probability[~sample.is_ghost]
    limits = np.quantile(probability[sample.is_strange], (0.99, 0.95, 0.9))
    below = np.searchsorted(np.sort(others), ghosts)
    return {
        "events": sample.events,
        "tracks": len(probability),
        "ghosts": len(ghosts),
        "area": round(float(np.mean(below) / len(others)), 4),
        "cuts": [round(float(limit), 3) for limit in limits],
        "rejected at 99, 95, 90 %": [round(float(np.mean(ghosts > limit)), 3) for limit in limits],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, nargs="+", help="MDF files with truth")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="MDF files with truth for the test")
    parser.add_argument("--geometry", type=Path, help="folder of geometry files; default: the built-in detector")
    parser.add_argument("-o", "--output", type=Path, help=f"folder to write {FORM.file} to")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    arguments = parser.parse_args()
    if arguments.output is not None:
        try:
            require_new(arguments.output / FORM.file, force=arguments.force)
        except ValueError as error:
            parser.error(str(error))
    sample = Sample.read(arguments.input, arguments.geometry)
    if arguments.output is None:
        print(reached(DownstreamNetwork.builtin().response(sample.inputs), sample))
        return
    weight = np.where(sample.is_strange, WEIGHT_OF_STRANGE, 1.0)
    found = train(DownstreamNetwork, sample.inputs, sample.is_ghost, weight / weight.mean())
    provenance = {
        "made by": f"tools/train_downstream_network.py of hltnode {version('hltnode')}",
        "sequence": SEQUENCE,
        "events": sample.events,
        "tracks": len(sample.inputs),
        "ghosts": int(sample.is_ghost.sum()),
    }
    if arguments.others:
        others = Sample.read(arguments.others, arguments.geometry)
        provenance["other events"] = reached(found.response(others.inputs), others)
    network = replace(found, provenance=provenance)
    (arguments.output / FORM.file).write_text(network.as_json())
    print(provenance)
    print(f"{arguments.output / FORM.file} written; inputs: {', '.join(INPUTS)}")


if __name__ == "__main__":
    main()
