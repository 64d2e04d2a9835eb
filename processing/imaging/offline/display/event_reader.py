"""From the raw banks of an event to its image with the components, through the sequence of the chain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.imaging.components.collections import (
    all_component_count,
    component_area,
    component_box,
    component_count,
    component_intensity,
    component_sum_x,
    component_sum_y,
    row_runs,
    run_count,
    run_label,
    run_span,
)
from hltnode.processing.imaging.gpu_labelling.collections import pixel_label
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import part_threshold
from hltnode.processing.imaging.offline.display.label_forest import foreground, numbers_of_labels, runs_of
from hltnode.processing.offline.counted import counted
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=1, meps=1, input_bytes=16 << 20, rows=1 << 13)
"""One event: up to 8192 x 8192 pixels of 1 bit, or 4096 x 4000 of 8."""
_RUNS = (row_runs, run_count, run_span, run_label)
_LABEL_IMAGE = (image_row_data, pixel_label, part_threshold)
"""Of the labelling sequences for GPUs, which have no runs."""
_COLUMNS = (
    *(image_shape, image_row_count, component_count, all_component_count),
    *(component_area, component_box, component_sum_x, component_sum_y, component_intensity),
)

COMPONENT = np.dtype(
    [
        ("area", "u4"),
        ("left", "u4"),
        ("top", "u4"),
        ("right", "u4"),
        ("bottom", "u4"),
        ("x", "f8"),
        ("y", "f8"),
        ("intensity", "u8"),
    ]
)
"""A component: pixels, box (last column and row included), mean column and row, sum of its pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePicture:
    """The image of an event, as the chain labels it.

    labels: i32[height, width], the component of each pixel, -1 for background. components: records of COMPONENT, in the
    order of their labels. n_components: all components, those without features included. lines: those that accept the
    event.
    """

    labels: NDArray[np.int32]
    components: NDArray[np.void]
    n_components: int
    bits: int
    run: int | None
    number: int | None
    flags: tuple[str, ...]
    lines: tuple[str, ...] | None

    @property
    def title(self) -> str:
        """Run and event number, as far as ODIN tells them."""
        return "an event without ODIN" if self.number is None else f"run {self.run}, event {self.number}"

    @property
    def summary(self) -> str:
        """Size, foreground and components."""
        height, width = self.labels.shape
        if not self.labels.size:
            return "no image that can be labelled"
        share = np.count_nonzero(self.labels >= 0) / self.labels.size
        largest = int(self.components["area"].max(initial=0))
        return (
            f"{width} x {height} pixels of {counted(self.bits, 'bit')}, {share:.1%} foreground; "
            f"{counted(self.n_components, 'component')}, the largest has {counted(largest, 'pixel')}"
        )


class EventReader:
    """Runs single events through the chain and its lines. Raises TriggerConfigError and BackendError."""

    def __init__(self, chain: TriggerChain, backend: Backend, geometry: Constants, trigger: TriggerConfig) -> None:
        made = {column for algorithm in chain.with_sequence(trigger.sequence).sequence for column in algorithm.writes}
        self._has_runs = run_span in made and run_label in made
        of_labels = _RUNS if self._has_runs else _LABEL_IMAGE
        if missing := [column.name for column in (*_COLUMNS, *of_labels) if column not in made]:
            raise TriggerConfigError(
                f"the display needs images and their labels: sequence {trigger.sequence} has no {', '.join(missing)}"
            )
        retain = tuple(column.name for column in (*_COLUMNS, *of_labels))
        self._engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=retain)
        self._runner = OfflineRunner(self._engine, workspaces=1)

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> ImagePicture:
        """The picture of an event. Raises ProtocolError, BackendError, and ValueError above the limits."""
        mep = encode_mep(self._engine.chain, [banks], encoding=encoding)
        (batch,) = self._runner.run([mep])
        fetch = batch.workspace.fetch
        shape = fetch(image_shape.name, 1)[0]
        n_rows, n = (int(fetch(c.name, 1)[0]) for c in (image_row_count, component_count))
        labels = self._labels(batch.workspace, shape, n_rows)
        found = np.zeros(n, COMPONENT)
        found["area"] = fetch(component_area.name, n)
        for side in ("left", "top", "right", "bottom"):
            found[side] = fetch(component_box.name, n)[side]
        found["x"] = fetch(component_sum_x.name, 2 * n).view(np.uint64) / found["area"]
        found["y"] = fetch(component_sum_y.name, 2 * n).view(np.uint64) / found["area"]
        found["intensity"] = fetch(component_intensity.name, 2 * n).view(np.uint64)
        run, number = run_and_event(banks)
        return ImagePicture(
            labels=labels,
            components=found,
            n_components=int(fetch(all_component_count.name, 1)[0]),
            bits=int(shape["bits"]),
            run=run,
            number=number,
            flags=tuple(self._engine.flags.names(int(batch.workspace.host_array(event_flags.name)[0]))),
            lines=self._lines(batch.workspace.output.lines[0]),
        )

    def _labels(self, workspace: Workspace, shape: np.void, n_rows: int) -> NDArray[np.int32]:
        fetch, width = workspace.fetch, int(shape["width"])
        if self._has_runs:
            n_runs = int(fetch(run_count.name, 1)[0])
            of_rows = fetch(row_runs.name, n_rows)["count"]
            return label_image((n_rows, width), of_rows, fetch(run_span.name, n_runs), fetch(run_label.name, n_runs))
        threshold = int(fetch(part_threshold.name, 1)[0])
        row_data = fetch(image_row_data.name, n_rows)
        row, begin, end = runs_of(foreground(row_data, width, int(shape["bits"]), threshold, workspace.input_data))
        stride = width + width % 2
        numbers = numbers_of_labels(fetch(pixel_label.name, n_rows * stride), row * stride + begin)
        spans = np.zeros(len(row), run_span.dtype)
        spans["begin"], spans["end"] = begin, end
        return label_image((n_rows, width), np.bincount(row, minlength=n_rows), spans, numbers)

    def _lines(self, words: NDArray[np.uint32]) -> tuple[str, ...]:
        names = self._engine.lines
        bits = np.unpackbits(words.view(np.uint8), count=len(names), bitorder="little")
        return tuple(names[i] for i in np.flatnonzero(bits).tolist())


def label_image(
    shape: tuple[int, int], per_row: NDArray[np.integer], runs: NDArray[np.void], labels: NDArray[np.integer]
) -> NDArray[np.int32]:
    """The label of each pixel, i32[height, width], -1 for background, from the runs of the rows."""
    height, width = shape
    image = np.zeros((height, width + 1), np.int32)
    rows = np.repeat(np.arange(height), per_row)
    # A run adds its label + 1 at its first pixel and takes it away behind its last one; runs of a row do not touch.
    image[rows, runs["begin"]] += labels.astype(np.int32) + 1
    image[rows, runs["end"]] -= labels.astype(np.int32) + 1
    found: NDArray[np.int32] = np.cumsum(image, axis=1, dtype=np.int32)[:, :width] - 1
    return found


def run_and_event(banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
    """Run and event number from an ODIN bank; None without a readable one."""
    for bank in banks:
        if bank.type == BankType.ODIN:
            try:
                odin = decode_odin(bank)
            except ProtocolError:
                break
            return odin.run, odin.event_id
    return None, None
