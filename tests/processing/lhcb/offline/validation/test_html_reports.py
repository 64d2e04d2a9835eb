"""The HTML reports: complete, self-contained, with every plot."""

import base64
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackStates, TrackTable
from hltnode.processing.lhcb.offline.validation.likeness import SampleSummary
from hltnode.processing.lhcb.offline.validation.reports.html_report import checker_page
from hltnode.processing.offline.likeness.comparison import compare
from hltnode.processing.offline.likeness.page import likeness_page
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import decode_particles, decode_vertices
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.offline.validation.test_likeness import summary_of

Events = list[list[RawBank]]


@pytest.fixture(scope="module")
def events() -> Events:
    return list(simulate_events(4, 3, geometry=VeloGeometry.builtin(), nu=4.0))


def checked(events: Events, keep: float) -> dict[str, Any]:
    """The result of a reconstruction that finds some of the true tracks, with momentum and state."""
    rng = np.random.default_rng(1)
    checker = Checker()
    for banks in events:
        particles = decode_particles(banks)
        chosen = [p for p in particles if p.has_velo and rng.random() < keep]
        tracks = TrackTable.of_events([[np.array(p.velo_ids, dtype=np.uint32) for p in chosen]])
        columns: dict[str, Any] = {
            name: np.array([getattr(p, name) for p in chosen]) for name in ("p", "pt", "eta", "phi")
        }
        n = len(chosen)
        states = TrackStates(*rng.normal(0, 0.02, (5, n)), *np.full((6, n), 1e-4))
        tracks = TrackTable(tracks.event, tracks.ids, tracks.n_ids, **columns, states=states)
        vertices = decode_vertices(next(bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES))
        pvs = np.array([(v.x, v.y, v.z + 0.01, 1e-4, 1e-4, 1e-2) for v in vertices if v.n_tracks >= 4], np.float32)
        checker.add(
            ParticleTable.of_particles([particles]),
            {Stage.VELO: tracks, Stage.LONG: tracks},
            [pvs.reshape(-1, 6)],
            [vertices],
        )
    return checker.result() | {"histograms": checker.histograms()}


def images_of(page: str) -> list[str]:
    """The SVGs of a page, which must be well formed and self-contained."""
    parser = HTMLParser()
    parser.feed(page)
    parser.close()
    assert "http" not in re.sub(r'src="data:[^"]*"', "", page)
    return [base64.b64decode(data).decode() for data in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)]


@pytest.mark.usefixtures("without_layout")
def test_the_report_of_the_checker_has_every_plot_with_axes_and_units(events: Events) -> None:
    page = checker_page([("a <b>", checked(events, 0.9))], "velo_validator <1>")
    images = images_of(page)
    assert len(images) == 2 * (5 + 2 + 2) + 4
    assert all("<svg" in image for image in images)
    everything = "".join(images)
    for label in (
        "[GeV]",
        "efficiency",
        "ghost rate",
        "clone rate",
        "hit purity",
        "number of primary vertices",
        "[µm]",
    ):
        assert label in everything
    assert "velo_validator &lt;1&gt;" in page
    assert "a &lt;b&gt;" in page
    assert "Wilson" in page


SCRIPT = "<script>alert('a' + \"b\")</script>"


def tags_of(page: str) -> list[str]:
    found: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            found.append(tag)

    Tags().feed(page)
    return found


def test_markup_in_the_names_and_texts_of_the_checker_is_escaped(events: Events) -> None:
    result = checked(events, 0.9)
    result["histograms"] |= {"stages": {}, "residuals": {}}
    page = checker_page([(SCRIPT, result), ("</title><img onerror=x>", result)], f"</pre>{SCRIPT}")
    assert tags_of(page).count("script") == 1, "the script of the page itself"
    assert SCRIPT not in page
    assert "&lt;script&gt;alert(&#39;a&#39; + &#34;b&#34;)&lt;/script&gt;" in page
    assert "<img onerror" not in page
    assert "</pre><script>" not in page


def with_stages(result: dict[str, Any], *stages: str) -> dict[str, Any]:
    """The result with the histograms of these stages and their residuals only: plots take time."""
    histograms = dict(result["histograms"])
    histograms["stages"] = {name: histograms["stages"][name] for name in stages}
    kept = {*stages, "pv"} & set(histograms["residuals"])
    histograms["residuals"] = {name: histograms["residuals"][name] for name in kept}
    return {**result, "histograms": histograms}


@pytest.mark.usefixtures("two_variables")
def test_two_results_are_overlaid_and_compared_in_a_table(events: Events) -> None:
    first, second = (with_stages(checked(events, efficiency), "long") for efficiency in (0.95, 0.8))
    page = checker_page([("new", first), ("old", second)], "text")
    assert "Comparison" in page
    efficiency = images_of(page)[0]
    assert "long, new" in efficiency
    assert "long, old" in efficiency


@pytest.mark.usefixtures("without_layout", "two_variables")
def test_a_result_may_lack_what_the_other_has(events: Events) -> None:
    first, second = (with_stages(checked(events, efficiency), "velo", "long") for efficiency in (0.95, 0.8))
    del second["histograms"]["stages"]["long"], second["long"]
    del second["histograms"]["residuals"]["pv"], second["histograms"]["residuals"]["velo"]
    second["pv"] = None
    assert images_of(checker_page([("new", first), ("old", second)], "text"))


@pytest.mark.usefixtures("without_layout")
def test_the_likeness_report_names_what_differs_and_what_is_missing(events: Events) -> None:
    geometry = Detector.builtin()
    real, simulated = SampleSummary(geometry), SampleSummary(geometry)
    for banks in events:
        simulated.add_event(banks)
    for banks in simulate_events(6, 4, geometry=VeloGeometry.builtin(), nu=8.0, velo_banks="superpixel"):
        real.add_event(banks)
    compared = compare(real, simulated)
    page = likeness_page(("real.mdf", "sim<1>.mdf"), real, simulated, compared)
    assert "differ by more than 15&nbsp;%</p>" in page
    assert 'class="differs"' in page
    assert "Only in real.mdf: " in page
    assert "sim&lt;1&gt;.mdf" in page
    images = "".join(images_of(page))
    assert images.count("D = ") == sum(pair.distance is not None for pair in compared)


def test_markup_in_the_names_of_the_samples_is_escaped() -> None:
    real, simulated = summary_of(ut_layer=[2]), summary_of(ut_layer=[2])
    page = likeness_page((SCRIPT, "</title><img onerror=x>"), real, simulated, compare(real, simulated))
    assert tags_of(page).count("script") == 1, "the script of the page itself"
    assert "&lt;script&gt;" in page
    assert "<img onerror" not in page


def test_the_likeness_report_names_layers_and_regions_and_has_whole_ticks_for_whole_numbers() -> None:
    real, simulated = (
        summary_of(muon_region=[0, 0, 15], ut_layer=[2], retina_banks_per_event=[208, 208]) for _ in range(2)
    )
    images = "".join(images_of(likeness_page(("a", "b"), real, simulated, compare(real, simulated))))
    for text in ("M2R1", "M5R4", "UTbV", "D = 0.000", "208"):
        assert f">{text}" in images
    assert "207.6" not in images
