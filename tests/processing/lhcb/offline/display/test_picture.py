"""The small drawing of an event: well-formed, of numbers alone, and small."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.display.picture import HEIGHT, WIDTH, event_picture
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.offline.display.test_event_reader import scene


def test_the_drawing_is_well_formed_and_small() -> None:
    drawing = event_picture(scene())
    tree = ElementTree.fromstring(f"<div>{drawing}</div>")
    assert len(drawing) < 300_000
    assert {element.tag for element in tree.iter()} == {"div", "svg", "text", "path", "rect", "ul", "li"}
    assert not re.search("nan|inf|None", drawing)
    classes = {element.get("class") for element in tree.iter("path")}
    assert {"hits", "velo", "long", "muon", "pv"} <= classes
    titles = [element.get("aria-label") for element in tree.iter("svg") if element.get("aria-label")]
    assert titles == ["VELO and vertices, from the side", "Tracking detectors, from above"]


def test_lines_that_leave_the_frame_or_are_no_numbers_do_no_harm() -> None:
    drawn = scene()
    lost = replace(drawn.tracks[0], line=np.full((3, 3), np.nan))
    far = replace(drawn.tracks[0], line=np.array([[0.0, 0, -1e9], [1e9, 1e9, 1e9]]))
    drawing = event_picture(replace(drawn, tracks=(lost, far), vertices=(), decays=()))
    ElementTree.fromstring(f"<div>{drawing}</div>")
    assert "nan" not in drawing
    assert (WIDTH, HEIGHT) == (620, 300)


def test_the_chain_makes_it_of_raw_banks() -> None:
    trigger = CHAIN.load_trigger(None)
    draw = CHAIN.picture_maker(CHAIN.load_geometry(None), trigger)
    (first, *_) = full_events(3, 5)
    assert draw(first) == draw(first)
    assert draw(first).count("<svg") > 4
