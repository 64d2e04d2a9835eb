"""Train the network that tells muons from other long tracks on simulated events, and report its performance.

    hltnode simulate --sample bjpsik -n 2000 --seed 601 -o bjpsik_2000_seed601.mdf
    hltnode simulate --sample bjpsik -n 3000 --seed 603 -o bjpsik_3000_seed603.mdf
    hltnode simulate --sample bjpsik -n 1500 --seed 702 -o bjpsik_1500_seed702.mdf
    python -m tools.train_muons bjpsik_2000_seed601.mdf bjpsik_3000_seed603.mdf \
        --others bjpsik_1500_seed702.mdf --seed 1 --force -o processing/lhcb/muon
    python -m tools.train_muons bjpsik_1500_seed702.mdf --trees muon_catboost_model.json

All events of the first files are for training, those of --others for the test. Without -o all events test the present
network, and with --trees also the trees of a file (docs/physics/muon.md).
"""

import argparse
import json
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.result_files import FORCE_HELP, require_new
from hltnode.processing.lhcb.muon.collections import NO_HIT, long_is_muon
from hltnode.processing.lhcb.muon.identify_tracks import identify_tracks
from hltnode.processing.lhcb.muon.muon_network import FORM, INPUTS, MuonNetwork, inputs_of
from hltnode.processing.lhcb.networks.one_hidden_layer import FloatArray
from hltnode.processing.selection.models.model_file import read_model
from tools.network_training import Mask, TracksWithTruth, tracks_with_truth, train

EFFICIENCIES = (0.95, 0.9, 0.8, 0.7, 0.5)
"""Of muons with hits in their fields of interest: misidentification is reported at these."""
MUON = 13


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Long tracks with hits in their fields of interest: `inputs` f64[n, N_INPUTS], `features` f32[n, 20] of trees,
    `chi2`, whether isMuon holds, whether they are true muons or other particles (the rest are ghosts); the numbers of
    all long tracks of muons and of other particles; number of events."""

    inputs: FloatArray
    features: NDArray[np.float32]
    chi2: FloatArray
    is_muon: Mask
    muon: Mask
    other: Mask
    all_muons: int
    all_others: int
    events: int

    @classmethod
    def read(cls, paths: list[Path], geometry: Path | None) -> "Sample":
        """The tracks that hlt1_2026 finds in events with truth."""
        read = (*identify_tracks.reads, long_is_muon)
        parts = [_of_batch(found) for path in paths for found in tracks_with_truth(path, geometry, "hlt1_2026", read)]
        inputs, features, chi2, is_muon, muon, other, muons, others, events = zip(*parts, strict=True)
        return cls(
            inputs=np.concatenate(inputs),
            features=np.concatenate(features),
            chi2=np.concatenate(chi2),
            is_muon=np.concatenate(is_muon),
            muon=np.concatenate(muon),
            other=np.concatenate(other),
            all_muons=sum(muons),
            all_others=sum(others),
            events=sum(events),
        )


def _of_batch(
    found: TracksWithTruth,
) -> tuple[FloatArray, NDArray[np.float32], FloatArray, Mask, Mask, Mask, int, int, int]:
    columns = found.columns
    pid = np.append(np.abs(found.particles.pid), 0)[found.particle]
    muon, other = pid == MUON, (found.particle >= 0) & (pid != MUON)
    chosen = columns["muon_hits"][:, 0] != NO_HIT
    of_chosen = {name: column[chosen] for name, column in columns.items()}
    return (
        inputs_of(of_chosen),
        of_chosen["muon_features"],
        of_chosen["muon_chi2"].astype(np.float64),
        of_chosen["is_muon"] != 0,
        muon[chosen],
        other[chosen],
        int(muon.sum()),
        int(other.sum()),
        found.particles.n_events,
    )


def reached(scores: dict[str, FloatArray], sample: Sample) -> dict[str, Any]:
    """Efficiencies and misidentification among all long tracks of particles: of hits in the fields, of isMuon with its
    chi2; misidentification of each score at the efficiency of the latter, its ratio to that of isMuon, and at other
    efficiencies among muons with hits."""
    muon, other = sample.muon, sample.other
    found, wrong = int((sample.is_muon & muon).sum()), int((sample.is_muon & other).sum())
    result: dict[str, Any] = {
        "events": sample.events,
        "muons": sample.all_muons,
        "others": sample.all_others,
        "efficiency of hits": round(float(muon.sum() / sample.all_muons), 4),
        "misidentification of hits": round(float(other.sum() / sample.all_others), 5),
        "efficiency of isMuon and chi2": round(found / sample.all_muons, 4),
        "misidentification of isMuon and chi2": round(wrong / sample.all_others, 5),
    }
    for name, score in scores.items():
        ranked = np.sort(score[muon])[::-1]
        n = int((score[other] >= ranked[found - 1]).sum())
        result[f"{name} at this efficiency"] = {
            "cut": round(float(ranked[found - 1]), 4),
            "misidentification": round(n / sample.all_others, 5),
            "ratio": round(n / wrong, 3),
        }
        cuts = [ranked[min(int(np.ceil(part * len(ranked))), len(ranked)) - 1] for part in EFFICIENCIES]
        result[f"misidentification of {name}"] = {
            str(part): round(float((score[other] >= cut).sum() / sample.all_others), 5)
            for part, cut in zip(EFFICIENCIES, cuts, strict=True)
        }
    return result


def scores_of(network: MuonNetwork, sample: Sample, trees: Path | None) -> dict[str, FloatArray]:
    """Larger for muons: minus the chi2, the response of the network, and that of trees where there are some."""
    scores = {"chi2": -sample.chi2, "network": network.response(sample.inputs)}
    if trees is not None:
        scores["trees"] = read_model(trees).trees.sums(list(sample.features.T)).astype(np.float64)
    return scores


def _equal_classes(is_muon: Mask) -> NDArray[np.float64]:
    """Weights of mean 1 that give muons and others the same sum."""
    share = is_muon.mean()
    weight: NDArray[np.float64] = np.where(is_muon, 0.5 / share, 0.5 / (1.0 - share))
    return weight


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, nargs="+", help="MDF files with truth")
    parser.add_argument("--others", type=Path, nargs="+", help="MDF files with truth that the training does not see")
    parser.add_argument("--geometry", type=Path, help="folder of geometry files; default: the built-in detector")
    parser.add_argument("--trees", type=Path, help="file of a tree model to compare with")
    parser.add_argument("--seed", type=int, default=1, help="of the first weights and of the order of tracks")
    parser.add_argument("-o", "--output", type=Path, help=f"folder to write {FORM.file} to")
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    arguments = parser.parse_args()
    if arguments.output is None:
        sample = Sample.read(arguments.input, arguments.geometry)
        print(json.dumps(reached(scores_of(MuonNetwork.builtin(), sample, arguments.trees), sample), indent=1))
        return
    try:
        require_new(arguments.output / FORM.file, force=arguments.force)
    except ValueError as error:
        parser.error(str(error))
    if arguments.others is None:
        parser.error("-o needs --others, events for the test")
    sample, others = (Sample.read(paths, arguments.geometry) for paths in (arguments.input, arguments.others))
    found = train(MuonNetwork, sample.inputs, sample.muon, _equal_classes(sample.muon), arguments.seed)
    result = reached(scores_of(found, others, None), others)
    provenance = {
        "made by": f"tools/train_muons.py of hltnode {version('hltnode')}",
        "sequence": "hlt1_2026",
        "files": [path.name for path in arguments.input],
        "seed": arguments.seed,
        "events": sample.events,
        "tracks": len(sample.inputs),
        "muons": int(sample.muon.sum()),
        "other events": result,
    }
    (arguments.output / FORM.file).write_text(replace(found, provenance=provenance).as_json())
    print("trained on", json.dumps(reached(scores_of(found, sample, arguments.trees), sample), indent=1))
    print("others", json.dumps(reached(scores_of(found, others, arguments.trees), others), indent=1))
    print(f"{arguments.output / FORM.file} written; inputs: {', '.join(INPUTS)}")


if __name__ == "__main__":
    main()
