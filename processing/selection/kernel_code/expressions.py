"""Writes expressions as C++: each operation once, in the outermost place of the kernel where it can be computed.

Values that depend on the event alone are computed by every thread, those of a candidate in the loop over its
collection. Truth values are two variables: t, it is true, and f, it is false; where no NaN can come in, f is !t.

The same operations in the same order as in evaluation/lines.py: results are equal bit by bit.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.expressions.expression import Element, Kind, Node, Op, Variable, postorder

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
INDENT = "    "


@dataclass(slots=True, eq=False)
class Scope:
    """A place of the kernel where values are computed: the body of a loop, or of the kernel (without variable)."""

    variable: Variable | None = None
    lines: list[str] = field(default_factory=list)
    names: dict[Node, str] = field(default_factory=dict)
    columns: dict[Column, str] = field(default_factory=dict)
    """Those of the collection that the loop runs over: their parts that belong to the event."""


def shared_counts(conditions: Sequence[Node]) -> list[list[Node]]:
    """Counts over collections that no candidate decides, by steps: those of a step depend on earlier ones alone."""
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
    """Places of equal variables in a list, in the order in which they come."""
    groups: dict[Variable | None, list[int]] = {}
    for place, variable in enumerate(variables):
        groups.setdefault(variable, []).append(place)
    return groups


class ExpressionWriter:
    """Writes the body of one kernel. members: how the kernel reaches columns and the functions `first` of their
    collections."""

    def __init__(self, members: Mapping[Column, str], firsts: Mapping[Collection, str]) -> None:
        self._members = members
        self._firsts = firsts
        self._event = Scope()
        self._stack = [self._event]
        self._n_names = 0
        self._counts_unknown = True
        """Whether what a NaN leaves open is counted as a selection."""

    def _write_counts(self, step: Sequence[Node], begin: int, selecting: Set[Node]) -> None:
        """Counts of one step, each collection in one loop; counted[begin + 2 i] is where the i-th is true, the next
        where it is unknown. selecting: what selections depend on."""
        out = self._event.lines
        for variable, places in by_variable([at.payload for at in step]).items():
            assert variable is not None
            loop = self._loop(variable)
            totals: list[str] = []
            for place in places:
                name = self._count_in(loop, step[place])
                totals += [
                    f"if ({name} != 0) atomicAdd(&counted[{begin + 2 * place}], {name});",
                    f"if ({name}_unknown != 0) atomicAdd(&counted[{begin + 2 * place + 1}], {name}_unknown);",
                ]
                out += [f"uint32_t {name} = 0, {name}_unknown = 0;"]
            self._close(loop, "threadIdx.x", "blockDim.x")
            out += totals
        out.append("__syncthreads();")
        for place, at in enumerate(step):
            self._counts_unknown = at in selecting
            self._take_count(at, f"counted[{begin + 2 * place}]", f"counted[{begin + 2 * place + 1}]")

    @contextmanager
    def _inside(self, condition: str) -> Iterator[None]:
        """A block that runs where a condition holds; what is made in it is made there."""
        around = self._stack[-1]
        block = Scope(around.variable, names=dict(around.names), columns=around.columns)
        self._stack.append(block)
        yield
        assert self._stack.pop() is block
        around.lines += [f"if ({condition}) {{", *(INDENT + text for text in block.lines), "}"]

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _loop(self, variable: Variable) -> Scope:
        scope = Scope(variable)
        self._stack.append(scope)
        return scope

    def _close(self, loop: Scope, begin: str, step: str) -> None:
        """Write the loop into the scope around it."""
        assert loop.variable is not None
        assert self._stack.pop() is loop
        variable = loop.variable
        count = f"{self._members[variable.count]}[blockIdx.x]"
        counter = counter_of(variable)
        self._stack[-1].lines += [
            "{",
            *(INDENT + text for text in self._parts(loop)),
            INDENT + f"const uint32_t n_{counter} = {count};",
            INDENT + f"for (uint32_t {counter} = {begin}; {counter} < n_{counter}; {counter} += {step}) {{",
            *(INDENT * 2 + text for text in loop.lines),
            INDENT + "}",
            "}",
        ]

    def _parts(self, loop: Scope) -> list[str]:
        """The parts of columns that belong to the event."""
        assert loop.variable is not None
        if not loop.columns:
            return []
        first = f"first_{loop.variable.level}"
        texts = [f"const uint32_t {first} = {self._firsts[loop.variable.collection]}(blockIdx.x);"]
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

    def _value(self, at: Node) -> str:
        """A number, by name or as a literal."""
        if at.op is Op.CONST:
            return _literal(at)
        return self._made(at)

    def _truth(self, at: Node) -> tuple[str, str]:
        """Whether it is true, whether it is false."""
        if at.op is Op.CONST:
            return ("true", "false") if at.payload else ("false", "true")
        if at.op is Op.NOT:
            true, false = self._truth(at.args[0])
            return false, true
        name = self._made(at)
        return name, f"{name}_f" if at.may_be_unknown else f"(!{name})"

    def _made(self, root: Node) -> str:
        """The variable that holds a node; what it needs is written before, each into its own scope."""
        for at in self._missing(root):
            scope = self._home(at)
            if at.kind is Kind.BOOL:
                self._make_truth(scope, at)
            elif at.op is Op.COUNT:
                self._count_here(scope, at)
            else:
                name = self._name("v")
                c_type = "float" if at.kind is Kind.FLOAT else "uint32_t"
                scope.lines.append(f"const {c_type} {name} = {self._operation(at)};")
                scope.names[at] = name
        return self._home(root).names[root]

    def _missing(self, root: Node) -> Iterator[Node]:
        """Nodes below `root` that no scope has yet, arguments first. The body of a count is computed in its loop."""
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
                stack += [(arg, False) for arg in reversed(at.args)]

    def _operation(self, at: Node) -> str:
        if at.op is Op.INDEX:
            return counter_of(at.payload)
        if at.op is Op.LOAD:
            return self._load(at)
        if at.op is Op.WHERE:
            return self._choice(at)
        args = [self._value(arg) for arg in at.args]
        if at.op in _BINARY:
            return f"{args[0]} {_BINARY[at.op]} {args[1]}"
        if at.op in _CALLS:
            return f"{_CALLS[at.op]}({', '.join(args)})"
        return {
            Op.TO_FLOAT: f"static_cast<float>({args[0]})",
            Op.NEG: f"-{args[0]}",
            Op.ABS: f"hlt::lines::absolute({args[0]})",
        }[at.op]

    def _choice(self, at: Node) -> str:
        true, false = self._truth(at.args[0])
        a, b = self._value(at.args[1]), self._value(at.args[2])
        if not at.args[0].may_be_unknown:
            return f"{true} ? {a} : {b}"
        return f"{true} ? {a} : {false} ? {b} : hlt::lines::not_a_number()"

    def _load(self, at: Node) -> str:
        element: Element = at.payload
        column = element.column
        width = "" if column.width == 1 else f" * {column.width}u"
        offset = f" + {element.element}u" if element.element else ""
        if column.of_event:
            place = f"blockIdx.x{width}{offset}"
        else:
            assert column.collection is not None
            index = self._value(at.args[0])
            if at.args[0].op is Op.INDEX:
                parts = self._home(at).columns
                name = parts.setdefault(column, f"c{at.args[0].payload.level}_{len(parts)}")
                return _member(f"{name}[{index}{width}{offset}]", element)
            place = f"({self._firsts[column.collection]}(blockIdx.x) + {index}){width}{offset}"
        return _member(f"{self._members[column]}[{place}]", element)

    def _make_truth(self, scope: Scope, at: Node) -> None:
        if at.op is Op.ANY:
            self._count_here(scope, at)
            return
        name = scope.names[at] = self._name("t")
        true, false = self._truth_operation(at)
        scope.lines.append(f"const bool {name} = {true};")
        if at.may_be_unknown:
            scope.lines.append(f"const bool {name}_f = {false};")

    def _truth_operation(self, at: Node) -> tuple[str, str]:
        if at.op in (Op.AND, Op.OR):
            (a, not_a), (b, not_b) = self._truth(at.args[0]), self._truth(at.args[1])
            return (f"{a} & {b}", f"{not_a} | {not_b}") if at.op is Op.AND else (f"{a} | {b}", f"{not_a} & {not_b}")
        a, b = self._value(at.args[0]), self._value(at.args[1])
        if at.op is Op.EQUAL:
            return f"{a} == {b}", f"({a} < {b}) | ({a} > {b})"
        sign, opposite = _COMPARISONS[at.op]
        return f"{a} {sign} {b}", f"{a} {opposite} {b}"

    # --- counts over a collection -------------------------------------------------------------------------------------

    def _count_here(self, scope: Scope, at: Node) -> None:
        """A count that depends on a candidate: a loop inside that of the candidate."""
        depth = self._stack.index(scope) + 1
        inner, self._stack = self._stack[depth:], self._stack[:depth]
        loop = self._loop(at.payload)
        name = self._count_in(loop, at)
        scope.lines.append(f"uint32_t {name} = 0, {name}_unknown = 0;")
        self._close(loop, "0", "1")
        self._stack += inner
        self._take_count(at, name, f"{name}_unknown", scope)

    def _count_in(self, loop: Scope, at: Node) -> str:
        """Count in an open loop; the name of the counter, `<name>_unknown` is that of the unknown."""
        name = self._name("n")
        true, false = self._truth(at.args[0])
        loop.lines.append(f"{name} += {true} ? 1u : 0u;")
        if at.args[0].may_be_unknown:
            loop.lines.append(f"{name}_unknown += {true} | {false} ? 0u : 1u;")
        return name

    def _take_count(self, at: Node, true: str, unknown: str, scope: Scope | None = None) -> None:
        """What a count says."""
        scope = scope or self._event
        if at.op is Op.COUNT:
            name = scope.names[at] = self._name("v")
            scope.lines.append(f"const uint32_t {name} = {true};")
            if at.args[0].may_be_unknown and self._counts_unknown:
                once = "threadIdx.x == 0 && " if scope is self._event else ""
                scope.lines.append(f"if ({once}{unknown} != 0) atomicAdd(&unknown, {unknown});")
            return
        name = scope.names[at] = self._name("t")
        scope.lines.append(f"const bool {name} = {true} != 0;")
        if at.may_be_unknown:
            scope.lines.append(f"const bool {name}_f = {true} == 0 && {unknown} == 0;")


def _member(loaded: str, element: Element) -> str:
    return f"{loaded}.{element.member}" if element.member else loaded


def counter_of(variable: Variable) -> str:
    """The number of the object that a loop is at."""
    return f"i{variable.level}"


def _literal(at: Node) -> str:
    if at.kind is Kind.INT:
        return f"{at.payload}u"
    if at.payload == "nan":
        return "hlt::lines::not_a_number()"
    return f"({at.payload}f)"
