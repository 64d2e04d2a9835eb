"""Histograms as a ROOT file for ROOT, uproot and hist: one TH1D each, and one JSON text that describes them.

uproot is imported when the first file is written, or earlier by `load_library`. The import takes 0.5 s (several seconds
on a busy machine) and 35 MB, 75 MB where pyarrow is installed.
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hltnode.processing.framework.histograms import HistogramContent, HistogramShape

ABOUT = "about"
"""Name of the JSON text in the file."""


def load_library() -> None:
    """Import uproot before the first file needs it."""
    import uproot  # noqa: F401


def root_bytes(histograms: Sequence[HistogramContent], about: Mapping[str, Any]) -> bytes:
    """The bytes of the file. `about`: more entries of the JSON text, beside the description of each histogram."""
    import uproot

    buffer = io.BytesIO()
    with uproot.recreate(buffer) as file:
        described = {content.shape.name: _described(content) for content in histograms}
        file[ABOUT] = json.dumps({**about, "histograms": described})
        for content in histograms:
            file[content.shape.name] = _th1(content)
        return buffer.getvalue()  # before the `with` block closes the buffer


def _described(content: HistogramContent) -> dict[str, Any]:
    shape = content.shape
    return {
        "unit": shape.unit,
        "description": shape.description,
        "line": shape.line,
        "not_a_number": content.not_a_number,
    }


def _th1(content: HistogramContent) -> Any:
    from uproot.writing.identify import to_TAxis, to_TH1x

    shape, bins = content.shape, content.bins.astype(np.float64)
    edges = shape.edges
    centres = (edges[1:] + edges[:-1]) / 2
    counts = content.counts[:-1].astype(np.float64)
    axis = to_TAxis(
        "xaxis", f"{shape.name} [{shape.unit}]" if shape.unit else shape.name, shape.bins, shape.low, shape.high
    )
    return to_TH1x(
        fName=None,
        fTitle=shape.description or shape.name,
        data=counts,
        fEntries=float(counts.sum()),
        fTsumw=float(bins.sum()),
        fTsumw2=float(bins.sum()),
        fTsumwx=float((bins * centres).sum()),
        fTsumwx2=float((bins * centres**2).sum()),
        fSumw2=None,
        fXaxis=axis,
    )


def read_root(path: Path) -> list[HistogramContent]:
    """The histograms of a file made by `root_bytes`. Raises ValueError, which names the file."""
    import uproot

    try:
        with uproot.open(path) as file:
            described = json.loads(str(file[ABOUT]))["histograms"]
            return [_content(name, file[name], about) for name, about in described.items()]
    except (OSError, KeyError, ValueError, uproot.DeserializationError) as error:
        raise ValueError(f"{path}: cannot read histograms written by hltnode: {error}") from error


def _content(name: str, histogram: Any, about: Mapping[str, Any]) -> HistogramContent:
    axis, counts = histogram.axis(), histogram.values(flow=True)
    shape = HistogramShape(
        name=name,
        bins=int(axis.member("fNbins")),
        low=float(axis.low),
        high=float(axis.high),
        unit=about["unit"],
        description=about["description"],
        line=about["line"],
    )
    return HistogramContent(shape, np.append(counts, about["not_a_number"]).astype(np.uint64))
