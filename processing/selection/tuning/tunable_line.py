"""A line as a function of its cuts: what no cut changes is computed once for each candidate and stored.

The selection of a line is recorded with several values of each cut. Operations that are the same in all recordings are
*leaves*: their values are stored for each candidate. A constant that differs is a *slot*. What lies between the slots
and the condition is evaluated again for each choice of cuts, with the operations of the NumPy evaluator, so decisions
are bit-identical to those of a node.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.evaluation.lines import OPERATIONS, Bools, Truth
from hltnode.processing.selection.expressions.expression import as_node
from hltnode.processing.selection.expressions.nodes import Kind, Node, Op, node
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.tuning.cuts import TunedCut
from hltnode.processing.selection.tuning.errors import NotTunableError, TuningError

Values = tuple[float, ...]
"""A value of each tuned cut of a line."""
MAX_KNOWN = 4096
"""Recordings and constants that a line keeps: some 10 kB each."""
_NO_THRESHOLDS = (Op.BITS, Op.REMAINDER, Op.EQUAL)


@dataclass(slots=True)
class _Slot:
    """A constant that depends on cuts.

    path: arguments that lead to it from the condition. cuts: places of the cuts that it depends on.
    """

    path: tuple[int, ...]
    cuts: tuple[int, ...]
    nodes: tuple[Node, ...]
    least: float = -np.inf
    """Least and largest value for which the stored candidates are complete."""
    most: float = np.inf


@dataclass(frozen=True, slots=True)
class _Leaf:
    place: int


@dataclass(frozen=True, slots=True)
class _SlotPlace:
    place: int


@dataclass(frozen=True, slots=True)
class _Operation:
    op: Op
    args: tuple["_Form", ...]


_Form = _Leaf | _SlotPlace | _Operation


@dataclass(frozen=True, slots=True)
class TunableLine:
    """A line with some tuned cuts.

    place: its place in the configuration. roots: what is stored of each candidate; condition: of which candidates. A
    leaf that is true or false has two roots, because a NaN leaves both false.
    """

    place: int
    line: Line
    cuts: tuple[TunedCut, ...]
    roots: tuple[Node, ...]
    condition: Node
    _conjuncts: tuple[_Form, ...]
    _slots: tuple[_Slot, ...]
    _leaves: tuple[tuple[int, bool], ...]
    _record: Callable[[Mapping[str, float]], Node] = field(repr=False)
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> Values:
        """The values of the configuration."""
        return tuple(cut.base for cut in self.cuts)

    def constants(self, values: Values) -> list[Any]:
        """The constant of each slot: float32 or uint32. Raises TuningError outside of the ranges of the cuts."""
        return [self._kept_constant(place, values) for place in range(len(self._slots))]

    def recorded_constants(self, values: Values) -> list[Any]:
        """The same constants, all from one recording of the line with these cuts."""
        root = self._recorded(values, range(len(self.cuts)))
        return [_value(_at(root, slot.path)) for slot in self._slots]

    @property
    def cuts_of_conditions(self) -> tuple[tuple[int, ...], ...]:
        """The places of the cuts that each condition depends on. A candidate must meet all conditions."""
        return tuple(
            tuple(sorted({cut for place in _slot_places(form) for cut in self._slots[place].cuts}))
            for form in self._conjuncts
        )

    def meeting(self, leaves: Sequence[NDArray[Any]], condition: int, values: Values) -> Bools:
        """bool[candidates]: the stored candidates that meet one condition. leaves: the values of `roots`."""
        form, n = self._conjuncts[condition], len(leaves[0])
        given: list[Any] = [
            Truth(leaves[first], leaves[first + 1]) if is_truth else leaves[first] for first, is_truth in self._leaves
        ]
        slots = {place: np.broadcast_to(self._kept_constant(place, values), n) for place in _slot_places(form)}
        return np.asarray(_computed(form, given, slots).true)

    def selected(self, leaves: Sequence[NDArray[Any]], values: Values) -> Bools:
        """bool[candidates]: the stored candidates that the line selects. leaves: the values of `roots`."""
        passed = np.ones(len(leaves[0]), np.bool_)
        for condition in range(len(self._conjuncts)):
            passed &= self.meeting(leaves, condition, values)
        return passed

    def _kept_constant(self, place: int, values: Values) -> Any:
        slot = self._slots[place]
        key = (place, tuple(values[i] for i in slot.cuts))
        if key not in self._known:
            self._keep(key, self._constant(slot, values))
        return self._known[key]

    def _constant(self, slot: _Slot, values: Values) -> Any:
        constant = _value(_at(self._recorded(values, slot.cuts), slot.path))
        if not slot.least <= constant <= slot.most:
            names = ", ".join(f"{self.cuts[i].name}={values[i]:g}" for i in slot.cuts)
            raise TuningError(f"{names}: the cut does not rise or fall over its range, so candidates are missing")
        return constant

    def _keep(self, key: Any, found: Any) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = found

    def _recorded(self, values: Values, cuts: Sequence[int]) -> Node:
        key = tuple((i, values[i]) for i in cuts)
        if key not in self._known:
            self._keep(key, self._record({self.cuts[i].cut: values[i] for i in cuts}))
        root: Node = self._known[key]
        return root


def tunable_line(trigger: TriggerConfig, cuts: Sequence[TunedCut]) -> tuple[TunableLine | None, dict[str, str]]:
    """The line of some cuts, and why other cuts of it cannot be tuned, by name; no line if none can.

    Raises NotTunableError for a cut that the user named and that cannot be tuned.
    """
    name = cuts[0].line
    place = trigger.line_names.index(name)
    line = trigger.lines[place]

    def record(values: Mapping[str, float]) -> Node:
        return trigger.with_cuts(name, values).condition

    good, recorded, refused = [], [line.condition], {}
    for cut in cuts:
        probes = [record({cut.cut: value}) for value in (cut.low, cut.high)]
        try:
            if probes == [line.condition] * 2:
                raise NotTunableError("it changes no operation of the line")
            _Recordings([line.condition, *probes], [0, 0])
        except NotTunableError as error:
            if cut.asked:
                raise NotTunableError(f"{cut.name}: {error}") from error
            refused[cut.name] = str(error)
        else:
            good.append(cut)
            recorded += probes
    if not good:
        return None, refused
    made = _Recordings(recorded, [i // 2 for i in range(2 * len(good))])
    found = made.line(place, line, good, record)
    for ends in (tuple(cut.low for cut in good), tuple(cut.high for cut in good)):
        if found.recorded_constants(ends) != found.constants(ends):
            # A constant made of two cuts that differs only where both do.
            made = _Recordings(recorded, [i // 2 for i in range(2 * len(good))], together=True)
            return made.line(place, line, good, record), refused
    return found, refused


class _Recordings:
    """What recordings of one line with different cuts have in common.

    recorded: conditions, the first one with the cuts of the configuration. changed: the changed cut of each other.
    together: every constant depends on all cuts.

    Raises NotTunableError.
    """

    def __init__(self, recorded: Sequence[Node], changed: Sequence[int], *, together: bool = False) -> None:
        self.slots: list[_Slot] = []
        self.roots: list[Node] = []
        self.leaves: list[tuple[int, bool]] = []
        self.conjuncts: list[_Form] = []
        self._changed = changed
        self._together = together
        self._places: dict[Node, int] = {}
        self._stored: list[Node] = []
        for nodes, path in _conjuncts(tuple(recorded), ()):
            if _are_same(nodes):
                self._stored.append(nodes[0])
                continue
            form = self._form(nodes, path)
            self.conjuncts.append(form)
            bound = self._loosest(nodes, form)
            if bound is not None:
                self._stored.append(bound)

    def line(
        self, place: int, line: Line, cuts: Sequence[TunedCut], record: Callable[[Mapping[str, float]], Node]
    ) -> TunableLine:
        """The line of these recordings."""
        return TunableLine(
            place,
            line,
            tuple(cuts),
            tuple(self.roots),
            self.stored_condition(),
            tuple(self.conjuncts),
            tuple(self.slots),
            tuple(self.leaves),
            record,
        )

    def stored_condition(self) -> Node:
        """The condition on candidates that some choice of the cuts may select."""
        found = as_node(True)
        for each in self._stored:
            found = node(Op.AND, (found, each), kind=Kind.BOOL)
        return found

    def _form(self, nodes: tuple[Node, ...], path: tuple[int, ...]) -> _Form:
        first = nodes[0]
        if _are_same(nodes):
            return _Leaf(self._leaf(first))
        if any(_shape(at) != _shape(first) for at in nodes):
            raise NotTunableError("its value changes the operations of the line")
        if first.op is Op.CONST and first.kind is not Kind.BOOL:
            cuts = {self._changed[i] for i, at in enumerate(nodes[1:]) if at is not first or self._together}
            self.slots.append(_Slot(path, tuple(sorted(cuts)), nodes))
            return _SlotPlace(len(self.slots) - 1)
        if first.op in _NO_THRESHOLDS:
            raise NotTunableError("it is a number that must be met exactly, or bits")
        if first.op not in OPERATIONS:
            raise NotTunableError("it is a condition on other candidates, which are not stored")
        columns = zip(*(at.args for at in nodes), strict=True)
        return _Operation(first.op, tuple(self._form(of, (*path, i)) for i, of in enumerate(columns)))

    def _leaf(self, at: Node) -> int:
        if at not in self._places:
            self._places[at] = len(self.leaves)
            is_truth = at.kind is Kind.BOOL
            self.leaves.append((len(self.roots), is_truth))
            self.roots += [at, node(Op.NOT, (at,), kind=Kind.BOOL)] if is_truth else [at]
        return self._places[at]

    def _loosest(self, nodes: tuple[Node, ...], form: _Form) -> Node | None:
        """The recording of a comparison with one cut that selects most; None for other conditions."""
        if not isinstance(form, _Operation) or form.op not in (Op.LESS, Op.LESS_EQUAL):
            return None
        sides = [isinstance(arg, _SlotPlace) for arg in form.args]
        if sides.count(True) != 1 or not isinstance(form.args[1 - sides.index(True)], _Leaf):
            return None
        side = sides.index(True)
        place = form.args[side]
        assert isinstance(place, _SlotPlace)
        if len(self.slots[place.place].cuts) > 1:
            # The recordings change one cut at a time, so none of them has the loosest constant.
            return None
        values = [_value(at.args[side]) for at in nodes]
        end = min(values) if side == 0 else max(values)
        # A larger constant on the left selects less, one on the right selects more.
        if side == 0:
            self.slots[place.place].least = float(end)
        else:
            self.slots[place.place].most = float(end)
        return nodes[values.index(end)]


def _conjuncts(nodes: tuple[Node, ...], path: tuple[int, ...]) -> Iterator[tuple[tuple[Node, ...], tuple[int, ...]]]:
    """The conditions that must all be true, in each recording, with their paths."""
    if _are_same(nodes) or any(at.op is not Op.AND for at in nodes):
        yield nodes, path
        return
    for i in (0, 1):
        yield from _conjuncts(tuple(at.args[i] for at in nodes), (*path, i))


def _are_same(nodes: tuple[Node, ...]) -> bool:
    return all(at is nodes[0] for at in nodes)


def _shape(at: Node) -> Any:
    """What recordings must have in common but for the values of constants."""
    return at.op, at.kind, len(at.args), at.unit, None if at.op is Op.CONST else at.payload


def _at(root: Node, path: tuple[int, ...]) -> Node:
    for i in path:
        root = root.args[i]
    return root


def _value(constant: Node) -> Any:
    """The value of a constant in the type of the kernel. Raises TuningError where there is none."""
    if constant.op is not Op.CONST:
        raise TuningError("a cut changes the operations of its line")
    return np.float32(float.fromhex(constant.payload)) if constant.kind is Kind.FLOAT else np.uint32(constant.payload)


def _slot_places(form: _Form) -> Iterator[int]:
    """The slots of a form."""
    match form:
        case _SlotPlace():
            yield form.place
        case _Operation():
            for arg in form.args:
                yield from _slot_places(arg)


def _computed(form: _Form, leaves: Sequence[Any], slots: Mapping[int, Any]) -> Any:
    match form:
        case _Leaf():
            return leaves[form.place]
        case _SlotPlace():
            return slots[form.place]
    args = [_computed(arg, leaves, slots) for arg in form.args]
    with np.errstate(all="ignore"):
        return OPERATIONS[form.op](*args)
