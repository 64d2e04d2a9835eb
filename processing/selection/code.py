"""Writes the kernel of all lines: one block per event, every expression once, each collection in one loop.

Values that depend on the event alone are computed by every thread. Counts over collections that depend on no candidate
are made first, in parallel, in as many steps as they depend on one another. Then each collection is taken once: a
thread takes a candidate through all lines on it. Truth values are two variables: t, it is true, and f, it is false;
where no NaN can come in, f is !t.

The same operations in the same order as in evaluate.py: results are equal bit by bit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.framework.limits import line_words
from hltnode.processing.selection.candidate_code import CandidateWriter
from hltnode.processing.selection.expression import Element, Kind, Node, Op, Variable, postorder
from hltnode.processing.selection.line import Line

INCLUDES = ("selection/functions.cuh", "selection/scalers.cuh")

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
_INDENT = "    "


@dataclass(slots=True)
class _Scope:
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


class KernelWriter:
    """Writes one kernel. members: how the kernel reaches columns and the functions `first` of their collections.
    candidates: writes what is reported of candidates, None: nothing is."""

    def __init__(
        self,
        members: Mapping[Column, str],
        firsts: Mapping[Collection, str],
        candidates: CandidateWriter | None = None,
    ) -> None:
        self._members = members
        self._firsts = firsts
        self._candidates = candidates
        self._event = _Scope()
        self._stack = [self._event]
        self._n_names = 0

    def write(self, name: str, lines: Sequence[Line], event_words: Sequence[Node]) -> str:
        """The kernel `name`. event_words: by what scalers know an event."""
        n_words = line_words(len(lines))
        steps = shared_counts([line.condition for line in lines])
        n_counts = 2 * sum(len(step) for step in steps)
        out = self._event.lines
        out += [
            "if (!p.takes(blockIdx.x)) return;",
            f"__shared__ uint32_t selected[{n_words}], decisions[{n_words}], unknown;",
            f"__shared__ uint32_t counted[{max(n_counts, 1)}];",
            *(() if self._candidates is None else self._candidates.shared),
            f"for (uint32_t i = threadIdx.x; i < {n_words}u; i += blockDim.x) selected[i] = decisions[i] = 0;",
            f"for (uint32_t i = threadIdx.x; i < {max(n_counts, 1)}u; i += blockDim.x) counted[i] = 0;",
            "if (threadIdx.x == 0) unknown = 0;",
            "__syncthreads();",
        ]
        begin = 0
        for step in steps:
            self._write_counts(step, begin)
            begin += 2 * len(step)
        for variable, places in by_variable([line.variable for line in lines]).items():
            self._write_lines(variable, [(place, lines[place]) for place in places])
        words = ", ".join(self._value(word) for word in event_words)
        out += [
            "__syncthreads();",
            f"const uint32_t event_words[{len(event_words)}] = {{{words}}};",
            f"for (uint32_t i = threadIdx.x; i < {len(lines)}u; i += blockDim.x) {{",
            _INDENT + "if ((selected[i / 32] >> i % 32 & 1u) == 0) continue;",
            _INDENT + "const hlt::line_record line = p.line_table[i];",
            _INDENT + "if (hlt::scaler_passes(line.prescale, event_words) && "
            "hlt::scaler_passes(line.postscale, event_words))",
            _INDENT * 2 + "atomicOr(&decisions[i / 32], 1u << i % 32);",
            "}",
            "__syncthreads();",
            f"for (uint32_t i = threadIdx.x; i < {n_words}u; i += blockDim.x)",
            _INDENT + f"p.events.lines[static_cast<uint64_t>(blockIdx.x) * {n_words}u + i] = decisions[i];",
            "if (threadIdx.x == 0) {",
            _INDENT + "uint32_t any = 0;",
            _INDENT + f"for (uint32_t i = 0; i < {n_words}u; ++i) any |= decisions[i];",
            _INDENT + "p.events.accepted[blockIdx.x] = any != 0 ? 1 : 0;",
            _INDENT + "p.events.unknown_selections[blockIdx.x] = unknown;",
            "}",
        ]
        if self._candidates is not None:
            self._write_candidates(self._candidates, n_words)
        return "\n".join([f"HLT_KERNEL({name})", "{", *(_INDENT + text for text in out), "}", ""])

    def _write_counts(self, step: Sequence[Node], begin: int) -> None:
        """Counts of one step, each collection in one loop; counted[begin + 2 i] is where the i-th is true, the next
        where it is unknown."""
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
            self._take_count(at, f"counted[{begin + 2 * place}]", f"counted[{begin + 2 * place + 1}]")

    def _write_lines_on_events(self, lines: Sequence[tuple[int, Line]]) -> None:
        """All lines that look at the event alone."""
        truths = [(place, line, *self._truth(line.condition)) for place, line in lines]
        self._event.lines.append("if (threadIdx.x == 0) {")
        for place, line, true, false in truths:
            self._event.lines.append(_INDENT + f"if ({true}) atomicOr(&selected[{place // 32}], {1 << place % 32}u);")
            if line.condition.may_be_unknown:
                self._event.lines.append(_INDENT + f"if (!{true} && !{false}) atomicAdd(&unknown, 1u);")
        self._event.lines.append("}")

    def _write_lines(self, variable: Variable | None, lines: Sequence[tuple[int, Line]]) -> None:
        """All lines on one collection."""
        out = self._event.lines
        words = sorted({place // 32 for place, _ in lines})
        if variable is None:
            self._write_lines_on_events(lines)
            return
        name = f"of_{variable.collection.name}"
        unknown = any(line.condition.may_be_unknown for _, line in lines)
        loop = self._loop(variable)
        masks = {word: f"lines_{word}" for word in words}
        loop.lines += [f"uint32_t {mask} = 0;" for mask in masks.values()]
        for place, line in lines:
            true, false = self._truth(line.condition)
            loop.lines.append(f"{masks[place // 32]} |= {true} ? {1 << place % 32}u : 0u;")
            if line.condition.may_be_unknown:
                loop.lines.append(f"{name}_unknown += {true} | {false} ? 0u : 1u;")
        loop.lines += [f"{name}_{word} |= {mask};" for word, mask in masks.items()]
        if self._candidates is not None and (group := self._candidates.keeps(variable.collection, variable.count)):
            loop.lines += self._candidates.keep(group, _counter(variable), masks)
        out += [f"uint32_t {name}_{word} = 0;" for word in words]
        out += [f"uint32_t {name}_unknown = 0;"] if unknown else []
        self._close(loop, "threadIdx.x", "blockDim.x")
        out += [f"if ({name}_{word} != 0) atomicOr(&selected[{word}], {name}_{word});" for word in words]
        out += [f"if ({name}_unknown != 0) atomicAdd(&unknown, {name}_unknown);"] if unknown else []

    def _write_candidates(self, writer: CandidateWriter, n_words: int) -> None:
        """Of an accepted event: the candidates of its lines, and the objects that they are."""
        out = [*writer.number_objects(n_words), "__syncthreads();"]
        out.append("for (uint32_t k = threadIdx.x; k < n_reported; k += blockDim.x) {")
        out.append(_INDENT + "uint32_t* const at = words + places[k];")
        for index, one in enumerate(writer.lines.reported):
            variable = one.input.variable(0)
            assert variable is not None
            loop = self._loop(variable)
            values = [self._value(value) for value in one.values]
            assert self._stack.pop() is loop
            out += [
                _INDENT + f"if (objects[k] >> 16 == {index}u) {{",
                _INDENT * 2 + f"const uint32_t {_counter(variable)} = objects[k] & 0xFFFFu;",
                *(_INDENT * 2 + text for text in (*self._parts(loop), *loop.lines)),
                *(_INDENT * 2 + text for text in writer.write_object(index, _counter(variable), values)),
                _INDENT + "}",
            ]
        out.append("}")
        self._event.lines += [
            "uint32_t any_line = 0;",
            f"for (uint32_t i = 0; i < {n_words}u; ++i) any_line |= decisions[i];",
            "if (any_line == 0) return;",
            *out,
        ]

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _loop(self, variable: Variable) -> _Scope:
        scope = _Scope(variable)
        self._stack.append(scope)
        return scope

    def _close(self, loop: _Scope, begin: str, step: str) -> None:
        """Write the loop into the scope around it."""
        assert loop.variable is not None
        assert self._stack.pop() is loop
        variable = loop.variable
        count = f"{self._members[variable.count]}[blockIdx.x]"
        counter = _counter(variable)
        self._stack[-1].lines += [
            "{",
            *(_INDENT + text for text in self._parts(loop)),
            _INDENT + f"const uint32_t n_{counter} = {count};",
            _INDENT + f"for (uint32_t {counter} = {begin}; {counter} < n_{counter}; {counter} += {step}) {{",
            *(_INDENT * 2 + text for text in loop.lines),
            _INDENT + "}",
            "}",
        ]

    def _parts(self, loop: _Scope) -> list[str]:
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

    def _home(self, at: Node) -> _Scope:
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
            return _counter(at.payload)
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

    def _make_truth(self, scope: _Scope, at: Node) -> None:
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

    def _count_here(self, scope: _Scope, at: Node) -> None:
        """A count that depends on a candidate: a loop inside that of the candidate."""
        depth = self._stack.index(scope) + 1
        inner, self._stack = self._stack[depth:], self._stack[:depth]
        loop = self._loop(at.payload)
        name = self._count_in(loop, at)
        scope.lines.append(f"uint32_t {name} = 0, {name}_unknown = 0;")
        self._close(loop, "0", "1")
        self._stack += inner
        self._take_count(at, name, f"{name}_unknown", scope)

    def _count_in(self, loop: _Scope, at: Node) -> str:
        """Count in an open loop; the name of the counter, `<name>_unknown` is that of the unknown."""
        name = self._name("n")
        true, false = self._truth(at.args[0])
        loop.lines.append(f"{name} += {true} ? 1u : 0u;")
        if at.args[0].may_be_unknown:
            loop.lines.append(f"{name}_unknown += {true} | {false} ? 0u : 1u;")
        return name

    def _take_count(self, at: Node, true: str, unknown: str, scope: _Scope | None = None) -> None:
        """What a count says."""
        scope = scope or self._event
        if at.op is Op.COUNT:
            name = scope.names[at] = self._name("v")
            scope.lines.append(f"const uint32_t {name} = {true};")
            if at.args[0].may_be_unknown:
                once = "threadIdx.x == 0 && " if scope is self._event else ""
                scope.lines.append(f"if ({once}{unknown} != 0) atomicAdd(&unknown, {unknown});")
            return
        name = scope.names[at] = self._name("t")
        scope.lines.append(f"const bool {name} = {true} != 0;")
        if at.may_be_unknown:
            scope.lines.append(f"const bool {name}_f = {true} == 0 && {unknown} == 0;")


def _member(loaded: str, element: Element) -> str:
    return f"{loaded}.{element.member}" if element.member else loaded


def _counter(variable: Variable) -> str:
    return f"i{variable.level}"


def _literal(at: Node) -> str:
    if at.kind is Kind.INT:
        return f"{at.payload}u"
    if at.payload == "nan":
        return "hlt::lines::not_a_number()"
    return f"({at.payload}f)"
