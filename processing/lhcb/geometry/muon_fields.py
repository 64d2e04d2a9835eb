"""Fields of interest of the muon stations: largest distances between a track and its hits.

Half sizes of a field, in half sizes of the hit: a + b exp(-c p), p in GeV; they grow with the scattering in the
calorimeters and the iron (F. Archilli et al., Performance of the muon identification at LHCb, JINST 8 (2013) P10020).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.processing.lhcb.geometry.muon import N_REGIONS, N_STATIONS

FIELDS_FILE = "field_of_interest_params.bin"

_LARGEST = 1000.0
_SHAPE = (N_STATIONS, 3, 2, N_REGIONS)


@dataclass(frozen=True, slots=True, eq=False)
class FieldsOfInterest:
    """`a`, `b`, `c` (1/GeV): f32[4, 2, 4], by station M2..M5, x or y, region R1..R4."""

    a: NDArray[np.float32]
    b: NDArray[np.float32]
    c: NDArray[np.float32]

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read field_of_interest_params.bin (docs/formats/geometry-files.md) from a directory; returns the built-in
        ones if it has no such file.

        Raises GeometryError, which names the file, if it is of the wrong size or holds impossible values.
        """
        path = Path(directory) / FIELDS_FILE
        if not path.exists():
            return cls.builtin()
        file = GeometryFile.read(path)
        values = file.f32("parameters", int(np.prod(_SHAPE)), largest=_LARGEST).reshape(_SHAPE)
        file.end()
        if values.min() < 0:
            raise file.error("a parameter is negative")
        return cls(*np.moveaxis(values, 1, 0))

    @classmethod
    def builtin(cls) -> Self:
        """The values of the LHCb trigger (Allen 2023)."""
        return cls(*np.array(_BUILTIN, np.float32).reshape(3, 2, N_STATIONS, N_REGIONS).swapaxes(1, 2))

    def to_bytes(self) -> bytes:
        """For the kernels: the record muon_field_of_interest (processing/lhcb/muon/collections.py)."""
        return b"".join(np.ascontiguousarray(of, dtype="<f4").tobytes() for of in (self.a, self.b, self.c))

    def half_sizes(
        self, station: NDArray[np.int64], region: NDArray[np.int64], p: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Half sizes f64[n, 2] in x and y, in half sizes of a hit, for tracks of momenta `p` (MeV)."""
        a, b, c = (of[station, :, region].astype(np.float64) for of in (self.a, self.b, self.c))
        return a + b * np.exp(-c * np.asarray(p)[..., None] / 1000.0)


# a, b, c: x, then y; a row is a station, a column a region.
_BUILTIN = (
    ((5.2, 3.6, 2.4, 2.4), (5.7, 4.4, 2.8, 2.3), (5.1, 3.1, 2.3, 2.1), (5.8, 3.4, 2.6, 2.8)),
    ((3.3, 2.1, 1.7, 1.6), (3.6, 2.8, 1.9, 1.8), (4.4, 3.3, 2.2, 2.2), (4.8, 3.9, 2.6, 2.3)),
    ((31.0, 28.0, 21.0, 17.0), (30.0, 31.0, 27.0, 22.0), (28.0, 33.0, 35.0, 47.0), (31.0, 39.0, 56.0, 151.0)),
    ((17.0, 15.0, 9.0, 5.0), (26.0, 25.0, 16.0, 15.0), (30.0, 49.0, 57.0, 92.0), (32.0, 55.0, 96.0, 166.0)),
    ((0.06, 0.08, 0.10, 0.15), (0.04, 0.06, 0.09, 0.12), (0.08, 0.15, 0.23, 0.36), (0.07, 0.14, 0.24, 0.49)),
    ((0.13, 0.19, 0.19, 0.24), (0.11, 0.19, 0.21, 0.32), (0.10, 0.22, 0.30, 0.52), (0.08, 0.20, 0.34, 0.52)),
)
