"""hltnode histograms: shows the monitoring histograms of a node or a file in the terminal."""

import json
import math
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hltnode.daemon.commands.common import JsonOption, require_writable, user_errors, write_json
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.monitoring.histograms import as_uhi, label_of
from hltnode.daemon.storage.root_file import read_root
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape
from hltnode.processing.framework.near_names import nearest

ROWS = 25
"""Most lines of a drawing; a histogram with more bins has several bins per line."""
WIDTH = 50
"""Length of the longest bar, in characters."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
MAX_PAGE_BYTES = 16 << 20
SECONDS = 10.0


def histograms(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Address of a node, such as http://127.0.0.1:9105, or a ROOT file.")
    ],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAMES]", help="Histograms to draw.")] = None,
    json: JsonOption = None,
) -> None:
    """List monitoring histograms, or draw some.

    Example: hltnode histograms http://127.0.0.1:9105 Hlt1KsToPiPi_mass
    """
    with user_errors():
        require_writable(json)
        contents = read_page(source) if source.startswith(("http://", "https://")) else read_root(Path(source))
        chosen = _chosen(contents, names or [])
        write_json(json, {content.shape.name: as_uhi(content) for content in chosen})
    if names:
        echo("\n\n".join(drawing(content) for content in chosen))
    else:
        echo(table(chosen))


def read_page(address: str) -> list[HistogramContent]:
    """The histograms of a node (/histograms). Raises ValueError, which names the address."""
    url = f"{address.rstrip('/').removesuffix('/histograms')}/histograms"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            page = json.loads(answer.read(MAX_PAGE_BYTES))
        return [_of_uhi(name, content) for name, content in page["histograms"].items()]
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError) as error:
        raise ValueError(f"{url}: cannot read histograms: {error}") from error


def _of_uhi(name: str, content: dict[str, Any]) -> HistogramContent:
    (axis,), about = content["axes"], content["metadata"]
    shape = HistogramShape(
        name=name,
        bins=axis["bins"],
        low=axis["lower"],
        high=axis["upper"],
        unit=about["unit"],
        description=about["description"],
        line=about["line"],
    )
    return HistogramContent(shape, np.array([*content["storage"]["values"], about["not_a_number"]], np.uint64))


def _chosen(contents: Sequence[HistogramContent], names: Sequence[str]) -> list[HistogramContent]:
    known = {content.shape.name: content for content in contents}
    for name in names:
        if name not in known:
            raise ValueError(f"no histogram {name!r}; {nearest(name, known)}")
    return [known[name] for name in names] if names else list(contents)


def table(contents: Sequence[HistogramContent]) -> str:
    """One line per histogram."""
    width = max((len(content.shape.name) for content in contents), default=4)
    lines = [f"{'name':<{width}}  {'entries':>10}  {'below':>8}  {'above':>8}  {'NaN':>6}  {'mean':>10}  of"]
    for content in contents:
        mean = f"{_mean(content):10.4g}" if content.bins.any() else " " * 10
        lines.append(
            f"{content.shape.name:<{width}}  {content.entries:>10}  {content.underflow:>8}  {content.overflow:>8}  "
            f"{content.not_a_number:>6}  {mean}  {label_of(content.shape)}"
        )
    return "\n".join(lines)


def _mean(content: HistogramContent) -> float:
    """Mean of the values in the range, each taken at the centre of its bin."""
    edges = content.shape.edges
    return float(np.average((edges[1:] + edges[:-1]) / 2, weights=content.bins))


def drawing(content: HistogramContent) -> str:
    """One bar per group of bins, starting with the lowest bin."""
    shape = content.shape
    width = math.ceil(shape.bins / ROWS)
    sums = np.add.reduceat(content.bins, np.arange(0, shape.bins, width)).tolist()
    edges = [f"{edge:.6g}" for edge in shape.edges[:-1:width]]
    margin = max(len(edge) for edge in edges)
    lines = [f"{shape.name}: {label_of(shape)}"]
    for edge, count in zip(edges, sums, strict=True):
        eighths = round(8 * WIDTH * count / max(*sums, 1))
        bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        lines.append(f"{edge:>{margin}} │{bar:<{WIDTH}} {count}")
    outside = f"{content.underflow} below, {content.overflow} above, {content.not_a_number} NaN"
    return "\n".join([*lines, f"{content.entries} entries, {outside}"])
