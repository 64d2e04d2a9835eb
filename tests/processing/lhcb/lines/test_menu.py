"""The menu and further lines of its types: every evaluator gives the same decisions, also on NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.inputs.event_fields import EVENT_WORDS
from hltnode.processing.selection.lines.line_type import LineType
from tests.processing.selection.line_evaluators import (
    Case,
    assert_all_decide_alike,
    by_blocks,
    by_compiler,
    by_ptx,
    targets,
)
from tests.processing.selection.toy_detector import SPECIAL
from tools.generate_lines_page import REFERENCE, lines_page

LINES = CHAIN.menu.of("hlt1_2026")
MOST = 30
"""Objects of a collection in an event."""
RANGES = {
    **dict.fromkeys(("chi2", "doca"), (-2, 1)),
    **dict.fromkeys(("ip_chi2", "min_ip_chi2", "fd_chi2"), (0, 4)),
    **dict.fromkeys(("pt", "min_pt", "sum_pt", "m_corr"), (2, 5)),
    **dict.fromkeys(("m_kk", "m_kpi", "m_pik", "m_pipi"), (3.23, 3.31)),
    **dict.fromkeys(("m_ppi", "m_pip"), (3.03, 3.06)),
    "min_p": (3, 5),
    "beam_qop": (-5, -3),
    "eta": (0.2, 0.8),
    "dira": (-0.001, 0),
    "downstream_v0s.m_pipi": (2.66, 2.73),
    "downstream_v0s.m_ee": (0, 2),
    "downstream_v0s.ip": (-1, 1.5),
    **dict.fromkeys(("muon_stubs.chi2_x", "muon_stubs.chi2_y"), (-2, 1)),
}
"""Powers of ten, by the names of columns, with or without that of their collection, so that cuts select some objects;
others are from 0.01 to 10,000."""
SCALES = {"prescale", "postscale"}


def other_cuts(line: LineType, number: int) -> LineType:
    cuts: dict[str, Any] = {
        field.name: value * (0.5 + 0.2 * number)
        for field in fields(line)
        if field.name not in SCALES and isinstance(value := getattr(line, field.name), float) and value > 1
    }
    return replace(line, name=f"{line.name}{number}", **cuts)


def menu(n: int) -> tuple[LineType, ...]:
    """The menu without scales, then lines with other cuts."""
    lines = [replace(line, prescale=1.0, postscale=1.0) for line in LINES]
    return tuple(lines + [other_cuts(line, number) for number in range(1, 5) for line in lines])[:n]


def random_case(types: Sequence[LineType], n_events: int, seed: int, special: float) -> Case:
    """Random values for each column that the lines read. Events have 0 to MOST objects, the first one 0."""
    rng = np.random.default_rng(seed)
    limits = BatchLimits(events=n_events, lines=len(types))
    lines = tuple(line.line() for line in types)
    case = Case(lines, EVENT_WORDS, {}, limits)
    columns: dict[str, NDArray[Any]] = {}
    for column in case.algorithm.columns:
        n = column.count(limits)
        if column.name.endswith((".offset", "offsets")):
            columns[column.name] = np.arange(n) * 4 * MOST
        elif column.name.endswith(".count") and column.of_event:
            most = None if column.collection is None else column.collection.max_per_event
            largest = min(MOST, most) if isinstance(most, int) else MOST
            columns[column.name] = rng.integers(0, largest + 1, n) * (np.arange(n) > 0)
        elif column.dtype.names is not None and column.name not in ("line_table", "batch"):
            columns[column.name] = filled = np.zeros(n, column.dtype)
            for name in column.dtype.names:
                filled[name] = numbers(rng, filled[name].shape, column.dtype[name].base, special)
        elif column.name not in ("line_table", "batch"):
            powers = RANGES.get(column.name) or RANGES.get(column.short_name, (-2, 4))
            columns[column.name] = numbers(rng, (n,), column.dtype, special, powers)
    columns["events.flags"] = np.zeros(n_events, np.uint32)
    return replace(case, columns=columns)


def numbers(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    special: float,
    powers: tuple[float, float] = (-2, 4),
) -> NDArray[Any]:
    if dtype != F32:
        return rng.integers(0, MOST + 5, shape).astype(dtype)
    values = 10.0 ** rng.uniform(*powers, shape)
    values = (values * (rng.choice([-1, 1], shape) if powers == (-2, 4) else 1)).astype(np.float32)
    rare = rng.random(shape) < special
    values[rare] = rng.choice(SPECIAL, int(rare.sum()))
    return values


@pytest.mark.parametrize(("n_lines", "special"), [(len(LINES), 0.0), (100, 0.02), (100, 0.3)])
def test_lines_of_the_menu_decide_alike(n_lines: int, special: float) -> None:
    case = random_case(menu(n_lines), 60, seed=3, special=special)
    decided = assert_all_decide_alike(case, [partial(by_compiler, target=target) for target in targets()])
    assert len({line for mask in decided.masks for line in range(n_lines) if mask >> line & 1}) > 0.4 * n_lines
    assert sum(decided.unknown) > 0


@pytest.mark.timeout(300)
def test_the_menu_decides_alike_on_a_gpu() -> None:
    case = random_case(menu(len(LINES)), 3, seed=5, special=0.1)
    assert_all_decide_alike(case, (by_blocks(32), by_ptx()))


def test_the_page_of_lines_states_the_cuts_of_every_type() -> None:
    assert (REFERENCE / "lines-lhcb.md").read_text(encoding="utf-8") == lines_page("lhcb", CHAIN)
