"""Pictures of single events, for notebooks."""

import html
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from hltnode.analysis.event_file import Event, open_file
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.offline.chain_tools import installed_tools
from hltnode.processing.selection.trigger_chain import installed_chain


@dataclass(frozen=True, slots=True)
class Picture:
    """An interactive picture of an event: a notebook shows it, `save` writes it as a file.

    title: run and event number; summary: what was found; lines: the lines that accept the event; page: HTML.
    """

    title: str
    summary: str
    lines: tuple[str, ...]
    page: str = field(repr=False)
    height: int = 700
    """Height in a notebook in pixels."""

    def save(self, file: PathLike[str] | str) -> Path:
        """Write an HTML file that needs no network; returns its path."""
        path = Path(file)
        path.write_text(self.page, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        # A frame keeps the styles of the page and of the notebook apart.
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" title="{html.escape(self.title)}" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )


def display(
    event: Event | PathLike[str] | str,
    index: int = 0,
    *,
    sequence: str | None = None,
    trigger: PathLike[str] | str | None = None,
    geometry: PathLike[str] | str | None = None,
    chain: str = "lhcb",
    encoding: str = AUTO,
) -> Picture:
    """Reconstruct an event and draw it: hits, tracks, vertices, accepting lines, and truth if available.

    event: an event of `hltnode.open`, or a file, whose event of this index is drawn. Other arguments as for `process`.

    Raises ValueError, also for a chain without a display, IndexError, EventFileError, BackendError.
    """
    make = installed_tools(chain).display
    if make is None:
        raise ValueError(f"chain {chain} has no display")
    known = installed_chain(chain)
    check_encoding(known.readout, encoding)
    one = event if isinstance(event, Event) else open_file(event, chain=chain)[index]
    configuration = known.load_trigger(None if trigger is None else Path(trigger), sequence)
    tool = make()
    reader = tool.reader(known, None if geometry is None else Path(geometry), configuration)
    try:
        picture = reader.read(one.raw_banks, encoding)
    finally:
        reader.close()
    source = f"{one.file.path.name}, event {one.index} of the file"
    page = tool.page(picture, source, len(configuration.lines))
    return Picture(picture.title, picture.summary, tuple(picture.lines or ()), page)
