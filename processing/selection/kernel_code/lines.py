"""Writes the kernel of all lines and histograms: one block per event, one loop per collection.

Every expression is computed once. Counts over collections that depend on no candidate come first, in parallel; counts
that depend on one another take several steps. Then one loop runs over each collection: a thread evaluates all lines and
histograms for a candidate. Histograms of selected events (accepted ones, a sample) follow the decision, in loops that
other events skip.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.framework.histograms import histogram_counts
from hltnode.processing.framework.limits import line_words
from hltnode.processing.selection.expressions.nodes import Kind, Node, Op, Variable, postorder
from hltnode.processing.selection.kernel_code.expressions import (
    INDENT,
    ExpressionWriter,
    by_variable,
    counter_of,
    lanes_of,
    shared_counts,
)
from hltnode.processing.selection.kernel_code.selected import CandidateWriter
from hltnode.processing.selection.lines.histogram import RecordedHistogram, sample_limit
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.models.table import ModelTable

INCLUDES = ("selection/expressions/lanes.cuh", "selection/lines/histograms.cuh", "selection/lines/scalers.cuh")
COSTLY = 32
"""Costly operations: they run only for candidates that earlier conditions did not reject."""

Fill = tuple[int, RecordedHistogram]
"""A histogram and the index of its first counter."""
ByCandidate = dict[Variable | None, list[Fill]]


@dataclass(frozen=True, slots=True, eq=False)
class Costly:
    """Parts of conditions in one block: (condition, part), and the operations that they need."""

    operations: set[Node]
    parts: tuple[tuple[Node, Node], ...]


class KernelWriter(ExpressionWriter):
    """Writes one kernel. candidates: writes the reports of candidates; None: no reports."""

    def __init__(
        self,
        members: Mapping[Column, str],
        firsts: Mapping[Collection, str],
        candidates: CandidateWriter | None = None,
    ) -> None:
        super().__init__(members, firsts)
        self._candidates = candidates

    def write(
        self, name: str, lines: Sequence[Line], event_words: Sequence[Node], histograms: Sequence[RecordedHistogram]
    ) -> str:
        """The kernel `name`. event_words: words that identify an event for scalers."""
        n_words = line_words(len(lines))
        filled = [node for histogram in histograms for node in (histogram.condition, histogram.value)]
        selecting = frozenset(postorder([line.condition for line in lines]))
        steps = shared_counts([*(line.condition for line in lines), *filled])
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
            self._write_counts(step, begin, selecting)
            begin += 2 * len(step)
        of_every_event, of_some = self._by_events(histograms)
        lines_on = by_variable([line.variable for line in lines])
        for variable in dict.fromkeys((*lines_on, *of_every_event)):
            self._counts_unknown = True
            on = [(place, lines[place]) for place in lines_on.get(variable, ())]
            if variable is None:
                self._write_lines_on_events(on)
                self._fill_of_events(of_every_event.get(variable, ()))
            else:
                self._write_loop(variable, on, of_every_event.get(variable, ()))
        words = ", ".join(self._value(word) for word in event_words)
        out += [
            "__syncthreads();",
            f"const uint32_t event_words[{len(event_words)}] = {{{words}}};",
            f"hlt::scale_lines(p.line_table, {len(lines)}u, selected, event_words, decisions);",
            "__syncthreads();",
            f"for (uint32_t i = threadIdx.x; i < {n_words}u; i += blockDim.x)",
            INDENT + f"p.events.lines[static_cast<uint64_t>(blockIdx.x) * {n_words}u + i] = decisions[i];",
            "uint32_t any = 0;",
            f"for (uint32_t i = 0; i < {n_words}u; ++i) any |= decisions[i];",
            "if (threadIdx.x == 0) {",
            INDENT + "p.events.accepted[blockIdx.x] = any != 0 ? 1 : 0;",
            INDENT + "p.events.unknown_selections[blockIdx.x] = unknown;",
            "}",
        ]
        for condition, by_candidate in of_some.items():
            with self._inside(condition):
                for variable, fills in by_candidate.items():
                    if variable is None:
                        self._fill_of_events(fills)
                    else:
                        self._write_loop(variable, (), fills)
        if self._candidates is not None:
            self._write_candidates(self._candidates, n_words)
        return "\n".join([f"HLT_KERNEL({name})", "{", *(INDENT + text for text in out), "}", ""])

    # --- lines --------------------------------------------------------------------------------------------------------

    def _write_lines_on_events(self, lines: Sequence[tuple[int, Line]]) -> None:
        """All lines that select whole events."""
        if not lines:
            return
        masks: dict[int, str] = {}
        unknown: list[str] = []
        for place, line in lines:
            true, false = self._truth(line.condition)
            if place // 32 not in masks:
                masks[place // 32] = f"of_events_{place // 32}"
                self._event.lines.append(f"uint32_t {masks[place // 32]} = 0;")
            self._event.lines.append(f"{masks[place // 32]} |= {true} ? {1 << place % 32}u : 0u;")
            if line.condition.may_be_unknown:
                unknown.append(f"({true} | {false} ? 0u : 1u)")
        self._event.lines.append("if (threadIdx.x == 0) {")
        self._event.lines += [f"{INDENT}atomicOr(&selected[{word}], {mask});" for word, mask in masks.items()]
        if unknown:
            self._event.lines.append(f"{INDENT}atomicAdd(&unknown, {' + '.join(unknown)});")
        self._event.lines.append("}")

    def _write_loop(self, variable: Variable, lines: Sequence[tuple[int, Line]], fills: Sequence[Fill]) -> None:
        """All lines and histograms on one collection."""
        out = self._stack[-1].lines
        words = sorted({place // 32 for place, _ in lines})
        name = f"of_{variable.collection.name}"
        at = lanes_of(variable)
        unknown = any(line.condition.may_be_unknown for _, line in lines)
        loop = self._loop(variable, lanes=True)
        masks = {word: f"lines_{word}" for word in words}
        loop.lines += [f"hlt::lines::uints {mask} = hlt::lines::uints{{}};" for mask in masks.values()]
        if unknown:
            loop.lines.append("hlt::lines::uints open = hlt::lines::uints{};")
        self._decide([line.condition for _, line in lines])
        for place, line in lines:
            true, false = self._truth(line.condition, lanes=True)
            loop.lines.append(f"{masks[place // 32]} |= hlt::lines::word_where({true}, {1 << place % 32}u);")
            if line.condition.may_be_unknown:
                loop.lines.append(f"open += hlt::lines::word_where(({true} | {false}) == 0, 1u);")
        loop.lines += [f"{name}_{word} |= {at}.bits_of_any({mask});" for word, mask in masks.items()]
        if unknown:
            loop.lines.append(f"{name}_unknown += {at}.sum(open);")
        if lines and self._candidates is not None:
            group = self._candidates.keeps(variable.collection, variable.count)
            loop.lines += self._candidates.keep(group, counter_of(variable), at, masks) if group else []
        self._fill(fills)
        out += [f"uint32_t {name}_{word} = 0;" for word in words]
        out += [f"uint32_t {name}_unknown = 0;"] if unknown else []
        self._close(loop)
        out += [f"if ({name}_{word} != 0) atomicOr(&selected[{word}], {name}_{word});" for word in words]
        out += [f"if ({name}_unknown != 0) atomicAdd(&unknown, {name}_unknown);"] if unknown else []

    # --- conditions, the costly parts last ----------------------------------------------------------------------------

    def _decide(self, conditions: Sequence[Node]) -> None:
        """Write the conditions of lines.

        Conditions with a common first part, the condition of an input, share a block that is skipped if no candidate
        passes that part.
        """
        self._make_counted(conditions)
        groups: dict[Node, list[Node]] = {}
        for condition in dict.fromkeys(conditions):
            if condition.op is Op.AND and self._in_lanes(condition):
                groups.setdefault(_conjuncts(condition)[0], []).append(condition)
        for first, group in groups.items():
            declared = {condition: self._declared(condition) for condition in group}
            if self._cost([first]) >= COSTLY or self._cost(group) < COSTLY:
                self._decide_group(declared)
            else:
                _, false = self._truth(first, lanes=True)
                with self._inside(self._any_not(false)):
                    self._decide_group(declared)
            self._stack[-1].names.update(declared)

    def _make_counted(self, conditions: Sequence[Node]) -> None:
        """Write first the parts that count undecided selections: they run for every candidate."""
        counting: set[Node] = set()
        for at in postorder(list(conditions)):
            if (at.op is Op.COUNT and at.args[0].may_be_unknown) or any(arg in counting for arg in at.args):
                counting.add(at)
                if at.op in (Op.COUNT, Op.ANY) and at.free == {self._lanes}:
                    self._made(at)

    def _declared(self, condition: Node) -> str:
        """Declare a condition that is false until it is written; returns its name."""
        name = self._name("t")
        c_type, out = self._type(condition), self._stack[-1].lines
        out.append(f"{c_type} {name} = hlt::lines::in_lanes(false);")
        if condition.may_be_unknown:
            out.append(f"{c_type} {name}_f = hlt::lines::in_lanes(true);")
        return name

    def _decide_group(self, declared: Mapping[Node, str]) -> None:
        """Write declared conditions.

        Costly parts come last, grouped by shared operations, in a block that is skipped if no candidate remains.
        """
        out = self._stack[-1].lines
        later: list[Costly] = []
        for condition, name in declared.items():
            parts = _conjuncts(condition)
            costly = [part for part in parts if self._cost([part]) >= COSTLY]
            truths = [self._truth(part, lanes=True) for part in parts if part not in costly]
            truths = truths or [("hlt::lines::in_lanes(true)", "hlt::lines::in_lanes(false)")]
            out.append(f"{name} = {' & '.join(true for true, _ in truths)};")
            if condition.may_be_unknown:
                out.append(f"{name}_f = {' | '.join(false for _, false in truths)};")
            later += [Costly(self._not_made([part]), ((condition, part),)) for part in costly]
        for group in _together(later):
            users = dict.fromkeys(condition for condition, _ in group.parts)
            falses = [f"{declared[it]}_f" if it.may_be_unknown else f"({declared[it]} == 0)" for it in users]
            with self._inside(self._any_not(" & ".join(falses))):
                block = self._stack[-1].lines
                for condition, part in group.parts:
                    name = declared[condition]
                    true, false = self._truth(part, lanes=True)
                    block.append(f"{name} = {name} & {true};")
                    if condition.may_be_unknown:
                        block.append(f"{name}_f = {name}_f | {false};")

    def _any_not(self, false: str) -> str:
        """Whether a condition is not known to be false for at least one candidate."""
        assert self._lanes is not None
        return f"{lanes_of(self._lanes)}.any(({false}) == 0)"

    def _cost(self, roots: Sequence[Node]) -> int:
        return _cost_of(self._not_made(roots))

    # --- candidates ---------------------------------------------------------------------------------------------------

    def _write_candidates(self, writer: CandidateWriter, n_words: int) -> None:
        """The candidates and objects of the lines of an accepted event."""
        out = [*writer.number_objects(n_words), "__syncthreads();"]
        out.append("for (uint32_t k = threadIdx.x; k < n_reported; k += blockDim.x) {")
        out.append(INDENT + "uint32_t* const at = words + places[k];")
        for index, one in enumerate(writer.lines.reported):
            variable = one.input.variable(0)
            assert variable is not None
            loop = self._loop(variable)
            values = [self._value(value) for value in one.values]
            assert self._stack.pop() is loop
            out += [
                INDENT + f"if (objects[k] >> 16 == {index}u) {{",
                INDENT * 2 + f"const uint32_t {counter_of(variable)} = objects[k] & 0xFFFFu;",
                *(INDENT * 2 + text for text in (*self._parts(loop), *loop.lines)),
                *(INDENT * 2 + text for text in writer.write_object(index, counter_of(variable), values)),
                INDENT + "}",
            ]
        out.append("}")
        no_row = ["if (any == 0) {", INDENT + writer.no_row(), INDENT + "return;", "}"]
        self._event.lines += [*no_row, *out]

    # --- histograms ---------------------------------------------------------------------------------------------------

    def _by_events(self, histograms: Sequence[RecordedHistogram]) -> tuple[ByCandidate, dict[str, ByCandidate]]:
        """Histograms of all events by their candidates, and histograms of selected events by the event condition; each
        with the index of its first counter."""
        every: ByCandidate = {}
        some: dict[str, ByCandidate] = {}
        begin = 0
        for histogram in histograms:
            conditions = ["any != 0"] if histogram.accepted else []
            if (sample := sample_limit(histogram.prescale)) is not None:
                scaler = f"hlt::line_scaler{{{sample[0]}u, {sample[1]}u, 0u}}"
                conditions.append(f"hlt::scaler_passes({scaler}, event_words)")
            group = some.setdefault(" && ".join(conditions), {}) if conditions else every
            group.setdefault(histogram.variable, []).append((begin, histogram))
            begin += histogram.shape.n_counts
        return every, some

    def _fill_of_events(self, fills: Sequence[Fill]) -> None:
        if fills:
            with self._inside("threadIdx.x == 0"):
                self._fill(fills)

    def _fill(self, fills: Sequence[Fill]) -> None:
        """Count the candidates, or the event, of the innermost scope."""
        self._counts_unknown = False
        at = None if self._lanes is None else lanes_of(self._lanes)
        for begin, histogram in fills:
            if histogram.condition.op is Op.CONST and histogram.condition.payload:
                self._add(begin, histogram, "hlt::lines::in_lanes(true)")
                continue
            true, false = self._truth(histogram.condition, lanes=at is not None)
            with self._inside(f"{at}.any({true})" if at else true):
                self._add(begin, histogram, true)
            if histogram.condition.may_be_unknown:
                counter = f"{self._members[histogram_counts]}[{begin + histogram.shape.n_counts - 1}]"
                unknown = f"{at}.count(({true} | {false}) == 0)" if at else f"{true} | {false} ? 0u : 1u"
                self._stack[-1].lines.append(f"if (const uint32_t open = {unknown}) atomicAdd(&{counter}, open);")
        self._counts_unknown = True

    def _add(self, begin: int, histogram: RecordedHistogram, condition: str) -> None:
        assert histogram.value.kind is Kind.FLOAT
        lanes = self._lanes is not None
        value = self._value(histogram.value, lanes=lanes)
        limits = ", ".join(f"({float(limit).hex()}f)" for limit in histogram.limits)
        counters = f"{self._members[histogram_counts]} + {begin}u"
        arguments = f"{counters}, {value}, {limits}, {histogram.shape.bins}u"
        if self._lanes is None:
            self._stack[-1].lines.append(f"hlt::lines::count_value({arguments});")
        else:
            self._stack[-1].lines.append(
                f"hlt::lines::count_values({lanes_of(self._lanes)}, {condition}, {arguments});"
            )


def _conjuncts(condition: Node) -> list[Node]:
    """The factors of a condition: all must be true."""
    found: list[Node] = []
    left = [condition]
    while left:
        at = left.pop()
        if at.op is Op.AND:
            left += reversed(at.args)
        else:
            found.append(at)
    return list(dict.fromkeys(found))


def _cost_of(operations: Set[Node]) -> int:
    """Their number, and those of their models."""
    return len(operations) + sum(at.payload.cost for at in operations if isinstance(at.payload, ModelTable))


def _together(parts: Sequence[Costly]) -> list[Costly]:
    """Groups of parts that share costly operations."""
    groups: list[Costly] = []
    for one in parts:
        alike = [other for other in groups if _cost_of(other.operations & one.operations) >= COSTLY]
        groups = [other for other in groups if other not in alike]
        joined = [*alike, one]
        groups.append(
            Costly(set().union(*(it.operations for it in joined)), tuple(pair for it in joined for pair in it.parts))
        )
    return groups
