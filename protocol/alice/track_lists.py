"""The tracks of accepted events: the output lists `tracks` and `track_clusters` (docs/formats/tpc-clusters.md)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hltnode.protocol.errors import RejectReason, ReportError

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRACKS, TRACK_CLUSTERS = "tracks", "track_clusters"


def clusters_of_tracks(lists: Mapping[str, Mapping[str, "NDArray[Any]"]]) -> list["NDArray[Any]"]:
    """The clusters of each track, u32 numbers in the event, rows upwards; banks count in the order of their sources.

    lists: those of an event (protocol/raw_data/list_banks.py, `event.lists`). Raises ReportError for a list that is
    missing, and where the tracks have another number of clusters than the list of clusters.
    """
    import numpy as np

    for name, value in ((TRACKS, "n_clusters"), (TRACK_CLUSTERS, "cluster")):
        if value not in lists.get(name, {}):
            raise ReportError(RejectReason.MALFORMED, f"the event has no list {name} with {value}")
    sizes, clusters = lists[TRACKS]["n_clusters"].astype(np.int64), lists[TRACK_CLUSTERS]["cluster"]
    if sizes.sum() != len(clusters):
        raise ReportError(
            RejectReason.BAD_SIZE, f"{len(sizes)} tracks have {sizes.sum()} clusters, the list has {len(clusters)}"
        )
    return np.split(clusters, np.cumsum(sizes)[:-1]) if len(sizes) else []
