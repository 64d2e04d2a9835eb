"""The rows of the README and of the results page are those of the program, on the seven real events."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.protocol.raw_data.mdf import iter_records
from tests.processing.lhcb.velo.track_sample import DEVELOPMENT_MDF

pytestmark = pytest.mark.physics

ROOT = Path(__file__).resolve().parents[3]
LONG_SEQUENCE = "forward_then_matching"
SEQUENCES = ("forward", "forward_then_matching", "matching", "no_ut")
OF_PAGES = (("README.md", LONG_SEQUENCE), ("docs/physics/looking-forward.md", "looking_forward"))
FRACTION = re.compile(r"(\d+)/(\d+)(?:, ([\d.]+) %)?")


@cache
def result_of(shared: Path, sequence: str) -> dict[str, Any]:
    """The result of hltnode validate on the seven events."""
    chain = CHAIN.with_sequence(sequence)
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels),
        chain.load_geometry(shared / "data/lhcb-geometry"),
        CHAIN.load_trigger(None, sequence),
        BatchLimits(events=32, input_bytes=8 << 20),
        retain=retained(chain.sequence),
    )
    events = [record.banks() for record in iter_records((shared / DEVELOPMENT_MDF).read_bytes())]
    checker = Checker()
    for batch in OfflineRunner(engine).run(encode_meps(chain, events, len(events))):
        check_batch(checker, batch)
    engine.close()
    result: dict[str, Any] = checker.result()
    return result


def published_row(page: str, sequence: str) -> list[str]:
    """The cells of a sequence in the table of long tracks."""
    text = (ROOT / page).read_text()
    [row] = re.findall(rf"^\| `{sequence}` \| (\d+/374.*) \|$", text, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


def check_fraction(cell: str, n: int, of: int) -> None:
    """Compare n/of, and the percentage if the cell has one."""
    found = FRACTION.match(cell)
    assert found is not None, cell
    assert (int(found[1]), int(found[2])) == (n, of)
    if found[3] is not None:
        assert found[3] == f"{100 * n / of:.1f}"


@pytest.mark.parametrize(
    ("page", "sequence"),
    [
        *OF_PAGES,
        *((page, sequence) for page in ("docs/results.md", "docs/physics/long-tracks.md") for sequence in SEQUENCES),
    ],
)
def test_the_published_row_of_a_sequence_is_what_the_program_finds(shared: Path, page: str, sequence: str) -> None:
    result = result_of(shared, sequence)
    long, high, high_pt, ghosts = published_row(page, sequence)
    for cell, name in ((long, "long"), (high, "long_p5"), (high_pt, "long_p5_pt1")):
        category = result["long"]["categories"][name]
        check_fraction(cell, category["reconstructed"], category["reconstructible"])
    counts = result["lines"]["long"]
    check_fraction(ghosts, counts["ghosts"], counts["tracks"])


def test_the_published_velo_tracks_vertices_and_momenta_are_what_the_program_finds(shared: Path) -> None:
    result = result_of(shared, "forward_then_matching")
    text = " ".join((ROOT / "docs/results.md").read_text().split())
    velo, pv = result["velo"]["categories"]["long"], result["pv"]
    assert f"{velo['reconstructed']} of {velo['reconstructible']} long particles are found in the VELO" in text
    assert f"{pv['reconstructed']} of {pv['reconstructible']} primary vertices, none of them false" in text
    assert pv["false_rate"] == 0.0
    momentum = result["momentum"]
    assert f"resolution of `forward_then_matching` is {100 * momentum['core_resolution']:.2f} %" in text
    assert f"Its median is {100 * momentum['bias']:+.2f} %" in text
    pull = result["resolution"]["long"]["pull_qop"]
    assert f"The pull of q/p has the median {pull['median']:+.2f} and the width {pull['width']:.2f}" in text


def test_forward_then_matching_finds_the_long_particles_of_the_real_events(shared: Path) -> None:
    result = result_of(shared, LONG_SEQUENCE)
    categories = result["long"]["categories"]
    for name, n, least in (("long", 374, 320), ("long_p5", 244, 230), ("long_p5_pt1", 50, 48)):
        assert categories[name]["reconstructible"] == n
        assert categories[name]["reconstructed"] >= least
    counts = result["lines"]["long"]
    assert counts["tracks"] >= 380
    assert counts["ghosts"] <= 16


def test_the_momenta_of_the_real_events_are_no_worse_than_stated(shared: Path) -> None:
    """Their scale is a known fault (docs/physics/long-kalman-filter.md): neither it nor the resolution may grow."""
    momentum = result_of(shared, LONG_SEQUENCE)["momentum"]
    assert abs(momentum["bias"]) < 0.0025
    assert momentum["core_resolution"] < 0.0045
