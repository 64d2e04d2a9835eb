"""Train the network that tells electrons from other long tracks on simulated events, and report its performance.

    hltnode simulate --sample minbias -n 4000 --seed 401 -o minbias_4000_seed401.mdf
    hltnode simulate --sample minbias -n 2600 --seed 502 -o minbias_2600_seed502.mdf
    python -m tools.train_electrons minbias_4000_seed401.mdf --others minbias_2600_seed502.mdf --seed 1 \
        --force -o processing/lhcb/calorimeter
    python -m tools.train_electrons real.mdf --geometry lhcb-geometry

All events of the first files are for training, those of --others for the test. Without -o all events test the present
network (docs/physics/calorimeter.md).
"""

import argparse
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.result_files import FORCE_HELP, require_new
from hltnode.processing.lhcb.calorimeter.collections import long_in_ecal
from hltnode.processing.lhcb.calorimeter.electron_network import FORM, INPUTS, ElectronNetwork, inputs_of
from hltnode.processing.lhcb.calorimeter.find_electrons import find_electrons
from hltnode.processing.lhcb.calorimeter.identify_electrons import identify_electrons
from hltnode.processing.lhcb.networks.one_hidden_layer import FloatArray
from tools.network_training import Mask, TracksWithTruth, tracks_with_truth, train

MIN_EOP = next(constant.value for constant in find_electrons.constants if constant.name == "min_eop")


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Long tracks with a shower in the calorimeter: inputs f64[n, N_INPUTS]; E/p; whether they belong to an electron or
    to a hadron, the rest are ghosts and muons; number of events."""

    inputs: FloatArray
    eop: FloatArray
    is_electron: Mask
    is_hadron: Mask
    events: int

    @classmethod
    def read(cls, paths: list[Path], geometry: Path | None) -> "Sample":
        """The tracks that hlt1_2026 finds in events with truth."""
        read = (*identify_electrons.reads, long_in_ecal)
        parts = [_of_batch(found) for path in paths for found in tracks_with_truth(path, geometry, "hlt1_2026", read)]
        inputs, eop, electron, hadron, events = zip(*parts, strict=True)
        return cls(
            inputs=np.concatenate(inputs),
            eop=np.concatenate(eop),
            is_electron=np.concatenate(electron),
            is_hadron=np.concatenate(hadron),
            events=sum(events),
        )


def _of_batch(found: TracksWithTruth) -> tuple[FloatArray, FloatArray, Mask, Mask, int]:
    columns = found.columns
    size = np.abs(columns["qop"])
    chosen = (columns["in_ecal"] != 0) & (columns["shower_energy"] > 0) & (size > 0) & (size < 1)
    particle = found.particle[chosen]
    pid, is_long = (np.append(values, 0)[particle] for values in (np.abs(found.particles.pid), found.particles.is_long))
    electron = (pid == 11) & (is_long != 0)
    hadron = (particle >= 0) & (pid != 11) & (pid != 13) & (is_long != 0)
    # An electron that is not long, from a photon behind the VELO, is neither signal nor background.
    kept = electron | (pid != 11)
    inputs = inputs_of({name: column[chosen][kept] for name, column in columns.items()})
    eop = columns["eop"][chosen][kept].astype(np.float64)
    return inputs, eop, electron[kept], hadron[kept], found.particles.n_events


def reached(response: FloatArray, sample: Sample) -> dict[str, Any]:
    """Efficiencies and hadron rates of tracks: of E/p, and of the network at the same hadron rate and efficiency."""
    of_electrons, of_hadrons = response[sample.is_electron], response[sample.is_hadron]
    found, wrong = ((sample.eop[rows] > MIN_EOP).mean() for rows in (sample.is_electron, sample.is_hadron))
    cut = float(np.quantile(of_hadrons, 1.0 - wrong))
    below = np.searchsorted(np.sort(of_hadrons), of_electrons)
    result: dict[str, Any] = {
        "events": sample.events,
        "electrons": len(of_electrons),
        "hadrons": len(of_hadrons),
        "area": float(np.mean(below) / len(of_hadrons)),
        "efficiency of E/p": float(found),
        "hadron rate of E/p": float(wrong),
        "cut at this hadron rate": cut,
        "efficiency there": float((of_electrons > cut).mean()),
        "hadron rate at the efficiency of E/p": float((of_hadrons > np.quantile(of_electrons, 1.0 - found)).mean()),
    }
    return {name: round(value, 4) for name, value in result.items()}


def _equal_classes(is_electron: Mask) -> NDArray[np.float64]:
    """Weights of mean 1 that give electrons and others the same sum."""
    share = is_electron.mean()
    weight: NDArray[np.float64] = np.where(is_electron, 0.5 / share, 0.5 / (1.0 - share))
    return weight


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, nargs="+", help="MDF files with truth")
    parser.add_argument("--others", type=Path, nargs="+", help="MDF files with truth that the training does not see")
    parser.add_argument("--geometry", type=Path, help="folder of geometry files; default: the built-in detector")
    parser.add_argument("--seed", type=int, default=1, help="of the first weights and of the order of tracks")
    parser.add_argument("-o", "--output", type=Path, help=f"folder to write {FORM.file} to")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    arguments = parser.parse_args()
    if arguments.output is None:
        sample = Sample.read(arguments.input, arguments.geometry)
        print(reached(ElectronNetwork.builtin().response(sample.inputs), sample))
        return
    try:
        require_new(arguments.output / FORM.file, force=arguments.force)
    except ValueError as error:
        parser.error(str(error))
    if arguments.others is None:
        parser.error("-o needs --others, events for the test")
    sample, others = (Sample.read(paths, arguments.geometry) for paths in (arguments.input, arguments.others))
    found = train(
        ElectronNetwork, sample.inputs, sample.is_electron, _equal_classes(sample.is_electron), arguments.seed
    )
    result = reached(found.response(others.inputs), others)
    provenance = {
        "made by": f"tools/train_electrons.py of hltnode {version('hltnode')}",
        "sequence": "hlt1_2026",
        "files": [path.name for path in arguments.input],
        "seed": arguments.seed,
        "events": sample.events,
        "tracks": len(sample.inputs),
        "electrons": int(sample.is_electron.sum()),
        "other events": result,
    }
    (arguments.output / FORM.file).write_text(replace(found, provenance=provenance).as_json())
    print("trained on", reached(found.response(sample.inputs), sample))
    print("others", result)
    print(f"{arguments.output / FORM.file} written; inputs: {', '.join(INPUTS)}")


if __name__ == "__main__":
    main()
