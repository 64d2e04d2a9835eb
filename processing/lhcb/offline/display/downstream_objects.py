"""The objects that a sequence finds without the VELO, for the scene of an event: tracks through UT and SciFi, their
vertices, and straight lines in the muon stations."""

from collections.abc import Mapping

import numpy as np

from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.offline.display.lines_of_tracks import Z_END_MUON, Strips, downstream_line, straight
from hltnode.processing.lhcb.offline.display.scene import (
    DOWNSTREAM_PART,
    NO_TRACK,
    SceneDownstreamV0,
    SceneHits,
    SceneStub,
    SceneTrack,
)
from hltnode.processing.lhcb.parametrisation.forms import Z_UT
from hltnode.processing.lhcb.scifi import collections as scifi
from hltnode.processing.lhcb.secondary_vertices.downstream import collections as v0
from hltnode.processing.lhcb.tracks.downstream import collections as downstream
from hltnode.processing.lhcb.tracks.long import collections as long
from hltnode.processing.offline.workspace_columns import Objects

DOWNSTREAM_COLUMNS = (
    *(downstream.downstream_count, downstream.downstream_seed, *downstream.downstream_state.values()),
    *(downstream.downstream_search["chi2"], downstream.downstream_ghost_probability),
    *(downstream.downstream_hits, downstream.downstream_ut_hits),
    *(long.seed_count, *(long.seed_state[name] for name in ("x", "y", "tx", "ty"))),
    *(v0.downstream_v0_count, v0.downstream_v0_tracks, v0.downstream_v0_kind, *v0.downstream_v0_position.values()),
    *(v0.downstream_v0_fit["chi2"], v0.downstream_v0_fit["ip"], v0.downstream_v0_momentum["pt"]),
    *v0.downstream_v0_masses.values(),
)
STUB_COLUMNS = (muon.stub_count, *muon.stub_line.values(), *muon.stub_chi2.values())
Z_STUB_STATE = 15_270.0
"""mm: of the lines of stubs."""
_MASSES = {"ππ": "m_pipi", "pπ": "m_ppi", "ee": "m_ee"}
_KINDS = {
    v0.DownstreamV0Kind.DOWNSTREAM_KS: "K0S candidate",
    v0.DownstreamV0Kind.DOWNSTREAM_LAMBDA: "Λ candidate",
    v0.DownstreamV0Kind.DOWNSTREAM_PHOTON: "photon candidate",
}


def downstream_tracks(
    workspace: Workspace, hits: Mapping[str, SceneHits], strips: Mapping[str, Strips], first_number: int
) -> list[SceneTrack]:
    """The downstream tracks of a batch of one event; they have the numbers from `first_number` on. Their hits in `hits`
    that no long track has get the number and the place of the track."""
    of = Objects(workspace, downstream.downstream_tracks, downstream.downstream_count)
    of_seeds = Objects(workspace, long.scifi_seeds, long.seed_count)
    states = np.stack([of(column).astype(np.float64) for column in downstream.downstream_state.values()], axis=1)
    seeds = np.stack([of_seeds(long.seed_state[name]).astype(np.float64) for name in ("x", "y", "tx", "ty")], axis=1)
    seed_of = of(downstream.downstream_seed).astype(np.int64)
    hits_of = {"UT": of(downstream.downstream_ut_hits), "SciFi": of(downstream.downstream_hits)}
    chi2 = of(downstream.downstream_search["chi2"]).tolist()
    ghost_probability = of(downstream.downstream_ghost_probability).tolist()
    tracks = []
    for i, (x, y, tx, ty, qop) in enumerate(states.tolist()):
        x_seed, y_seed, tx_seed, ty_seed = seeds[seed_of[i]].tolist()
        y_of = {"UT": straight(y, ty, Z_UT), "SciFi": straight(y_seed, ty_seed, long.Z_END_SCIFI)}
        used, points = {}, {}
        for detector, of_tracks in hits_of.items():
            places = of_tracks[i].astype(np.int64)
            places = places[places != scifi.NO_HIT]
            used[detector] = places[np.argsort(strips[detector].z[places])]
            points[detector] = strips[detector].at(used[detector], y_of[detector])
            of_detector = hits[detector]
            free = of_detector.track[used[detector]] == NO_TRACK
            of_detector.points[used[detector][free]] = points[detector][free]
            of_detector.track[used[detector][free]] = first_number + i
        p, slope = 1 / max(abs(qop), 1e-9), max(float(np.hypot(tx, ty)), 1e-9)
        tracks.append(
            SceneTrack(
                kind=DOWNSTREAM_PART,
                line=downstream_line(
                    points["UT"],
                    points["SciFi"],
                    (x, y, tx, ty, Z_UT),
                    (x_seed, y_seed, tx_seed, ty_seed, long.Z_END_SCIFI),
                ),
                eta=float(np.arcsinh(1 / slope)),
                phi=float(np.arctan2(ty, tx)),
                charge=1 if qop > 0 else -1,
                p=p,
                pt=p * slope / float(np.hypot(1, slope)),
                chi2=chi2[i],
                ghost_probability=ghost_probability[i],
                hits=tuple((name, len(places)) for name, places in used.items()),
            )
        )
    return tracks


def downstream_v0s(workspace: Workspace, tracks: list[SceneTrack], first_number: int) -> tuple[SceneDownstreamV0, ...]:
    """The vertices of two of the downstream `tracks` of a batch of one event."""
    of = Objects(workspace, v0.downstream_v0s, v0.downstream_v0_count)
    places = np.stack([of(column).astype(np.float64) for column in v0.downstream_v0_position.values()], axis=1)
    masses = {text: of(v0.downstream_v0_masses[name]).tolist() for text, name in _MASSES.items()}
    kinds = of(v0.downstream_v0_kind).tolist()
    chi2, ip = (of(v0.downstream_v0_fit[name]).tolist() for name in ("chi2", "ip"))
    pt = of(v0.downstream_v0_momentum["pt"]).tolist()
    found = []
    for i, (first, second) in enumerate(of(v0.downstream_v0_tracks).tolist()):
        x, y, z = places[i].tolist()
        found.append(
            SceneDownstreamV0(
                place=(x, y, z),
                tracks=(first_number + first, first_number + second),
                legs=(
                    np.stack([places[i], tracks[first].line[0]]),
                    np.stack([places[i], tracks[second].line[0]]),
                ),
                kinds=tuple(text for bit, text in _KINDS.items() if kinds[i] & bit),
                chi2=chi2[i],
                pt=pt[i],
                ip=ip[i],
                masses=tuple((text, of_hypothesis[i]) for text, of_hypothesis in masses.items()),
            )
        )
    return tuple(found)


def muon_stubs(workspace: Workspace) -> tuple[SceneStub, ...]:
    """The stubs of the muon stations of a batch of one event, from M2 to M5."""
    of = Objects(workspace, muon.muon_stubs, muon.stub_count)
    x, y, tx, ty = (of(column).astype(np.float64) for column in muon.stub_line.values())
    ends = np.array([Z_STUB_STATE, Z_END_MUON])
    lines = np.stack(
        [line[:, None] + slope[:, None] * (ends - Z_STUB_STATE) for line, slope in ((x, tx), (y, ty))]
        + [np.broadcast_to(ends, (len(x), 2))],
        axis=2,
    )
    chi2_x, chi2_y = (of(column).tolist() for column in muon.stub_chi2.values())
    return tuple(
        SceneStub(line=line, chi2_x=of_x, chi2_y=of_y) for line, of_x, of_y in zip(lines, chi2_x, chi2_y, strict=True)
    )
