"""The cuts to be tuned, with the range of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from hltnode.processing.framework.near_names import nearest
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.tuning.errors import TuningError

SCALES = ("prescale", "postscale")
"""Numbers of a line that are no cuts: they trade rate for efficiency one to one."""
DIGITS = 4
"""Significant digits of tuned values: a file with more of them would claim an accuracy that no sample has."""
FACTOR = 2.0
"""The range of a cut without a given one goes from its value divided by this number to its value times this number."""
_STEPS = 12
"""Halvings that find the end of the allowed values: 1/4096 of the range."""


@dataclass(frozen=True, slots=True)
class TunedCut:
    """A cut that may have any value from `low` to `high`, rounded to DIGITS, or to whole numbers for a count.

    base: the value of the configuration. asked: named by the user, not by a pattern.
    """

    line: str
    cut: str
    base: float
    low: float
    high: float
    is_count: bool
    unit: str = ""
    asked: bool = False

    @property
    def name(self) -> str:
        """Line and cut."""
        return f"{self.line}.{self.cut}"

    def levels(self, n: int, low: float | None = None, high: float | None = None) -> tuple[float, ...]:
        """At most n equidistant values of the range or of a part of it, ascending, and the value of the configuration
        if it is in this part."""
        begin = self.low if low is None else max(low, self.low)
        end = self.high if high is None else min(high, self.high)
        values = {self.rounded(value) for value in np.linspace(begin, end, n).tolist()}
        values |= {self.base} if begin <= self.base <= end else set()
        return tuple(sorted(value for value in values if self.low <= value <= self.high))

    def rounded(self, value: float) -> float:
        """The nearest value that a file may hold."""
        return float(round(value)) if self.is_count else float(f"{value:.{DIGITS}g}")


def chosen_cuts(trigger: TriggerConfig, texts: Sequence[str], keep: Sequence[str]) -> tuple[TunedCut, ...]:
    """The cuts that `--tune` names, all cuts without one, except those of lines that match `--keep`.

    texts: `LINE.CUT=LOW:HIGH`, `LINE.CUT` or `LINE`, the latter two with `*` and `?`. A later text replaces an earlier
    one for the same cut. Only lines with a type have cuts that a file can set.

    Raises TuningError: no line or cut matches, a range is wrong.
    """
    typed = {line.name: line for line in trigger.types}
    for pattern in keep:
        if not any(fnmatchcase(name, pattern) for name in trigger.line_names):
            raise TuningError(f"--keep {pattern}: no line matches; {nearest(pattern, trigger.line_names)}")
    known = {name: line for name, line in typed.items() if not any(fnmatchcase(name, each) for each in keep)}
    all_cuts = {
        f"{name}.{cut}": (name, cut)
        for name, line in known.items()
        for cut in line.cuts()
        if cut not in SCALES and _is_number(getattr(line, cut))
    }
    if not all_cuts:
        raise TuningError("no line has a cut that can be tuned: lines of Python files and scales have none")
    found: dict[str, TunedCut] = {}
    for text in texts or ("*",):
        pattern, given, ends = text.partition("=")
        if given:
            if pattern not in all_cuts:
                raise TuningError(f"--tune {text}: {_why_not(pattern, trigger, list(all_cuts), keep)}")
            found[pattern] = _with_range(trigger, *all_cuts[pattern], ends, text)
            continue
        matching = list(_matching(pattern, all_cuts))
        if not matching:
            raise TuningError(f"--tune {text}: {_why_not(pattern, trigger, list(all_cuts), keep)}")
        asked = pattern in all_cuts
        for name in matching:
            cut = _with_default_range(trigger, *all_cuts[name], asked=asked)
            if cut is not None:
                found[name] = cut
            elif asked:
                raise TuningError(f"--tune {text}: its value is 0, so it has no usual range: give {name}=LOW:HIGH")
    if not found:
        raise TuningError("no cut has a usual range, which needs a value other than 0: give --tune LINE.CUT=LOW:HIGH")
    return tuple(found[name] for name in all_cuts if name in found)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matching(pattern: str, names: dict[str, tuple[str, str]]) -> Iterator[str]:
    for name, (line, _) in names.items():
        if fnmatchcase(name if "." in pattern else line, pattern):
            yield name


def _why_not(pattern: str, trigger: TriggerConfig, names: Sequence[str], keep: Sequence[str]) -> str:
    line, _, cut = pattern.partition(".")
    if line in trigger.line_names and line not in {each.name for each in trigger.types}:
        return f"{line} is a line of a Python file; a configuration file cannot set its cuts"
    if cut in SCALES:
        return f"{cut} is a scale, not a cut: set it in the configuration"
    if any(fnmatchcase(line, each) for each in keep):
        return f"--keep keeps {line}"
    if line not in trigger.line_names:
        return f"no line matches; {nearest(line, trigger.line_names)}"
    return f"no cut matches; {nearest(pattern, [name for name in names if name.startswith(f'{line}.')] or names)}"


def _with_range(trigger: TriggerConfig, line: str, cut: str, ends: str, text: str) -> TunedCut:
    try:
        low, high = (float(end) for end in ends.split(":"))
    except ValueError:
        raise TuningError(f"--tune {text}: LINE.CUT=LOW:HIGH is expected, such as Hlt1Line.min_pt=500:3000") from None
    base, is_count = _base(trigger, line, cut)
    if not (np.isfinite([low, high]).all() and low < high):
        raise TuningError(f"--tune {text}: two finite numbers are expected, the lower one first")
    if not low <= base <= high:
        raise TuningError(f"--tune {text}: the range must contain the value of the configuration, {base:g}")
    if is_count:
        low, high = float(np.ceil(low)), float(np.floor(high))
    for end in (low, high):
        trigger.with_cut(line, cut, end)
    return TunedCut(line, cut, base, low, high, is_count, trigger.unit_of(line, cut), asked=True)


def _with_default_range(trigger: TriggerConfig, line: str, cut: str, *, asked: bool) -> TunedCut | None:
    base, is_count = _base(trigger, line, cut)
    if base == 0:
        return None
    low, high = sorted((base / FACTOR, base * FACTOR))
    low, high = (_allowed_end(trigger, line, cut, base, end, is_count) for end in (low, high))
    if not low < high:
        return None
    return TunedCut(line, cut, base, low, high, is_count, trigger.unit_of(line, cut), asked)


def _allowed_end(trigger: TriggerConfig, line: str, cut: str, base: float, end: float, is_count: bool) -> float:
    """The value nearest to `end`, on its side of the base, that the line allows."""

    def rounded(value: float) -> float:
        return float(round(value)) if is_count else float(f"{value:.{DIGITS}g}")

    if trigger.allows(line, cut, rounded(end)):
        return rounded(end)
    good, bad = base, end
    for _ in range(_STEPS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if trigger.allows(line, cut, rounded(middle)) else (good, middle)
    return base if good == base else rounded(good)


def _base(trigger: TriggerConfig, line: str, cut: str) -> tuple[float, bool]:
    value = getattr({each.name: each for each in trigger.types}[line], cut)
    return float(value), isinstance(value, int)
