"""Events of images, and ODIN, as `hltnode simulate --chain ccl` writes them."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from hltnode.processing.imaging.offline.simulation.image_files import image_files, read_image
from hltnode.processing.imaging.offline.simulation.likenesses import blobs, ridges, text_image
from hltnode.processing.imaging.offline.simulation.shapes import (
    MAX_GRANULARITY,
    checkerboard,
    comb,
    full,
    random_cells,
    spiral,
    stairs,
)
from hltnode.processing.imaging.pixel_lists import MAX_PIXELS, encode_pixels, pixels_of
from hltnode.processing.imaging.readout import IMAGE_READOUT
from hltnode.processing.imaging.strips import MAX_SIDE, encode_image
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.worker_processes import encoded_blocks
from hltnode.protocol.errors import BankError
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import mfps_of_events
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

EVENTS_PER_BLOCK = 16
DENSITIES = 101
"""Densities of random images in turn: 0, 1 ... 100 percent."""


class Kind(StrEnum):
    """The content of the images."""

    RANDOM = "random"
    FULL = "full"
    CHECKERBOARD = "checkerboard"
    COMB = "comb"
    STAIRS = "stairs"
    SPIRAL = "spiral"
    TEXT = "text"
    RIDGES = "ridges"
    BLOBS = "blobs"


_SHAPES = {
    Kind.FULL: full,
    Kind.CHECKERBOARD: checkerboard,
    Kind.COMB: comb,
    Kind.STAIRS: stairs,
    Kind.SPIRAL: spiral,
}
_LIKENESSES = {Kind.TEXT: text_image, Kind.RIDGES: ridges, Kind.BLOBS: blobs}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """The options of `hltnode simulate` that this chain has of its own."""

    kind: Annotated[Kind, typer.Option("--kind", help="Content of the images.")] = Kind.RANDOM
    width: Annotated[int, typer.Option("--width", min=1, max=MAX_SIDE, help="Columns of an image.")] = 256
    height: Annotated[int, typer.Option("--height", min=1, max=MAX_SIDE, help="Rows of an image.")] = 256
    bits: Annotated[int, typer.Option("--bits", min=1, max=8, help="Bits of a pixel, 1 or 8.")] = 1
    density: Annotated[
        float | None,
        typer.Option(
            "--density",
            min=0.0,
            max=100.0,
            help="Foreground of random images in percent; without it, 0 to 100 in turn.",
        ),
    ] = None
    granularity: Annotated[
        int, typer.Option("--granularity", min=1, max=MAX_GRANULARITY, help="Side of the cells of random images.")
    ] = 4
    rows: Annotated[
        int | None,
        typer.Option("--rows", min=1, max=MAX_SIDE, help="Rows of a strip; without it, as many as fit in a bank."),
    ] = None
    sparse: Annotated[
        bool,
        typer.Option("--sparse", help="Write lists of the foreground pixels instead of strips; 1 bit a pixel."),
    ] = False
    images: Annotated[
        Path | None,
        typer.Option(
            "--images", help="A file or a folder of images, which the events hold in turn, instead of --kind."
        ),
    ] = None


@dataclass(frozen=True)
class ImageSample:
    """The events of a request."""

    request: SampleRequest
    own: ImageOptions

    @property
    def name(self) -> str:
        """A short name for files."""
        return "images"

    @property
    def identity(self) -> dict[str, Any]:
        """The request, the code, and the images of a folder."""
        return {
            "seed": self.request.seed,
            "run": self.request.run,
            "file_format": self.request.file_format,
            **self.description,
            "files": digest_of_files(self._files),
            "code": digest_of_files(
                [
                    Path(__file__).parent,
                    Path(__file__).parents[2] / "strips.py",
                    Path(__file__).parents[2] / "pixel_lists.py",
                ]
            ),
        }

    @property
    def description(self) -> dict[str, Any]:
        """The chain's own options."""
        own = self.own
        return {
            "kind": own.kind.value,
            "width": own.width,
            "height": own.height,
            "bits": own.bits,
            "density": own.density,
            "granularity": own.granularity,
            "rows": own.rows,
            "sparse": own.sparse,
            "images": None if own.images is None else str(own.images),
        }

    @cached_property
    def _files(self) -> list[Path]:
        return [] if self.own.images is None else image_files(self.own.images)

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Blocks of MDF records, or MEPs. Raises ValueError for options that exclude each other, and for files."""
        self._check()
        yield from encoded_blocks(partial(encode_block, self), n, EVENTS_PER_BLOCK, jobs)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n events. Raises as `blocks` does."""
        self._check()
        return (self.banks(number) for number in range(n))

    def banks(self, number: int) -> list[RawBank]:
        """The banks of an event: ODIN and the strips, or the lists of pixels."""
        try:
            strips = self._strips(self.image(number))
        except BankError as error:
            raise ValueError(f"--rows {self.own.rows}: {error}") from error
        return [encode_odin(Odin(run=self.request.run, event_id=number)), *strips]

    def _strips(self, image: NDArray[Any]) -> list[RawBank]:
        if not self.own.sparse:
            return encode_image(image, self.own.rows)
        pixels = pixels_of(image)
        if len(pixels) > MAX_PIXELS:
            raise ValueError(f"--sparse: an image has {len(pixels)} foreground pixels, at most {MAX_PIXELS} in a list")
        return encode_pixels(pixels, image.shape[1], image.shape[0])

    def image(self, number: int) -> NDArray[Any]:
        """The image of an event: bool[height, width] for 1 bit a pixel, else u8.

        Each event has random numbers of its own, so that it is the same in any block.
        """
        own, seed = self.own, (self.request.seed, number)
        rng = np.random.Generator(np.random.MT19937(np.random.SeedSequence((*seed, 1))))
        if own.images is not None:
            grey = read_image(self._files[number % len(self._files)])
            return grey if own.bits == 8 else grey != 0
        if own.kind in _LIKENESSES:
            grey = _LIKENESSES[own.kind](own.width, own.height, rng)
            return grey if own.bits == 8 else grey != 0
        if own.kind is Kind.RANDOM:
            density = (number % DENSITIES if own.density is None else own.density) / 100.0
            mask = random_cells(own.width, own.height, density, own.granularity, seed)
        else:
            mask = _SHAPES[own.kind](own.width, own.height)
        if own.bits == 1:
            return mask
        return np.where(mask, rng.integers(1, 256, mask.shape, dtype=np.uint8), np.uint8(0))

    def _check(self) -> None:
        if self.request.geometry is not None:
            raise ValueError(f"{self.request.geometry}: chain ccl has no geometry")
        if self.own.bits not in (1, 8):
            raise ValueError(f"--bits {self.own.bits}: expected 1 or 8")
        if self.own.sparse and (self.own.bits == 8 or self.own.rows is not None):
            raise ValueError("--sparse: a list has pixels of 1 bit and no rows; leave --bits 8 and --rows out")
        if self._files:
            read_image(self._files[0])


class ImageSimulation:
    """Images of any kind."""

    options = ImageOptions
    named_samples: Mapping[str, NamedSample] = {
        "images": NamedSample(events=1000, options={}, description="random cells of 4 pixels, 0 to 100 percent"),
        "blobs": NamedSample(events=1000, options={"kind": Kind.BLOBS, "bits": 8}, description="blobs of 8 bits"),
    }

    def sample(self, request: SampleRequest, options: ImageOptions) -> ImageSample:
        """The sample of a request."""
        return ImageSample(request, options)


def encode_block(sample: ImageSample, first: int, n: int) -> bytes:
    """Events first ... first + n - 1 as MDF records, or as one MEP."""
    events = [sample.banks(number) for number in range(first, first + n)]
    if sample.request.file_format == "mep":
        return encode_mep(list(mfps_of_events(IMAGE_READOUT, EventTable.of_events(events), first).values()))
    return b"".join(encode_record(encode_banks(banks), run=sample.request.run) for banks in events)
