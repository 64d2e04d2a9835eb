"""The display that chains share: what a reader is made of, and the chain's own parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hltnode.processing.alice.offline.tools.display import DISPLAY as SLICES
from hltnode.processing.alice.offline.tools.display import DisplayOptions
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.offline.chain_tools import NoOptions
from hltnode.processing.offline.event_display import EventDisplay, ReaderInput


def display(**given: Any) -> EventDisplay[Any]:
    """A display whose reader is its input."""
    return EventDisplay[Any](
        make_reader=lambda of: of,  # type: ignore[arg-type, return-value]
        html=lambda picture, *, source, n_lines: f"{picture} {source} {n_lines}",
        still=lambda picture, source: f"{picture} {source}".encode(),
        **given,
    )


def test_a_reader_gets_the_defaults_of_the_options_of_its_chain_or_those_of_the_user() -> None:
    trigger = CHAIN.load_trigger(None)
    for own, expected in (((), DisplayOptions()), ((DisplayOptions(slice_number=7),), DisplayOptions(slice_number=7))):
        made: Any = display(options=SLICES.options).reader(CHAIN, None, trigger, *own)
        assert isinstance(made, ReaderInput)
        assert made.options == expected
        made.backend.close()
    assert display().options is NoOptions


def test_a_reader_gets_the_constants_of_the_geometry(tmp_path: Path) -> None:
    made: Any = display().reader(CHAIN, None, CHAIN.load_trigger(None))
    made.backend.close()
    assert made.geometry is None
    assert set(made.constants) == set(CHAIN.load_geometry(None))
    with pytest.raises(ValueError, match=tmp_path.name):
        display().reader(CHAIN, tmp_path, CHAIN.load_trigger(None))


def test_pictures_and_numbers_come_from_the_chain() -> None:
    of_chain = display(numbers=lambda banks: (len(banks), 5))
    assert of_chain.run_and_event([]) == (0, 5)
    assert of_chain.page("picture", "file", 3) == "picture file 3"
    assert of_chain.png("picture", "file") == b"picture file"
    assert display().run_and_event([]) == (None, None)
