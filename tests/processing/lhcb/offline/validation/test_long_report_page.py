"""Mass peaks, curves and tables of long tracks in the HTML report."""

import base64
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from hltnode.processing.lhcb.offline.validation.reports.html_report import checker_page
from tests.processing.lhcb.offline.validation.test_long_checks import (
    checked,
    long_particle,
    pions_of_kaons,
    scifi_ids,
    ut_ids,
    ut_tracks,
    velo_ids,
    vertices,
)


@pytest.mark.usefixtures("without_layout", "two_variables")
def test_the_page_draws_the_fitted_peak_and_the_curves_and_has_the_tables() -> None:
    n = 60
    masses = np.random.default_rng(3).normal(498.0, 3.0, n).tolist()
    numbers = range(100, 100 + 2 * n)
    particles = [
        replace(particle, velo_ids=velo_ids(number), ut_ids=ut_ids(number), scifi_ids=())
        for particle, number in zip(pions_of_kaons(n), numbers, strict=True)
    ]
    particles.append(long_particle(99, velo_ids=(), has_velo=False, is_long=False, scifi_ids=scifi_ids(99)))
    cuts = {"quality": np.linspace(0, 1, 2 * n)}
    tracks = replace(ut_tracks(*numbers), p=np.full(2 * n, 1e4), pt=np.full(2 * n, 1e3), cuts=cuts)
    checker = checked(particles, tracks, vertices([(2 * i, 2 * i + 1) for i in range(n)], masses))
    result = checker.result() | {"histograms": checker.histograms()}
    page = checker_page([("a", result)], "text")
    images = "".join(
        base64.b64decode(data).decode() for data in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    )
    peak = result["vertices"]["masses"]["ks"]
    assert f"fit: {peak['mass']:.2f} ± {peak['mass_error']:.2f} MeV" in images
    assert "497.61 MeV" in images
    assert "quality / largest that its search keeps" in images
    assert "ghost rate [%]" in images
    assert "<h2>Decays to two long tracks</h2>" in page
    assert '<th scope="row">no SciFi part found</th>' in page
    assert '<th scope="row">all but electrons</th>' in page
