"""Constants of the detector from a folder of files: all files must belong to the same magnet."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.magnet import DOWN, POLARITY_FILE, UP
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters, ParametersError
from hltnode.processing.lhcb.tracks.long.collections import long_count
from hltnode.processing.lhcb.tracks.long.parameters import LONG_TRACK_PARAMETERS

N_EVENTS = 8
FORWARD = CHAIN.with_sequence("forward")


def folder_of(shared: Path, tmp_path: Path, polarity: float) -> Path:
    """The geometry files of the simulated events with another polarity."""
    folder = tmp_path / f"geometry {polarity:g}"
    shutil.copytree(shared / "data" / "lhcb-geometry", folder)
    folder.chmod(0o755)
    (folder / POLARITY_FILE).chmod(0o644)
    (folder / POLARITY_FILE).write_bytes(np.float32(polarity).tobytes())
    return folder


def long_tracks(folder: Path) -> int:
    """Number of tracks that the forward search finds in simulated events of a detector."""
    detector = Detector.load(folder)
    simulation = FullSimulation(detector, sample_source("minbias", 7.6, detector.velo.beamline))
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels),
        FORWARD.load_geometry(folder),
        CHAIN.load_trigger(None, "forward"),
        BatchLimits(events=N_EVENTS, input_bytes=4 << 20),
    )
    (batch,) = OfflineRunner(engine).run(encode_meps(engine.chain, simulation.events(N_EVENTS, 3), N_EVENTS))
    found = int(batch.workspace.host_array(long_count.name)[:N_EVENTS].sum())
    engine.close()
    return found


@pytest.mark.physics
def test_long_tracks_are_found_with_either_polarity_of_the_magnet(shared: Path, tmp_path: Path) -> None:
    down, up = (long_tracks(folder_of(shared, tmp_path, polarity)) for polarity in (DOWN, UP))
    assert up == pytest.approx(down, rel=0.15)


def test_a_folder_without_parameters_has_the_built_in_ones_with_its_own_polarity(shared: Path, tmp_path: Path) -> None:
    for polarity in (DOWN, UP):
        constants = FORWARD.load_geometry(folder_of(shared, tmp_path, polarity))
        [record] = constants["long_track_parameters"].view(LONG_TRACK_PARAMETERS.dtype)
        assert record["polarity"] == polarity


def test_parameters_of_the_other_polarity_are_refused_by_name(shared: Path, tmp_path: Path) -> None:
    folder = folder_of(shared, tmp_path, UP)
    (folder / PARAMETERS_FILE).write_text(LongTrackParameters.builtin().as_json())
    with pytest.raises(ParametersError, match=f"{PARAMETERS_FILE}: is for the polarity -1 .* polarity.bin is 1"):
        FORWARD.load_geometry(folder)


def test_the_built_in_constants_are_made_once_and_a_folder_is_read_each_time(shared: Path, tmp_path: Path) -> None:
    first, second = (FORWARD.load_geometry(None) for _ in range(2))
    assert all(first[name] is second[name] and not first[name].flags.writeable for name in first)
    folder = folder_of(shared, tmp_path, DOWN)
    down = FORWARD.load_geometry(folder)
    (folder / POLARITY_FILE).write_bytes(np.float32(UP).tobytes())
    up = FORWARD.load_geometry(folder)
    assert {name for name in down if down[name].tobytes() != up[name].tobytes()} >= {
        "ut_tables",
        "long_track_parameters",
    }
    assert all(down[name] is not first[name] for name in down)
