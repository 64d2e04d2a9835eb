"""Evaluates all lines with NumPy like the kernel of kernel_code/lines.py, over all candidates of a batch at once.

It serves machines without a compiler. The single-precision operations and their order are the same, so decisions are
bit-identical.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32, Collection, Column
from hltnode.processing.framework.limits import line_words
from hltnode.processing.selection.evaluation.networks import responses
from hltnode.processing.selection.expressions import float_functions
from hltnode.processing.selection.expressions.nodes import Element, Kind, Node, Op, Variable, postorder
from hltnode.processing.selection.lines.composite import Combination
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.scalers import mix_words

MAX_VALUES = 1 << 26
"""Maximum number of values in memory, 4 bytes each: larger numbers of events or inner candidates are computed in
parts."""

Bools = NDArray[np.bool_]
Columns = Mapping[Column, NDArray[Any]]
"""Content of columns, at least for the evaluated events."""


@dataclass(slots=True)
class Truth:
    """Whether a condition is true, and whether it is false, for each object."""

    true: Bools
    false: Bools


@dataclass(slots=True)
class _Scope:
    """The objects of values: all events, or all objects of a collection for each object of `around`.

    event: event of each object; number: its number in the event; outer: index of its object in `around`.
    """

    variable: Variable | None
    around: "_Scope | None"
    event: NDArray[np.int64]
    number: NDArray[np.int64]
    outer: NDArray[np.int64]
    values: dict[Node, Any] = field(default_factory=dict)


class Evaluator:
    """Computes expressions over all or some events of one batch."""

    def __init__(self, columns: Columns, n_events: int, events: range | None = None) -> None:
        self._columns = columns
        self.n_events = n_events
        every = np.arange(n_events) if events is None else np.arange(events.start, events.stop)
        self._events = _Scope(None, None, every, every, every)
        self._scopes: dict[Variable, _Scope] = {}
        self._firsts: dict[Collection, NDArray[np.int64]] = {}
        self.unknown = np.zeros(n_events, np.uint32)
        """Number of selections per event that are undecided because of a NaN."""

    def decide(self, line: Line) -> Bools:
        """For each event, whether the line selects a candidate, before scalers."""
        return _of_events(self.selected(line)[0], self.n_events)

    def selected(self, line: Line) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(event, number in the event) of each selected candidate, before scalers; ascending.

        A whole event has number 0.
        """
        variable = line.variable
        scope = self._events if variable is None else self._scope(variable, self._events)
        truth = self._truth(line.condition, scope)
        self._count_unknown(scope, truth)
        number = np.zeros_like(scope.number) if variable is None else scope.number
        return scope.event[truth.true], number[truth.true]

    def truth(self, condition: Node) -> tuple[Bools, Bools]:
        """For the events that are computed: whether a condition on the event is true, and whether it is false."""
        found = self._truth(condition, self._events)
        return found.true, found.false

    def of_candidates(
        self, variable: Variable | None, value: Node, condition: Node
    ) -> tuple[NDArray[np.float32], Bools, Bools, NDArray[np.int64]]:
        """For all candidates: a value, whether a condition is true, whether it is false, and the event."""
        scope = self._events if variable is None else self._scope(variable, self._events)
        numbers, truth = self._value(value, scope), self._truth(condition, scope)
        return numbers, truth.true, truth.false, scope.event

    def values_of(
        self, variable: Variable | None, roots: Sequence[Node], condition: Node
    ) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
        """For all candidates that satisfy a condition: the event, and some values; an open condition is false."""
        scope = self._events if variable is None else self._scope(variable, self._events)
        chosen = self._truth(condition, scope).true
        values = [self._value(root, scope) for root in roots]
        return scope.event[chosen], [(v.true if isinstance(v, Truth) else v)[chosen] for v in values]

    def pairs(
        self, combination: Combination
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[NDArray[np.float32]]]]:
        """The candidates of a composite, ascending, in parts of limited size: event, number of the first and of the
        second part in the event, and its numbers."""
        of_first, of_second, of_both = combination.factors
        around, inner = (self._scope(part, self._events) for part in (combination.first, combination.second))
        first, second = self._all_true(of_first, around), self._all_true(of_second, inner)
        n_second = np.bincount(inner.event[second], minlength=self.n_events)
        begin = (np.cumsum(n_second) - n_second)[around.event[first]]
        n_pairs = n_second[around.event[first]]
        most = max(1, MAX_VALUES // len(postorder(combination.roots)))
        parts = np.cumsum(n_pairs) // most
        for part in range(int(parts.max(initial=0)) + 1):
            rows = np.flatnonzero(parts == part)
            row = np.repeat(rows, n_pairs[rows])
            within = np.arange(len(row)) - np.repeat(np.cumsum(n_pairs[rows]) - n_pairs[rows], n_pairs[rows])
            partner = second[begin[row] + within]
            outer = first[row]
            scope = _Scope(combination.second, around, around.event[outer], inner.number[partner], outer)
            made = self._all_true(of_both, scope)
            scope = _Scope(combination.second, around, scope.event[made], scope.number[made], outer[made])
            values = [self._value(value, scope) for value in combination.numbers.values()]
            yield scope.event, around.number[scope.outer], scope.number, values

    def _all_true(self, conditions: Sequence[Node], scope: _Scope) -> NDArray[np.int64]:
        """The objects of a scope for which all conditions are true."""
        true = np.ones(len(scope.event), np.bool_)
        for condition in conditions:
            true &= self._truth(condition, scope).true
        return np.flatnonzero(true)

    def of_objects(self, root: Node, variable: Variable, event: NDArray[Any], number: NDArray[Any]) -> NDArray[Any]:
        """A value of some objects, given by their events and their numbers in the event."""
        scope = self._scope(variable, self._events)
        counts = self._columns[variable.count][: self.n_events].astype(np.int64)
        places = (np.cumsum(counts) - counts)[event] + number
        return cast(NDArray[Any], self._value(root, scope)[places])

    def place(self, collection: Collection, event: NDArray[Any], number: NDArray[Any]) -> NDArray[np.int64]:
        """Indices of objects in the columns of a collection."""
        first = self._first(collection)
        return cast(NDArray[np.int64], first[event] + number.astype(np.int64))

    def numbers(self, root: Node) -> NDArray[np.uint32]:
        """A count per event that depends only on the event; 0 for events that are not computed."""
        values = np.zeros(self.n_events, np.uint32)
        values[self._events.event] = self._value(root, self._events)
        return values

    def _scope(self, variable: Variable, around: _Scope, rows: slice = slice(None)) -> _Scope:
        """The scope for all objects around it, or for some rows of them."""
        if around is self._events and variable in self._scopes:
            return self._scopes[variable]
        objects = np.arange(len(around.event))[rows]
        counts = self._columns[variable.count][: self.n_events].astype(np.int64)[around.event[objects]]
        outer = np.repeat(objects, counts)
        number = np.arange(len(outer)) - np.repeat(np.cumsum(counts) - counts, counts)
        scope = _Scope(variable, around, around.event[outer], number, outer)
        if around is self._events:
            self._scopes[variable] = scope
        return scope

    def _inner_scopes(self, at: Node, around: _Scope) -> Iterator[_Scope]:
        """The scopes of the body of a count: one for all events, or parts of limited size."""
        if around is self._events:
            yield self._scope(at.payload, around)
            return
        most = max(1, MAX_VALUES // len(postorder_without_bodies(at.args[0])))
        end = np.cumsum(self._columns[at.payload.count][: self.n_events].astype(np.int64)[around.event])
        begin = 0
        while begin < len(end):
            before = end[begin - 1] if begin else 0
            next_begin = max(begin + 1, int(np.searchsorted(end, before + most, side="right")))
            yield self._scope(at.payload, around, slice(begin, next_begin))
            begin = next_begin

    def _count_unknown(self, scope: _Scope, truth: Truth) -> None:
        np.add.at(self.unknown, scope.event[~(truth.true | truth.false)], np.uint32(1))

    def _first(self, collection: Collection) -> NDArray[np.int64]:
        if collection not in self._firsts:
            assert collection.placement is not None
            offsets = collection.placement.offsets
            content = None if offsets is None else self._columns[offsets]
            self._firsts[collection] = collection.placement.first(content, self.n_events)
        return self._firsts[collection]

    # --- values -------------------------------------------------------------------------------------------------------

    def _value(self, root: Node, scope: _Scope) -> Any:
        """A value or truth for each object of a scope."""
        home = scope
        while home.around is not None and home.variable not in root.free:
            home = home.around
        if root in home.values:
            return home.values[root] if home is scope else _taken(home.values[root], self._places(scope, home))
        if home is not scope:
            return _taken(self._value(root, home), self._places(scope, home))
        for at in postorder_without_bodies(root):
            if at not in home.values and (at is root or _belongs(at, home)):
                home.values[at] = self._operation(at, home)
        return home.values[root]

    def _places(self, scope: _Scope, home: _Scope) -> NDArray[np.int64]:
        """For each object of a scope, the index of its object in an outer scope."""
        places = scope.outer
        assert scope.around is not None
        at = scope.around
        while at is not home:
            places = at.outer[places]
            assert at.around is not None
            at = at.around
        return places

    def _truth(self, at: Node, scope: _Scope) -> Truth:
        return cast(Truth, self._value(at, scope))

    def _operation(self, at: Node, scope: _Scope) -> Any:
        match at.op:
            case Op.CONST:
                return _constant(at, len(scope.event))
            case Op.INDEX:
                return scope.number.astype(np.uint32)
            case Op.LOAD:
                return self._load(at, scope)
            case Op.COUNT | Op.ANY:
                return self._count(at, scope)
        args = [self._value(arg, scope) for arg in at.args]
        if at.op is Op.TREES:
            return at.payload.sums(args)
        if at.op is Op.NETWORK:
            return responses(at.payload, args)
        with np.errstate(all="ignore"):
            return OPERATIONS[at.op](*args)

    def _load(self, at: Node, scope: _Scope) -> NDArray[Any]:
        element: Element = at.payload
        column = element.column
        content = self._columns[column]
        if column.of_event:
            place = scope.event
        else:
            assert column.collection is not None
            place = self._first(column.collection)[scope.event] + self._value(at.args[0], scope).astype(np.int64)
        # The index of an absent object may lie beyond the column; its value is not used.
        place = np.minimum(place * column.width + element.element, len(content) - 1)
        values = content[place] if element.member is None else content[element.member][place]
        return values if at.kind is Kind.FLOAT else values.astype(np.uint32)

    def _count(self, at: Node, scope: _Scope) -> Any:
        n = len(scope.event)
        count = np.zeros(n, np.int64)
        is_open = np.zeros(n, np.bool_)
        for inner in self._inner_scopes(at, scope):
            truth = self._truth(at.args[0], inner)
            count += np.bincount(inner.outer[truth.true], minlength=n)
            is_open |= _any_of(inner.outer, ~truth.false, n)
            if at.op is Op.COUNT:
                self._count_unknown(inner, truth)
        return count.astype(np.uint32) if at.op is Op.COUNT else Truth(count > 0, ~is_open)


def postorder_without_bodies(root: Node) -> list[Node]:
    """Nodes below `root`, arguments first, without the bodies of counts."""
    found: dict[Node, None] = {}
    stack = [(root, False)]
    while stack:
        at, ready = stack.pop()
        if at in found:
            continue
        if ready or at.op in (Op.COUNT, Op.ANY):
            found[at] = None
        else:
            stack.append((at, True))
            stack += [(arg, False) for arg in reversed(at.args)]
    return list(found)


def _belongs(at: Node, scope: _Scope) -> bool:
    """True if a scope is the outermost one in which a node can be computed."""
    if scope.variable is None:
        return not at.free
    return scope.variable in at.free


def _any_of(place: NDArray[np.int64], true: Bools, n: int) -> Bools:
    return _of_events(place[true], n)


def _of_events(place: NDArray[np.int64], n: int) -> Bools:
    """bool[n], True at the given indices."""
    found = np.zeros(n, np.bool_)
    found[place] = True
    return found


def _taken(value: Any, places: NDArray[np.int64]) -> Any:
    if isinstance(value, Truth):
        return Truth(value.true[places], value.false[places])
    return value[places]


def _constant(at: Node, n: int) -> Any:
    if at.kind is Kind.BOOL:
        return Truth(np.full(n, bool(at.payload)), np.full(n, not at.payload))
    if at.kind is Kind.INT:
        return np.full(n, at.payload, np.uint32)
    return np.full(n, float.fromhex(at.payload), F32)


def _where(condition: Truth, if_true: NDArray[Any], if_false: NDArray[Any]) -> NDArray[Any]:
    chosen = np.where(condition.true, if_true, if_false)
    if chosen.dtype == F32:
        chosen[~(condition.true | condition.false)] = np.nan
    return chosen


OPERATIONS: dict[Op, Any] = {
    Op.TO_FLOAT: lambda a: a.astype(F32),
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.DIV: np.divide,
    Op.NEG: np.negative,
    Op.ABS: np.abs,
    Op.SQRT: np.sqrt,
    Op.LOG: float_functions.logarithm,
    Op.EXP: float_functions.exponential,
    Op.ATAN2: float_functions.atan2,
    Op.MIN: float_functions.minimum,
    Op.MAX: float_functions.maximum,
    Op.WHERE: _where,
    Op.BITS: np.bitwise_and,
    Op.REMAINDER: np.remainder,
    Op.LESS: lambda a, b: Truth(a < b, a >= b),
    Op.LESS_EQUAL: lambda a, b: Truth(a <= b, a > b),
    Op.EQUAL: lambda a, b: Truth(a == b, (a < b) | (a > b)),
    Op.AND: lambda a, b: Truth(a.true & b.true, a.false | b.false),
    Op.OR: lambda a, b: Truth(a.true | b.true, a.false & b.false),
    Op.NOT: lambda a: Truth(a.false, a.true),
}
"""The operations on values, with arrays of single precision, counts or Truth; the others need the candidates."""


def passes(scaler: NDArray[np.void], words: Sequence[NDArray[np.uint32]]) -> Bools:
    """For each event, whether it passes a scaler. `words` identify an event, u32[events] each."""
    if scaler["always"]:
        return np.ones(len(words[0]), np.bool_)
    return passes_words(int(scaler["seed"]), int(scaler["limit"]), words)


def passes_words(seed: int, limit: int, words: Sequence[NDArray[np.uint32]]) -> Bools:
    """For each event, whether its hash is below the limit of a scaler."""
    return mix_words(seed, words) < np.uint32(limit)


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions on the events of a batch.

    lines: bool[events, lines], scalers included. candidates: for each line the selected candidates of its accepted
    events, as from Evaluator.selected. unknown: u32[events], undecided selections because of a NaN.
    """

    lines: Bools
    candidates: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    unknown: NDArray[np.uint32]

    @property
    def accepted(self) -> Bools:
        """bool[events]."""
        return cast(Bools, self.lines.any(axis=1))

    @property
    def words(self) -> NDArray[np.uint32]:
        """u32[events, words], 32 lines in each."""
        packed = np.zeros((len(self.lines), line_words(self.lines.shape[1]) * 4), np.uint8)
        bits = np.packbits(self.lines, axis=1, bitorder="little")
        packed[:, : bits.shape[1]] = bits
        return packed.view("<u4")


def decide(
    lines: Sequence[Line], event_words: Sequence[Node], columns: Columns, n_events: int
) -> Iterator[Decisions | None]:
    """Decide by all lines. Yields None during the computation, then the decisions of all events.

    event_words: words that identify an event for scalers.
    """
    decisions = np.zeros((n_events, len(lines)), np.bool_)
    found: list[list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = [[] for _ in lines]
    unknown = np.zeros(n_events, np.uint32)
    variables = [line.variable for line in lines if line.variable is not None]
    for events in pieces(variables, [line.condition for line in lines], columns, n_events):
        evaluator = Evaluator(columns, n_events, events)
        words = [evaluator.numbers(word) for word in event_words]
        for i, line in enumerate(lines):
            record = line.record()
            event, number = evaluator.selected(line)
            passed = passes(record["prescale"], words) & passes(record["postscale"], words)
            decisions[:, i] |= _of_events(event, n_events) & passed
            found[i].append((event[passed[event]], number[passed[event]]))
            yield None
        unknown += evaluator.unknown
    candidates = [
        (np.concatenate([event for event, _ in parts]), np.concatenate([number for _, number in parts]))
        for parts in found
    ]
    yield Decisions(decisions, candidates, unknown)


def pieces(variables: Sequence[Variable], roots: Sequence[Node], columns: Columns, n_events: int) -> Iterator[range]:
    """Groups of at least one event whose expressions are computed together, to limit the number of values."""
    counts = [columns[variable.count][:n_events] for variable in variables]
    most = 1 + max((int(count.max(initial=0)) for count in counts), default=0)
    n = max(1, MAX_VALUES // (most * len(postorder(tuple(roots)))))
    for begin in range(0, max(n_events, 1), n):
        yield range(begin, min(begin + n, n_events))
