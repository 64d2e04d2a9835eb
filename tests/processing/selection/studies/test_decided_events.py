"""One pass over a sample: decisions of the engine, and of lines that are evaluated on its output."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.lines.inputs.track_fields import velo_tracks
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.expressions.units import mm
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.studies.decided_events import DecidedEvents, DecidingPass
from hltnode.processing.selection.studies.scans import Scan, lines_of

GEOMETRY = VeloGeometry.builtin()
TRIGGER = TriggerConfig.from_toml(
    """
    [[lines]]
    type = "VeloMicroBias"
    name = "Hlt1Tracks"
    min_tracks = 60
    postscale = 0.5
    [[lines]]
    type = "NDisplacedVeloTracks"
    name = "Hlt1Displaced"
    min_tracks = 2
    """,
    CHAIN.menu,
    "velo",
)
FAR = Line("Far", velo_tracks, lambda t: t.has_pv & (t.ip > 1.0 * mm))
SCAN = Scan.read("Hlt1Displaced.min_tracks=1:5:3", TRIGGER)
N_EVENTS = 40


@pytest.fixture(scope="module")
def deciding() -> Iterator[DecidingPass]:
    found = DecidingPass(
        CHAIN,
        TRIGGER,
        create_backend("cpu", CHAIN.kernels, threads=1),
        geometry_constants(GEOMETRY),
        lines=(*TRIGGER.lines, FAR, *lines_of([SCAN])),
    )
    yield found
    found.engine.close()


@pytest.fixture(scope="module")
def decided(deciding: DecidingPass) -> DecidedEvents:
    """One batch."""
    (found,) = deciding.run(simulate_events(N_EVENTS, 3, geometry=GEOMETRY, nu=3.0))
    return found


def test_the_lines_of_the_configuration_decide_behind_the_sequence_as_in_it(decided: DecidedEvents) -> None:
    assert 0 < decided.fired.sum() < decided.fired.size
    np.testing.assert_array_equal(decided.decisions(TRIGGER.lines), decided.fired)


def test_the_configured_value_of_a_scan_decides_as_the_configuration(decided: DecidedEvents) -> None:
    found = decided.decisions(Scan.read("Hlt1Displaced.min_tracks=1,2,3", TRIGGER).lines)
    np.testing.assert_array_equal(found[:, 1], decided.fired[:, 1])
    assert (found[:, 0] >= found[:, 1]).all()
    assert (found[:, 1] >= found[:, 2]).all()
    assert found[:, 0].sum() > found[:, 2].sum()


def test_candidates_are_the_objects_that_a_line_selects(decided: DecidedEvents) -> None:
    found, made_of = decided.candidates(FAR)
    assert found.collection is velo_tracks.collection is made_of.collection
    np.testing.assert_array_equal(np.unique(found.event), np.flatnonzero(decided.decisions([FAR])[:, 0]))
    np.testing.assert_array_equal(found.number, made_of.number)


def test_a_line_that_the_sequence_cannot_run_is_refused() -> None:
    other = CHAIN.load_trigger(None, "forward")
    with pytest.raises(ValueError, match="which sequence velo does not make"):
        DecidingPass(
            CHAIN,
            TriggerConfig(lines=other.lines, sequence="velo"),
            create_backend("cpu", CHAIN.kernels, threads=1),
            geometry_constants(GEOMETRY),
        )


def test_no_events_are_no_batch(deciding: DecidingPass) -> None:
    assert list(deciding.run([])) == []
