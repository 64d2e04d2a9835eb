"""Times of the copies and kernels of each slot from CUDA events, on one time axis, and their picture."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from benchmarks.gpu.report import Section
from hltnode.processing.framework.backends.cuda import CudaBackend, CudaQueue
from hltnode.processing.framework.workspace import Workspace

COLOURS = {"copy to the device": "#4477aa", "kernels": "#ee6677", "copy back": "#228833"}
WIDTH, LANE, LEFT, TOP = 1000, 26, 60, 34
"""Sizes in pixels: the axis, a slot, and margins."""
TICKS = 10


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """One batch: start and end times of its stages in s since the start of the measurement."""

    slot: int
    begin: float
    on_device: float
    computed: float
    back: float

    @property
    def copies(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Times of the copies to the device and back."""
        return (self.begin, self.on_device), (self.computed, self.back)

    @property
    def kernels(self) -> tuple[float, float]:
        """Begin and end."""
        return self.on_device, self.computed


def record(backend: CudaBackend, workspaces: Sequence[Workspace], batches: int) -> list[BatchSpan]:
    """Run batches, each when its slot becomes free. `workspaces` are sealed."""
    with backend.device.calls("begin a measurement") as cupy:
        origin, stream = cupy.cuda.Event(), cupy.cuda.Stream(non_blocking=True)
        origin.record(stream)
        stream.synchronize()
    spans = []
    for batch in range(batches + len(workspaces)):
        slot = batch % len(workspaces)
        workspace, queue = workspaces[slot], workspaces[slot].queue
        assert isinstance(queue, CudaQueue)
        if batch >= len(workspaces):
            workspace.wait()
            spans.append(BatchSpan(slot, *queue.seconds_since(origin)))
        if batch < batches:
            workspace.submit()
    return spans


def busy_seconds(intervals: Sequence[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, end = 0.0, float("-inf")
    for begin, until in sorted(intervals):
        total += max(0.0, until - max(begin, end))
        end = max(end, until)
    return total


def overlap(spans: Sequence[BatchSpan]) -> dict[str, float]:
    """Seconds from the first start to the last end; the fractions of this time with kernels and with copies; and the
    fraction of the copy time with kernels of other slots."""
    kernels = [span.kernels for span in spans]
    copies = list(chain.from_iterable(span.copies for span in spans))
    whole = max(span.back for span in spans) - min(span.begin for span in spans)
    kernel_seconds, copy_seconds = busy_seconds(kernels), busy_seconds(copies)
    both = kernel_seconds + copy_seconds - busy_seconds(kernels + copies)
    return {
        "seconds": whole,
        "kernels": kernel_seconds / whole,
        "copies": copy_seconds / whole,
        "copies_hidden": both / copy_seconds if copy_seconds else 1.0,
    }


def draw(spans: Sequence[BatchSpan]) -> str:
    """SVG with a lane per slot and milliseconds from left to right."""
    slots = max(span.slot for span in spans) + 1
    begin, end = min(span.begin for span in spans), max(span.back for span in spans)
    scale = WIDTH / (end - begin)
    bottom = TOP + slots * LANE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 40}" height="{bottom + 40}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for index, (name, colour) in enumerate(COLOURS.items()):
        key = LEFT + 180 * index
        parts.append(f'<rect x="{key}" y="8" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{key + 18}" y="18">{name}</text>')
    parts += [f'<text x="8" y="{TOP + slot * LANE + 17}">slot {slot}</text>' for slot in range(slots)]
    for span in spans:
        to_device, back = span.copies
        for (first, last), colour in zip((to_device, span.kernels, back), COLOURS.values(), strict=True):
            x, width = LEFT + scale * (first - begin), scale * (last - first)
            y = TOP + span.slot * LANE + 3
            parts.append(f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{LANE - 6}" fill="{colour}"/>')
    for tick in range(TICKS + 1):
        x = LEFT + WIDTH * tick / TICKS
        label = f"{1e3 * (end - begin) * tick / TICKS:.2f}"
        parts.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#bbb"/>')
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{bottom + 34}" text-anchor="middle">milliseconds</text></svg>')
    return "\n".join(parts) + "\n"


def timeline(name: str, n_events: int, spans: Sequence[BatchSpan]) -> Section:
    """Shares, and the picture."""
    shares = overlap(spans)
    rate = len(spans) * n_events / shares["seconds"]
    data: dict[str, Any] = {**shares, "events_per_second": rate, "spans": [asdict(span) for span in spans]}
    slug = "".join(letter if letter.isalnum() else "_" for letter in name)
    return Section(
        title=f"Overlap of slots: {name}",
        text=f"{len(spans)} batches of {n_events} events in pinned memory; a slot starts when it is free.",
        header=("kernels run", "copies run", "copies beside kernels", "events/s"),
        rows=[
            (f"{shares['kernels']:.1%}", f"{shares['copies']:.1%}", f"{shares['copies_hidden']:.1%}", f"{rate:,.0f}")
        ],
        data=data,
        pictures={f"timeline_{slug}.svg": draw(spans)},
    )
