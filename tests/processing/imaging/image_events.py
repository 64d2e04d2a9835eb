"""Events of images for the chain `ccl`, and what the chain finds in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.histograms import HistogramContent, contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.display.event_reader import label_image
from hltnode.processing.imaging.strips import encode_image
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.raw_bank import RawBank

SUMS = ("sum_x", "sum_y", "intensity", "weighted_x", "weighted_y")
COLUMNS = (
    "events.number",
    "images.shape",
    "image_rows.offset",
    "image_rows.count",
    "image_rows.runs",
    "runs.offset",
    "runs.count",
    "runs.span",
    "runs.label",
    "components.offset",
    "components.count",
    "all_components.count",
    "components.area",
    "components.box",
    *(f"components.{name}" for name in SUMS),
    "events.flags",
)
FEATURES = np.dtype([(name, "u8") for name in ("area", "left", "top", "right", "bottom", *SUMS)])


@dataclass(frozen=True, slots=True)
class Labelled:
    """What the chain found in one event.

    labels: i32[rows, width], -1 for background. features: records of FEATURES of the components that have any.
    """

    labels: NDArray[np.int32]
    features: NDArray[np.void]
    n_components: int
    flags: int
    lines: frozenset[str]
    accepted: bool
    number: int

    @property
    def flag_names(self) -> list[str]:
        """The names of its flags, in upper case."""
        return CHAIN.flag_table.names(self.flags)

    def same_as(self, other: Labelled) -> bool:
        """Whether both events are equal bit by bit."""
        return (
            self.labels.shape == other.labels.shape
            and self.labels.tobytes() == other.labels.tobytes()
            and self.features.tobytes() == other.features.tobytes()
            and (self.n_components, self.flags, self.number) == (other.n_components, other.flags, other.number)
        )


Reader = Callable[[Mapping[str, NDArray[Any]], int, frozenset[str], bool], Labelled]


def labelling(sequence: str | None = None, **constants: int) -> str:
    """A trigger configuration of a sequence with the constants `threshold` and `diagonal`."""
    if sequence == "large_images":
        values = "".join(f"{name} = {value}\n" for name, value in constants.items())
        return f'[sequence]\nname = "large_images"\n[sequence.ccl_count_runs]\n{values}'
    runs = "".join(f"{name} = {value}\n" for name, value in constants.items() if name == "threshold")
    labels = "".join(f"{name} = {value}\n" for name, value in constants.items() if name == "diagonal")
    return f"[sequence.ccl_find_runs]\n{runs}[sequence.ccl_label_runs]\n{labels}"


def mep_of_images(
    images: Sequence[NDArray[Any]], rows_per_strip: int | None = None, first_event: int = 0
) -> EncodedMep:
    """A MEP with an image in each event."""
    return encode_mep(CHAIN, [encode_image(image, rows_per_strip) for image in images], first_event)


def label_images(
    images: Sequence[NDArray[Any]], configuration: str = "", *, threads: int = 1, **of_mep: Any
) -> list[Labelled]:
    """The images through the chain, in one batch."""
    return run_chain([mep_of_images(images, **of_mep)], configuration, threads=threads)[0]


def label_banks(events: Sequence[Sequence[RawBank]], configuration: str = "", flags: int = 0) -> list[Labelled]:
    """Events of any banks through the chain, in one batch."""
    return run_chain([encode_mep(CHAIN, events)], configuration, flags)[0]


def run_chain(
    meps: Sequence[EncodedMep],
    configuration: str = "",
    flags: int = 0,
    *,
    threads: int = 1,
    names: Sequence[str] = COLUMNS,
    read: Reader | None = None,
) -> tuple[list[Labelled], dict[str, HistogramContent]]:
    """Some MEPs in one batch through the chain and the lines of a configuration, on the CPU.

    read: makes the events from the columns with these names; by default from the runs of images.
    """
    trigger = TriggerConfig.from_toml(configuration, CHAIN.menu)
    chain = CHAIN.with_sequence(trigger.sequence)
    n_events = sum(mep.n_events for mep in meps)
    limits = BatchLimits(
        events=n_events,
        meps=len(meps),
        input_bytes=max(8, sum(-(-mep.data.nbytes // 8) * 8 for mep in meps)),
        rows=max(1, sum(len(mep.fragments) for mep in meps)),
    )
    backend = create_backend("cpu", chain.kernels, threads=threads)
    engine = chain.create_engine(backend, {}, trigger, limits, retain=names)
    try:
        workspace = engine.create_workspace()
        placed, at = [], 0
        for mep in meps:
            workspace.input_data[at : at + mep.data.nbytes] = mep.data
            places = [(source, at + offset, size) for source, offset, size in mep.fragments]
            placed.append(MepInBatch(mep.n_events, places, EventFlag(flags)))
            at += -(-mep.data.nbytes // 8) * 8
        workspace.seal(placed)
        workspace.submit()
        workspace.wait()
        columns = {name: workspace.fetch(name) for name in names}
        words = workspace.output.lines
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=len(engine.lines), bitorder="little")
        lines = [frozenset(engine.lines[i] for i in np.flatnonzero(of_event).tolist()) for of_event in bits]
        accepted = workspace.output.accepted.astype(bool).tolist()
        found = [(read or labelled_event)(columns, i, lines[i], accepted[i]) for i in range(n_events)]
        filled = contents(engine.histograms, workspace.take_histogram_counts())
        return found, {content.shape.name: content for content in filled}
    finally:
        engine.close()


def features_of_event(columns: Mapping[str, NDArray[Any]], event: int) -> NDArray[np.void]:
    """Records of FEATURES of the components of an event that have any."""
    n, first = int(columns["components.count"][event]), int(columns["components.offset"][event])
    features = np.zeros(n, FEATURES)
    features["area"] = columns["components.area"][first : first + n]
    for side in ("left", "top", "right", "bottom"):
        features[side] = columns["components.box"][first : first + n][side]
    for name in SUMS:
        features[name] = columns[f"components.{name}"][2 * first : 2 * (first + n)].view(np.uint64)
    return features


def number_of_event(columns: Mapping[str, NDArray[Any]], event: int) -> int:
    """The number of an event from the headers of its MFPs."""
    low, high = columns["events.number"][2 * event : 2 * event + 2].tolist()
    return int(high << 32 | low)


def labelled_event(
    columns: Mapping[str, NDArray[Any]], event: int, lines: frozenset[str] = frozenset(), accepted: bool = False
) -> Labelled:
    """One event of the columns of a batch."""
    n_rows, n_runs = (int(columns[f"{name}.count"][event]) for name in ("image_rows", "runs"))
    row, run = int(columns["image_rows.offset"][event]), int(columns["runs.offset"][event])
    return Labelled(
        label_image(
            (n_rows, int(columns["images.shape"][event]["width"]) if n_rows else 0),
            columns["image_rows.runs"][row : row + n_rows]["count"],
            columns["runs.span"][run : run + n_runs],
            columns["runs.label"][run : run + n_runs],
        ),
        features_of_event(columns, event),
        int(columns["all_components.count"][event]),
        int(columns["events.flags"][event]),
        lines,
        accepted,
        number_of_event(columns, event),
    )
