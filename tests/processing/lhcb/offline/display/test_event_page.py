"""The page of an event: complete, self-contained, and safe against markup in its strings."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.display.html_page import event_page
from hltnode.processing.offline.particles.names import particle_name
from tests.chromium import needs_chromium, page_after_scripts, picture
from tests.processing.lhcb.offline.display.test_event_reader import (
    scene,
    scene_of_downstream_tracks,
    scene_with_calorimeter,
)

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\"'&<!--"


class Page(HTMLParser):
    """Counts elements, and keeps the text of scripts and list items."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.items: list[str] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        if self._open and self._open[-1] == "li":
            self.items.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass


def content_of(page: str) -> Any:
    return json.loads(Page(page).scripts[0])


def test_the_page_has_every_object_of_the_scene() -> None:
    drawn = scene()
    content = content_of(event_page(drawn, source="minbias.mdf"))
    assert len(content["tracks"]) == len(drawn.tracks)
    assert len(content["vertices"]) == len(drawn.vertices)
    assert len(content["particles"]) == len(drawn.particles)
    for name, hits in drawn.hits.items():
        assert len(content["hits"][name]["id"]) == len(hits.ids)
        x = np.array(content["hits"][name]["x"])
        assert np.abs(x - hits.points[:, 0]).max() <= 0.0051


def test_the_page_has_cells_and_clusters_of_the_calorimeter() -> None:
    drawn = scene_with_calorimeter()
    content = content_of(event_page(drawn, source="minbias.mdf"))
    assert content["cells"]["number"] == drawn.cells.number.tolist()
    assert np.abs(np.array(content["cells"]["energy"]) - drawn.cells.energy).max() <= 0.51
    assert [cluster["et"] for cluster in content["clusters"]] == pytest.approx([it.et for it in drawn.clusters], 1e-4)
    assert any(track["electron"] for track in content["tracks"])


def test_the_page_has_downstream_tracks_v0s_and_stubs(shared: Path) -> None:
    drawn = scene_of_downstream_tracks(shared)
    content = content_of(event_page(drawn, source="minbias.mdf"))
    kinds = [track["kind"] for track in content["tracks"]]
    assert kinds.count("downstream") == sum(track.kind == "downstream" for track in drawn.tracks) > 0
    assert [v0["tracks"] for v0 in content["downstream_v0s"]] == [list(it.tracks) for it in drawn.downstream_v0s]
    assert len(content["stubs"]) == len(drawn.stubs) > 0
    assert [len(leg) for v0 in content["downstream_v0s"] for leg in v0["legs"]] == [6] * 2 * len(drawn.downstream_v0s)


def test_the_page_of_a_dense_event_is_small_and_needs_nothing_else() -> None:
    page = event_page(scene(), source="minbias.mdf")
    assert len(page) < 3_000_000
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:|//)""", page)
    assert all(tag not in ("link", "iframe", "object") for tag, _ in Page(page).elements)


def test_names_from_outside_are_text() -> None:
    ordinary = Page(
        event_page(replace(scene(), lines=("Hlt1Line",), flags=("BANK_ERROR",)), source="a.mdf", n_lines=45)
    )
    hostile = event_page(replace(scene(), lines=(HOSTILE,), flags=(HOSTILE,)), source=HOSTILE)
    parsed = Page(hostile)
    assert [tag for tag, _ in parsed.elements] == [tag for tag, _ in ordinary.elements]
    assert parsed.items == [HOSTILE]
    assert "<img src=x" not in hostile


def test_names_in_the_data_cannot_end_the_element_that_holds_them() -> None:
    drawn = scene()
    decay = replace(drawn.decays[0], kinds=(HOSTILE,)) if drawn.decays else None
    drawn = replace(
        drawn, decays=() if decay is None else (decay,), tracks=(replace(drawn.tracks[0], hits=((HOSTILE, 3),)),)
    )
    page = event_page(drawn, source="a.mdf")
    assert content_of(page)["tracks"][0]["hits"] == [[HOSTILE, 3]]
    assert len(Page(page).scripts) == 2


def test_what_is_no_number_is_null_and_not_a_script_error() -> None:
    drawn = scene()
    broken = replace(drawn.tracks[0], p=float("inf"), ip=float("nan"), line=np.full((2, 3), np.nan))
    track = content_of(event_page(replace(drawn, tracks=(broken,)), source="a.mdf"))["tracks"][0]
    assert (track["p"], track["ip"], track["line"]) == (None, None, [None] * 6)


def test_particles_have_their_names() -> None:
    assert [particle_name(pid) for pid in (211, -211, 11, -11, 531, 9_999_999)] == [
        "π⁺",
        "π⁻",
        "e⁻",
        "e⁺",
        "Bs⁰",
        "PDG 9999999",
    ]


RECORDER = """<script>
globalThis.texts = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const half = this.measureText(text).width / 2;
  if (this.textAlign === "center") texts.push([text, x - half, x + half, y, this.canvas.clientWidth]);
  return write.call(this, text, x, y);
};
</script>"""


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_all_parts_of_the_detector_are_named_side_by_side(tmp_path: Path, width: int) -> None:
    page = tmp_path / "event.html"
    frame = tmp_path / "frame.html"
    page.write_text(event_page(scene(), source="a.mdf").replace("<head>", f"<head>{RECORDER}", 1))
    # A window of Chromium without a screen is not narrower than 500 px; a frame is.
    frame.write_text(f"""<iframe src="event.html" style="width:{width}px;height:1000px"></iframe><script>
const texts = () => document.querySelector("iframe").contentWindow.texts ?? [];
setInterval(() => {{ document.title = JSON.stringify(texts()); }}, 100);</script>""")
    parts = ("VELO", "UT", "magnet", "SciFi", "ECAL", "M2", "M3", "M4", "M5")
    drawn: list[tuple[str, float, float, float, float]] = []
    # On a busy machine, virtual time may end before the frame is drawn.
    for milliseconds in (3_000, 30_000, 300_000):
        document = page_after_scripts(
            tmp_path / "profile", frame.as_uri(), "--allow-file-access-from-files", milliseconds=milliseconds
        )
        found = re.search(r"<title>(.*)</title>", document)
        if found is not None and (drawn := [text for text in json.loads(found[1]) if text[0] in parts]):
            break
    # Two projections have the axis along the beam.
    assert sorted(text[0] for text in drawn[-2 * len(parts) :]) == sorted(parts * 2)
    for names in (drawn[-2 * len(parts) : -len(parts)], drawn[-len(parts) :]):
        for i, (name, left, right, y, wide) in enumerate(names):
            assert 0 <= left < right <= wide, name
            assert all(right < others[1] for others in names[i + 1 :] if others[3] == y), name


@pytest.mark.slow
@needs_chromium
def test_a_browser_draws_the_event(tmp_path: Path) -> None:
    page = tmp_path / "event.html"
    page.write_text(event_page(replace(scene(), lines=(HOSTILE,)), source=HOSTILE))
    document = page_after_scripts(tmp_path / "profile", page.as_uri())
    assert "<title>LHCb run 1" in document
    # The script has run to its end: the buttons come last.
    assert document.count("<label") == 17
    assert 'aria-pressed="true"' in document
    plain = picture(tmp_path / "profile", page.as_uri(), tmp_path / "light.png")
    dark = picture(tmp_path / "profile", page.as_uri(), tmp_path / "dark.png", dark=True)
    assert len(plain) > 60_000
    assert plain != dark
