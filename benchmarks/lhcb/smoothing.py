"""The smoother of long tracks: its form for the CPU against the common kernel, and the use of lanes by schedule.

The kernels run in turn on the seven real events, in the sequence `smoothed_tracks`. The use of lanes is counted: hits
of the tracks of an event, divided by the places in all rows of its schedule. Three schedules are compared for vectors
of 4, 8 and 16 lanes. "static schedule": tracks with most hits first, each lane takes the next track when its own ends.
"sorted groups": one track in each lane, tracks with about equal numbers of hits together. "groups": the same, in the
order of the tracks.
"""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.tracks.kalman.lists import SMOOTHED_STATES
from hltnode.processing.lhcb.tracks.kalman.smooth_velo import smooth_velo

SEQUENCE = "smoothed_tracks"
LIMITS = BatchLimits(events=63, input_bytes=16 << 20)
COPIES = 9
TURNS = 9
WIDTHS = (4, 8, 16)


def run(shared: Path) -> Iterator[Result]:
    """Medians over the turns; then the use of lanes."""
    mep = encode_mep(CHAIN.with_sequence(SEQUENCE), real_events(shared) * COPIES, encoding="retina")
    common, form = (
        ProfiledSequence(SEQUENCE, geometry_folder(shared), LIMITS, common=common) for common in (True, False)
    )
    of_common, of_form = [], []
    for _ in range(TURNS + 1):
        of_common.append(common.microseconds_per_kernel([mep])[smooth_velo.name])
        of_form.append(form.microseconds_per_kernel([mep])[smooth_velo.name])
    # The first turn is the warm-up.
    ratio = statistics.median(one / other for one, other in zip(of_common[1:], of_form[1:], strict=True))
    yield Result(f"{smooth_velo.name}, common kernel", statistics.median(of_common[1:]), "us/event", "", None)
    yield Result("  form for the CPU", statistics.median(of_form[1:]), "us/event", "common kernel, in turn", ratio, 2.0)
    events = hits_of_tracks(form, mep)
    yield Result("  hits of long tracks", float(np.mean([sum(hits) for hits in events])), "of an event", "", None)
    for width in WIDTHS:
        for name, rows_of in SCHEDULES.items():
            used = sum(sum(hits) for hits in events) / sum(width * rows_of(hits, width) for hits in events)
            yield Result(f"  {width} lanes, {name}", 100 * used, "% of lanes", "", None)


def hits_of_tracks(sequence: ProfiledSequence, mep: EncodedMep) -> list[list[int]]:
    """Number of VELO hits of each long track, for each event of the MEP."""
    (batch,) = sequence.runner.run([mep])
    states = batch.workspace.output.lists[SMOOTHED_STATES.name]
    return [np.bincount(tracks).tolist() for tracks in list(states.of_events("state_track"))[: batch.meps[0].n_events]]


def static_rows(hits: Sequence[int], width: int) -> int:
    """Rows of the static schedule."""
    ends = [0] * width
    for n in sorted(hits, reverse=True):
        ends[ends.index(min(ends))] += n
    return max(ends)


def group_rows(hits: Sequence[int], width: int) -> int:
    """Rows of groups of tracks in the given order: those of the longest track of each group."""
    return sum(max(hits[first : first + width]) for first in range(0, len(hits), width))


def sorted_group_rows(hits: Sequence[int], width: int) -> int:
    """Rows of groups of tracks with about equal numbers of hits."""
    return group_rows(sorted(hits, reverse=True), width)


SCHEDULES = {"static schedule": static_rows, "sorted groups": sorted_group_rows, "groups": group_rows}
