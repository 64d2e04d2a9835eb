"""Lists of pixels through the sequence `sparse_images`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.pixel_lists import encode_pixels
from hltnode.processing.imaging.sparse_images.label_pixels import METHODS
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.imaging.image_events import FEATURES, SUMS

NO_PIXEL = 0xFFFF_FFFF
SEQUENCE = "sparse_images"
COLUMNS = (
    *("events.number", "images.shape", "pixels.offset", "pixels.count", "pixels.position", "pixels.label"),
    *("components.offset", "components.count", "components.area", "components.box"),
    *("all_components.count", "events.flags"),
    *(f"components.{name}" for name in SUMS),
)


@dataclass(frozen=True, slots=True)
class LabelledPixels:
    """What the chain found in one event. positions, labels: u32[n], in the order of the list. features: records of
    FEATURES."""

    positions: NDArray[np.uint32]
    labels: NDArray[np.uint32]
    features: NDArray[np.void]
    n_components: int
    flags: int

    @property
    def flag_names(self) -> list[str]:
        return CHAIN.flag_table.names(self.flags)

    def image(self, shape: tuple[int, int]) -> NDArray[np.int64]:
        """The label of each pixel of the image, -1 for background."""
        image = np.full(shape, -1, np.int64)
        inside = self.positions != NO_PIXEL
        image[self.positions[inside] >> 16, self.positions[inside] & 0xFFFF] = self.labels[inside]
        return image

    def same_as(self, other: LabelledPixels) -> bool:
        """Whether both events are equal bit by bit."""
        return self._bytes() == other._bytes()

    def _bytes(self) -> tuple[Any, ...]:
        arrays = (self.positions, self.labels, self.features)
        return (*(array.tobytes() for array in arrays), self.n_components, self.flags)


def sparse_labelling(method: str = "row_table", diagonal: int = 1) -> str:
    """A trigger configuration with the sequence."""
    values = f"method = {METHODS[method]}\ndiagonal = {diagonal}\n"
    return f'[sequence]\nname = "{SEQUENCE}"\n[sequence.ccl_label_pixels]\n{values}'


def label_pixel_lists(
    lists: Sequence[tuple[NDArray[Any], int, int]], configuration: str = "", per_bank: int | None = None
) -> list[LabelledPixels]:
    """Lists of pixels, each with width and height of its image, in one batch."""
    return label_pixel_banks([encode_pixels(*of_event, per_bank) for of_event in lists], configuration)


def label_pixel_banks(events: Sequence[Sequence[RawBank]], configuration: str = "") -> list[LabelledPixels]:
    """Events of any banks in one batch, on the CPU."""
    return label_mep(encode_mep(CHAIN.with_sequence(SEQUENCE), events), configuration)


def label_mep(mep: EncodedMep, configuration: str = "") -> list[LabelledPixels]:
    """The events of a MEP."""
    trigger = TriggerConfig.from_toml(configuration or sparse_labelling(), CHAIN.menu)
    chain = CHAIN.with_sequence(SEQUENCE)
    limits = BatchLimits(
        events=mep.n_events, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8 or 8, rows=max(1, len(mep.fragments))
    )
    engine = chain.create_engine(create_backend("cpu", chain.kernels, threads=1), {}, trigger, limits, retain=COLUMNS)
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        columns = {name: batch.workspace.fetch(name) for name in COLUMNS}
    finally:
        engine.close()
    return [_event(columns, event) for event in range(mep.n_events)]


def _event(columns: dict[str, NDArray[Any]], event: int) -> LabelledPixels:
    begin, n = int(columns["pixels.offset"][event]), int(columns["pixels.count"][event])
    n_features = int(columns["components.count"][event])
    first = int(columns["components.offset"][event])
    place = slice(first, first + n_features)
    features = np.zeros(n_features, FEATURES)
    features["area"] = columns["components.area"][place]
    for side in ("left", "top", "right", "bottom"):
        features[side] = columns["components.box"][place][side]
    for name in SUMS:
        features[name] = columns[f"components.{name}"].view(np.uint64)[place]
    return LabelledPixels(
        columns["pixels.position"][begin : begin + n].copy(),
        columns["pixels.label"][begin : begin + n].copy(),
        features,
        int(columns["all_components.count"][event]),
        int(columns["events.flags"][event]),
    )
