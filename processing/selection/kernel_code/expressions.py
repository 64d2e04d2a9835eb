"""Writes expressions as C++: each operation once, in the outermost scope that can compute it.

Every thread computes the values that depend only on the event. Values of a candidate are computed in the loop over its
collection. One step of that loop takes as many candidates as a thread has lanes (expressions/lanes.cuh), so these
values have a lane type. A truth value is two variables: t (true) and f (false); if no NaN is possible, f is !t.

Operations and their order are those of evaluation/lines.py, so results are bit-identical.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.expressions.nodes import Element, Kind, Node, Op, Variable, postorder
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.networks.network import Network
from hltnode.processing.selection.models.table import ModelTable

_BINARY = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.BITS: "&", Op.REMAINDER: "%"}
_CALLS = {
    Op.SQRT: "hlt::lines::square_root",
    Op.LOG: "hlt::lines::natural_logarithm",
    Op.EXP: "hlt::lines::exponential",
    Op.ATAN2: "hlt::atan2_approximate",
    Op.MIN: "hlt::lines::minimum",
    Op.MAX: "hlt::lines::maximum",
}
_COMPARISONS = {Op.LESS: ("<", ">="), Op.LESS_EQUAL: ("<=", ">")}
_TYPES = {Kind.FLOAT: "float", Kind.INT: "uint32_t", Kind.BOOL: "bool"}
_LANES = {Kind.FLOAT: "hlt::lines::floats", Kind.INT: "hlt::lines::uints", Kind.BOOL: "hlt::lines::truths"}
INDENT = "    "
_MODEL_INCLUDES: Mapping[type[ModelTable], str] = {
    Ensemble: "selection/models/trees.cuh",
    Network: "selection/models/networks/network.cuh",
}


def model_includes(models: Iterable[ModelTable]) -> tuple[str, ...]:
    """The headers of kernels with some models."""
    return tuple(sorted({_MODEL_INCLUDES[type(model)] for model in models}))


@dataclass(slots=True, eq=False)
class Scope:
    """A scope of the kernel for values: the body of a loop, or of the kernel (without variable)."""

    variable: Variable | None = None
    lines: list[str] = field(default_factory=list)
    names: dict[Node, str] = field(default_factory=dict)
    columns: dict[Column, str] = field(default_factory=dict)
    """Columns of the loop's collection: the parts that belong to the event."""


def shared_counts(conditions: Sequence[Node]) -> list[list[Node]]:
    """Counts over collections that depend on no candidate, by steps: counts of a step depend only on earlier steps."""
    step: dict[Node, int] = {}
    steps: list[list[Node]] = []
    for at in postorder(tuple(conditions)):
        step[at] = max((step[arg] for arg in at.args), default=0)
        if at.op in (Op.COUNT, Op.ANY) and not at.free:
            if step[at] == len(steps):
                steps.append([])
            steps[step[at]].append(at)
            step[at] += 1
    return steps


def by_variable(variables: Sequence[Variable | None]) -> dict[Variable | None, list[int]]:
    """Indices of equal variables in a list, in order of appearance."""
    groups: dict[Variable | None, list[int]] = {}
    for place, variable in enumerate(variables):
        groups.setdefault(variable, []).append(place)
    return groups


class ExpressionWriter:
    """Writes the body of one kernel.

    members: C++ names of columns and of the functions `first` of their collections.
    """

    def __init__(self, members: Mapping[Column, str], firsts: Mapping[Collection, str]) -> None:
        self._members = members
        self._firsts = firsts
        self._event = Scope()
        self._stack = [self._event]
        self._n_names = 0
        self._lanes: Variable | None = None
        """The variable of the loop that processes several candidates per step."""
        self._counts_unknown = True
        """Whether an unknown condition is counted as an undecided selection."""
        self._uses_parts = True
        """Whether columns of a loop are read by the pointer to the part of the event."""

    def _write_counts(self, step: Sequence[Node], begin: int, selecting: Set[Node]) -> None:
        """Counts of one step, each collection in one loop.

        counted[begin + 2 i] counts the true cases of the i-th count, the next element the unknown ones. selecting:
        nodes that selections depend on.
        """
        out = self._event.lines
        for variable, places in by_variable([at.payload for at in step]).items():
            assert variable is not None
            loop = self._loop(variable, lanes=True)
            totals: list[str] = []
            for place in places:
                name = self._count_in(loop, step[place])
                totals += [
                    f"if ({name} != 0) atomicAdd(&counted[{begin + 2 * place}], {name});",
                    f"if ({name}_unknown != 0) atomicAdd(&counted[{begin + 2 * place + 1}], {name}_unknown);",
                ]
                out += [f"uint32_t {name} = 0, {name}_unknown = 0;"]
            self._close(loop)
            out += totals
        out.append("__syncthreads();")
        for place, at in enumerate(step):
            self._counts_unknown = at in selecting
            self._take_count(at, f"counted[{begin + 2 * place}]", f"counted[{begin + 2 * place + 1}]")

    @contextmanager
    def _inside(self, condition: str) -> Iterator[None]:
        """A block that runs if a condition holds; values of the block are declared inside."""
        around = self._stack[-1]
        block = Scope(around.variable, names=dict(around.names), columns=around.columns)
        self._stack.append(block)
        yield
        assert self._stack.pop() is block
        around.lines += [f"if ({condition}) {{", *(INDENT + text for text in block.lines), "}"]

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _loop(self, variable: Variable, *, lanes: bool = False) -> Scope:
        """Open a loop. lanes: the threads of the block share its candidates, and each processes several per step."""
        scope = Scope(variable)
        self._stack.append(scope)
        if lanes:
            assert self._lanes is None
            self._lanes = variable
        return scope

    def _close(self, loop: Scope) -> None:
        """Write the loop into the enclosing scope."""
        assert loop.variable is not None
        assert self._stack.pop() is loop
        variable = loop.variable
        counter = counter_of(variable)
        begin, step, head = "0", "1", []
        if variable == self._lanes:
            self._lanes = None
            begin, step = (f"{word}.x * hlt::lines::n_lanes" for word in ("threadIdx", "blockDim"))
            head = [f"const hlt::lines::lanes {lanes_of(variable)}({counter}, n_{counter});"]
        self._stack[-1].lines += [
            "{",
            *(INDENT + text for text in self._parts(loop)),
            INDENT + f"const uint32_t n_{counter} = {self._members[variable.count]}[blockIdx.x];",
            INDENT + f"for (uint32_t {counter} = {begin}; {counter} < n_{counter}; {counter} += {step}) {{",
            *(INDENT * 2 + text for text in (*head, *loop.lines)),
            INDENT + "}",
            "}",
        ]

    def _parts(self, loop: Scope) -> list[str]:
        """The parts of columns that belong to the event."""
        assert loop.variable is not None
        if not loop.columns:
            return []
        first = f"first_{loop.variable.level}"
        of = loop.variable.collection
        if of not in self._firsts:
            # Only columns of collections with the same places are read, such as the states of tracks.
            of = next(column.collection for column in loop.columns if column.collection is not None)
        texts = [f"const uint32_t {first} = {self._firsts[of]}(blockIdx.x);"]
        for column, name in loop.columns.items():
            width = "" if column.width == 1 else f" * {column.width}u"
            texts.append(f"const hlt::event_column {name}({self._members[column]}, {first}{width});")
        return texts

    def _home(self, at: Node) -> Scope:
        """The outermost scope in which a node can be computed."""
        for scope in reversed(self._stack):
            if scope.variable is None or scope.variable in at.free:
                return scope
        raise AssertionError

    def _name(self, prefix: str) -> str:
        self._n_names += 1
        return f"{prefix}{self._n_names}"

    # --- values -------------------------------------------------------------------------------------------------------

    def _in_lanes(self, at: Node) -> bool:
        return self._lanes in at.free

    def _type(self, at: Node) -> str:
        return (_LANES if self._in_lanes(at) else _TYPES)[at.kind]

    def _value(self, at: Node, *, lanes: bool = False) -> str:
        """A number, as a name or a literal. lanes: one value per lane."""
        value = _literal(at) if at.op is Op.CONST else self._made(at)
        return f"hlt::lines::in_lanes({value})" if lanes and not self._in_lanes(at) else value

    def _truth(self, at: Node, *, lanes: bool = False) -> tuple[str, str]:
        """Whether the node is true, and whether it is false. lanes: per lane."""
        if at.op is Op.NOT:
            true, false = self._truth(at.args[0], lanes=lanes)
            return false, true
        if at.op is Op.CONST:
            true, false = ("true", "false") if at.payload else ("false", "true")
        else:
            true = self._made(at)
            false = f"{true}_f" if at.may_be_unknown else f"({true} == 0)" if self._in_lanes(at) else f"(!{true})"
        if lanes and not self._in_lanes(at):
            return f"hlt::lines::in_lanes({true})", f"hlt::lines::in_lanes({false})"
        return true, false

    def _made(self, root: Node) -> str:
        """The variable that holds a node. Its arguments are written before it, each into its own scope."""
        for at in self._missing(root):
            scope = self._home(at)
            if at.kind is Kind.BOOL:
                self._make_truth(scope, at)
            elif at.op is Op.COUNT:
                self._count_here(scope, at)
            else:
                name = self._name("v")
                scope.lines.append(f"const {self._type(at)} {name} = {self._operation(at)};")
                scope.names[at] = name
        return self._home(root).names[root]

    def _missing(self, root: Node) -> Iterator[Node]:
        """Nodes below `root` that are in no scope yet, arguments first.

        The loop of a count computes its body; numbers of candidates are computed at their use.
        """
        stack = [(root, False)]
        while stack:
            at, ready = stack.pop()
            if at.op is Op.CONST or at in self._home(at).names:
                continue
            if ready:
                if at.op is not Op.NOT:
                    yield at
                continue
            stack.append((at, True))
            if at.op not in (Op.COUNT, Op.ANY):
                stack += [(arg, False) for arg in reversed(at.args) if arg.op is not Op.INDEX]

    def _not_made(self, roots: Sequence[Node]) -> set[Node]:
        """The nodes that some nodes need, bodies of counts included."""
        found: set[Node] = set()
        left = list(roots)
        while left:
            at = left.pop()
            if at.op is not Op.CONST and at not in found and at not in self._home(at).names:
                found.add(at)
                left += at.args
        return found

    def _operation(self, at: Node) -> str:
        lanes = self._in_lanes(at)
        if at.op is Op.INDEX:
            return f"{lanes_of(at.payload)}.numbers()" if lanes else counter_of(at.payload)
        if at.op is Op.LOAD:
            return self._load(at)
        if at.op is Op.WHERE:
            return self._choice(at)
        if isinstance(at.payload, ModelTable):
            inputs = ", ".join((self._members[at.payload.column], *(self._value(arg, lanes=lanes) for arg in at.args)))
            if isinstance(at.payload, Network):
                return f"hlt::networks::response_of<{at.payload.width}u>({inputs})"
            return f"hlt::trees::sum_of({inputs})"
        if at.op in _CALLS:
            return f"{_CALLS[at.op]}({', '.join(self._value(arg, lanes=lanes) for arg in at.args)})"
        args = [self._value(arg) for arg in at.args]
        if at.op in _BINARY:
            return f"{args[0]} {_BINARY[at.op]} {args[1]}"
        return {
            Op.TO_FLOAT: f"hlt::lines::as_floats({args[0]})" if lanes else f"static_cast<float>({args[0]})",
            Op.NEG: f"-{args[0]}",
            Op.ABS: f"hlt::lines::absolute({args[0]})",
        }[at.op]

    def _choice(self, at: Node) -> str:
        lanes = self._in_lanes(at)
        true, false = self._truth(at.args[0], lanes=lanes)
        a, b = self._value(at.args[1], lanes=lanes), self._value(at.args[2], lanes=lanes)
        if not at.args[0].may_be_unknown:
            return f"{true} ? {a} : {b}"
        neither = "hlt::lines::not_a_number()"
        neither = f"hlt::lines::in_lanes({neither})" if lanes else neither
        return f"{true} ? {a} : ({false} ? {b} : {neither})"

    def _load(self, at: Node) -> str:
        element: Element = at.payload
        column = element.column
        width = "" if column.width == 1 else f" * {column.width}u"
        offset = f" + {element.element}u" if element.element else ""
        if column.of_event:
            place = f"blockIdx.x{width}{offset}"
        else:
            assert column.collection is not None
            first = f"{self._firsts[column.collection]}(blockIdx.x)"
            of_candidate = at.args[0].op is Op.INDEX and self._uses_parts
            if of_candidate and not (self._in_lanes(at) and (width or element.member)):
                index = "" if self._in_lanes(at) else counter_of(at.args[0].payload)
                parts = self._home(at).columns
                name = parts.setdefault(column, f"c{at.args[0].payload.level}_{len(parts)}")
                if not index:
                    return f"{lanes_of(at.args[0].payload)}.load({name})"
                return _member(f"{name}[{index}{width}{offset}]", element)
            index = self._value(at.args[0])
            if self._in_lanes(at):
                assert self._lanes is not None
                member = f"&hlt::{column.record.name}::{element.member}, " if column.record and element.member else ""
                return (
                    f"{lanes_of(self._lanes)}.gather({self._members[column]}, {member}{first}, {index}, "
                    f"{column.width}u, {element.element}u)"
                )
            place = f"({first} + {index}){width}{offset}"
        return _member(f"{self._members[column]}[{place}]", element)

    def _make_truth(self, scope: Scope, at: Node) -> None:
        if at.op is Op.ANY:
            self._count_here(scope, at)
            return
        name = scope.names[at] = self._name("t")
        true, false = self._truth_operation(at)
        scope.lines.append(f"const {self._type(at)} {name} = {true};")
        if at.may_be_unknown:
            scope.lines.append(f"const {self._type(at)} {name}_f = {false};")

    def _truth_operation(self, at: Node) -> tuple[str, str]:
        if at.op in (Op.AND, Op.OR):
            lanes = self._in_lanes(at)
            (a, not_a), (b, not_b) = (self._truth(arg, lanes=lanes) for arg in at.args)
            return (f"{a} & {b}", f"{not_a} | {not_b}") if at.op is Op.AND else (f"{a} | {b}", f"{not_a} & {not_b}")
        a, b = self._value(at.args[0]), self._value(at.args[1])
        if at.op is Op.EQUAL:
            return f"{a} == {b}", f"({a} < {b}) | ({a} > {b})"
        sign, opposite = _COMPARISONS[at.op]
        return f"{a} {sign} {b}", f"{a} {opposite} {b}"

    # --- counts over a collection -------------------------------------------------------------------------------------

    def _count_here(self, scope: Scope, at: Node) -> None:
        """A count that depends on a candidate: a loop inside the loop of the candidate."""
        depth = self._stack.index(scope) + 1
        inner, self._stack = self._stack[depth:], self._stack[:depth]
        loop = self._loop(at.payload)
        name = self._count_in(loop, at)
        c_type = _LANES[Kind.INT] if self._in_lanes(at) else _TYPES[Kind.INT]
        scope.lines.append(f"{c_type} {name} = {c_type}{{}}, {name}_unknown = {c_type}{{}};")
        self._close(loop)
        self._stack += inner
        self._take_count(at, name, f"{name}_unknown", scope)

    def _count_in(self, loop: Scope, at: Node) -> str:
        """Count in an open loop; returns the name of the counter. `<name>_unknown` counts the unknown cases."""
        name = self._name("n")
        assert loop.variable is not None
        of_lanes = loop.variable == self._lanes
        true, false = self._truth(at.args[0], lanes=of_lanes)
        if of_lanes:
            ones = lanes_of(loop.variable) + ".count({})"
        elif self._in_lanes(at):
            ones = "hlt::lines::word_where({}, 1u)"
        else:
            ones = "{} ? 1u : 0u"
        loop.lines.append(f"{name} += {ones.format(true)};")
        if at.args[0].may_be_unknown:
            loop.lines.append(f"{name}_unknown += {ones.format(f'({true} | {false}) == 0')};")
        return name

    def _take_count(self, at: Node, true: str, unknown: str, scope: Scope | None = None) -> None:
        """The value of a count."""
        scope = scope or self._event
        lanes = self._in_lanes(at)
        if at.op is Op.COUNT:
            name = scope.names[at] = self._name("v")
            scope.lines.append(f"const {self._type(at)} {name} = {true};")
            if at.args[0].may_be_unknown and self._counts_unknown:
                if self._lanes is not None and scope is not self._event:
                    # Count it for each candidate, even if it does not depend on the candidate.
                    of_each = unknown if lanes else f"hlt::lines::in_lanes({unknown})"
                    unknown = f"{lanes_of(self._lanes)}.sum({of_each})"
                once = "threadIdx.x == 0 && " if scope is self._event else ""
                scope.lines.append(f"if ({once}{unknown} != 0) atomicAdd(&unknown, {unknown});")
            return
        name = scope.names[at] = self._name("t")
        both = "&" if lanes else "&&"
        scope.lines.append(f"const {self._type(at)} {name} = {true} != 0u;")
        if at.may_be_unknown:
            scope.lines.append(f"const {self._type(at)} {name}_f = ({true} == 0u) {both} ({unknown} == 0u);")


def firsts_of(members: Mapping[Column, str]) -> dict[Collection, str]:
    """The C++ names of the functions `first` of collections, from those of their columns."""
    return {
        column.collection: f"{name.rpartition('.')[0]}.first"
        for column, name in members.items()
        if column.collection is not None and not column.of_event
    }


def _member(loaded: str, element: Element) -> str:
    return f"{loaded}.{element.member}" if element.member else loaded


def counter_of(variable: Variable) -> str:
    """The number of the current object of a loop."""
    return f"i{variable.level}"


def lanes_of(variable: Variable) -> str:
    """The objects of one step of a loop."""
    return f"at{variable.level}"


def _literal(at: Node) -> str:
    if at.kind is Kind.INT:
        return f"{at.payload}u"
    if at.payload == "nan":
        return "hlt::lines::not_a_number()"
    return f"({at.payload}f)"
