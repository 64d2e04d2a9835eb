"""Train the network of the ghost probability on simulated events, and report its performance on others.

    hltnode simulate --sample minbias -n 2500 --seed 21 -o minbias.mdf
    hltnode simulate --sample bsphiphi -n 600 --seed 32 -o bsphiphi.mdf
    python -m tools.train_ghost_network minbias.mdf bsphiphi.mdf --force -o processing/lhcb/tracks/kalman
    python -m tools.train_ghost_network real.mdf --geometry lhcb-geometry

Of every three events, two are for training and one for the test. Without -o all events test the present network
(docs/physics/ghost-probability.md).
"""

import argparse
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.result_files import FORCE_HELP, require_new
from hltnode.processing.lhcb.networks.one_hidden_layer import FloatArray
from hltnode.processing.lhcb.tracks.kalman.ghost_network import FORM, INPUTS, GhostNetwork, inputs_of
from hltnode.processing.lhcb.tracks.kalman.ghost_probability import ghost_probability
from tools.network_training import Mask, tracks_with_truth, train

TRAINED_OF_THREE = 2


class Sample:
    """Long tracks: inputs f64[n, N_INPUTS]; whether no particle matches; whether it belongs to a particle to find
    (long, no electron); event i64[n]."""

    def __init__(self, parts: list[tuple[FloatArray, Mask, Mask, NDArray[np.int64]]]) -> None:
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        self.inputs, self.is_ghost, self.is_wanted, self.event = columns

    @classmethod
    def read(cls, path: Path, geometry: Path | None) -> "Sample":
        """The tracks that the configured sequence finds in events with truth."""
        parts = []
        for found in tracks_with_truth(path, geometry, "forward_then_matching", ghost_probability.reads):
            is_ghost = found.particle < 0
            is_wanted = np.zeros(len(is_ghost), dtype=bool)
            is_long = found.particles.is_long & ~found.particles.is_electron
            is_wanted[~is_ghost] = is_long[found.particle[~is_ghost]]
            parts.append((inputs_of(found.columns), is_ghost, is_wanted, found.event))
        return cls(parts)


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
    parser.add_argument("-o", "--output", type=Path, help=f"folder to write {FORM.file} to")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    arguments = parser.parse_args()
    if arguments.output is not None:
        try:
            require_new(arguments.output / FORM.file, force=arguments.force)
        except ValueError as error:
            parser.error(str(error))
    samples = {path.name: Sample.read(path, arguments.geometry) for path in arguments.input}
    if arguments.output is None:
        network = GhostNetwork.builtin()
        for name, sample in samples.items():
            print(name, reached(network.response(sample.inputs), sample, np.ones(len(sample.event), dtype=bool)))
        return
    trained = {name: sample.event % 3 < TRAINED_OF_THREE for name, sample in samples.items()}
    inputs = np.concatenate([sample.inputs[trained[name]] for name, sample in samples.items()])
    is_ghost = np.concatenate([sample.is_ghost[trained[name]] for name, sample in samples.items()])
    found = train(GhostNetwork, inputs, is_ghost)
    results = {name: reached(found.response(sample.inputs), sample, ~trained[name]) for name, sample in samples.items()}
    provenance = {
        "made by": f"tools/train_ghost_network.py of hltnode {version('hltnode')}",
        "sequence": "forward_then_matching",
        "tracks": len(inputs),
        "ghosts": int(is_ghost.sum()),
        "other events": results,
    }
    network = replace(found, provenance=provenance)
    (arguments.output / FORM.file).write_text(network.as_json())
    for name, result in results.items():
        print(name, result)
    print(f"{arguments.output / FORM.file} written; inputs: {', '.join(INPUTS)}")


if __name__ == "__main__":
    main()
