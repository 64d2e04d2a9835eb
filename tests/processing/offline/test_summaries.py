"""Summaries of displayed events name one object in the singular."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from hltnode.processing.alice.offline.display.event_reader import SlicePicture
from hltnode.processing.imaging.offline.display.event_reader import COMPONENT, ImagePicture
from hltnode.processing.km3net.offline.display.event_reader import HitPicture as Km3netPicture
from hltnode.processing.lhcb.offline.display.scene import (
    DOWNSTREAM_PART,
    Scene,
    SceneCells,
    SceneHits,
    SceneTrack,
)
from hltnode.processing.mu3e.offline.display.event_reader import HitPicture as Mu3ePicture
from hltnode.processing.na62.offline.display.event_reader import RingPicture
from hltnode.processing.offline.counted import counted
from hltnode.processing.raw.offline.display.event_reader import BankPicture

BANK = np.dtype([("type", "u4"), ("size", "u4")])


def summary_of(kind: Any, **content: Any) -> str:
    """The summary of a picture, which needs only `content`."""
    return str(kind(**{**{each.name: () for each in fields(kind)}, **content}).summary)


def alice(n: int) -> str:
    kinds = ("x", "links", "deleted_links", "seeds", "tracklets", "tracks")
    return summary_of(SlicePicture, **dict.fromkeys(kinds, range(n)), n_clusters=n, n_tracks=n)


def imaging(n: int) -> str:
    components = np.ones(n, COMPONENT)
    components["area"] = n
    return summary_of(ImagePicture, labels=np.zeros((2, 2), np.int32), components=components, n_components=n, bits=n)


def km3net(n: int) -> str:
    return summary_of(Km3netPicture, times=range(n), windows=np.array([[0, 50]]), lines=None)


def mu3e(n: int) -> str:
    of = dict.fromkeys(("times", "vertices", "windows", "true"), range(n))
    return summary_of(Mu3ePicture, **of, lines=())


def mu3e_window(n: int) -> str:
    return summary_of(Mu3ePicture, times=range(n), windows=np.array([[0, 50]]), lines=None)


def na62(n: int) -> str:
    return summary_of(RingPicture, **dict.fromkeys(("pmts", "rings", "true_rings"), range(n)))


def raw(n: int) -> str:
    banks = np.ones(n, BANK)
    banks["type"] = np.arange(n)
    return summary_of(BankPicture, banks=banks)


def lhcb(n: int) -> str:
    hits = SceneHits(points=np.zeros((n, 3)), track=np.full(n, -1), ids=np.zeros(n, np.uint32))
    track = SceneTrack(
        kind=DOWNSTREAM_PART, line=np.zeros((2, 3)), eta=3.0, phi=0.0, hits=(), is_muon=True, is_electron=True
    )
    cells = SceneCells(number=np.zeros(1, np.int64), place=np.zeros((1, 2)), half=np.ones(1), energy=np.ones(1), z=0.0)
    objects = dict.fromkeys(("vertices", "decays", "clusters", "downstream_v0s", "stubs"), range(n))
    return summary_of(Scene, hits={"UT": hits}, tracks=[track] * n, cells=cells, **objects)


@pytest.mark.parametrize(
    ("summary", "of_one", "of_two"),
    [
        (
            alice,
            "1 cluster of 1, 1 link, 1 deleted link, 1 seed, 1 tracklet, 1 track of 1",
            "2 clusters of 2, 2 links, 2 deleted links, 2 seeds, 2 tracklets, 2 tracks of 2",
        ),
        (
            imaging,
            "2 x 2 pixels of 1 bit, 100.0% foreground; 1 component, the largest has 1 pixel",
            "2 x 2 pixels of 2 bits, 100.0% foreground; 2 components, the largest has 2 pixels",
        ),
        (km3net, "1 hit in 50 ns", "2 hits in 50 ns"),
        (
            lhcb,
            "1 UT hit; 1 track (0 long, 1 downstream), 1 muon; 1 primary and 1 secondary vertex, 1 downstream V0; "
            "1 cluster, 1 electron; 1 muon stub",
            "2 UT hits; 2 tracks (0 long, 2 downstream), 2 muons; 2 primary and 2 secondary vertices, "
            "2 downstream V0s; 2 clusters, 2 electrons; 2 muon stubs",
        ),
        (
            mu3e,
            "1 hit, 1 vertex, 1 window; 1 true decay",
            "2 hits, 2 vertices, 2 windows; 2 true decays",
        ),
        (mu3e_window, "1 hit in 50 ns", "2 hits in 50 ns"),
        (na62, "1 hit, 1 ring; 1 true ring", "2 hits, 2 rings; 2 true rings"),
        (
            raw,
            "1 bank of 1 type, 1 byte; the largest has 1 byte",
            "2 banks of 2 types, 2 bytes; the largest has 1 byte",
        ),
    ],
)
def test_a_summary_names_one_object_in_the_singular(summary: Any, of_one: str, of_two: str) -> None:
    assert (summary(1), summary(2)) == (of_one, of_two)


def test_no_object_is_a_plural() -> None:
    assert [counted(n, "vertex", "vertices") for n in (0, 1, 2)] == ["0 vertices", "1 vertex", "2 vertices"]
