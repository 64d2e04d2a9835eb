"""Composites: inputs whose candidates are pairs of candidates of two other inputs, such as a vertex and a track.

A line on three or more tracks selects candidates of a composite. Its condition and its numbers are expressions of both
parts. They are recorded when the composite is declared, and computed for each event before the lines. A part may be a
composite too.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hltnode.processing.framework.collections import F32, U16, U32, Collection, Column, Placement, Role
from hltnode.processing.selection.errors import LineError, shown
from hltnode.processing.selection.expressions.canonical import Reader, canonical, variable_words
from hltnode.processing.selection.expressions.expression import number, truth
from hltnode.processing.selection.expressions.nodes import (
    MAX_LEVEL,
    Kind,
    Node,
    Op,
    Variable,
    columns_of,
    node,
    recording,
)
from hltnode.processing.selection.expressions.source_position import fail, made_of
from hltnode.processing.selection.lines.inputs import (
    Candidate,
    ColumnField,
    FieldOf,
    Input,
    RelatedField,
    loops_from,
)

MAX_BOUND = 4096
"""Most candidates of a composite in an event."""
MAX_NUMBERS = 32
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_OWN_FIELDS = ("first", "second", "of_first", "of_second", "count", "left_out")
_CPP_WORDS = re.compile(
    r"alignas|alignof|and|and_eq|asm|auto|bitand|bitor|bool|break|case|catch|char|char8_t|char16_t|"
    r"char32_t|class|compl|concept|const|consteval|constexpr|constinit|const_cast|continue|co_await|"
    r"co_return|co_yield|decltype|default|delete|do|double|dynamic_cast|else|enum|explicit|export|extern|"
    r"false|float|for|friend|goto|if|inline|int|long|mutable|namespace|new|noexcept|not|not_eq|nullptr|"
    r"operator|or|or_eq|private|protected|public|register|reinterpret_cast|requires|return|short|signed|"
    r"sizeof|static|static_assert|static_cast|struct|switch|template|this|thread_local|throw|true|try|"
    r"typedef|typeid|typename|union|unsigned|using|virtual|void|volatile|wchar_t|while|xor|xor_eq"
)
"""Reserved in C++: a number becomes a member of a struct."""
_CONTENT = {"name", "bound", "first", "second", "condition", "numbers"}

Numbers = Mapping[str, tuple[Callable[[Any, Any], Any], str]]
"""Numbers of a pair by name: the function of both parts, and its description."""


class _PairCollection(Collection):
    """The candidates of a composite."""

    combination: "Combination"


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """The recorded content of a composite.

    name: its name; bound: most candidates of an event. first, second: the variables of both parts, at levels 0 and 1.
    condition: whether two objects are a candidate. numbers: f32 of each candidate, by name.

    Raises LineError, which names the composite.
    """

    name: str
    bound: int
    first: Variable
    second: Variable
    condition: Node
    numbers: Mapping[str, Node]
    collection: Collection = field(init=False)
    count: Column = field(init=False)
    """u32 of each event."""
    left_out: Column = field(init=False)
    """u32 of each event: candidates beyond the bound."""
    parts: tuple[Column, Column] = field(init=False)
    """u16 of each candidate: numbers of its parts in the event."""
    columns: Mapping[str, Column] = field(init=False)
    """f32 of each candidate: its numbers."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            fail(
                f"a name of at most 40 lower-case letters, digits and _, a letter first, is expected, not {self.name!r}"
            )
        if isinstance(self.bound, bool) or not isinstance(self.bound, int) or not 1 <= self.bound <= MAX_BOUND:
            fail(f"bound: a number of candidates from 1 to {MAX_BOUND} is expected, not {self.bound!r}")
        if not 1 <= len(self.numbers) <= MAX_NUMBERS:
            fail(f"numbers: 1 to {MAX_NUMBERS} are expected, there are {len(self.numbers)}")
        for name in self.numbers:
            if (
                not isinstance(name, str)
                or not _NAME.fullmatch(name)
                or name in _OWN_FIELDS
                or _CPP_WORDS.fullmatch(name)
            ):
                fail(f"numbers: {name!r} cannot be the name of a number")
        for variable in (self.first, self.second):
            most = variable.collection.max_per_event
            if not isinstance(most, int) or most > 0xFFFF:
                fail(f"{variable.collection.name} has no fixed bound below 65,536 objects of an event")
        for root in (self.condition, *self.numbers.values()):
            if strangers := root.free - {self.first, self.second}:
                names = ", ".join(sorted(variable.collection.name for variable in strangers))
                fail(f"it depends on an object of {names} that is none of its parts")
        bound, collection_name = self.bound, f"composite_{self.name}"
        collection = _PairCollection(
            collection_name,
            capacity=lambda limits: limits.events * bound,
            placement=Placement.fixed(bound),
            max_per_event=bound,
        )
        collection.combination = self
        for attribute, value in {
            "collection": collection,
            "count": collection.per_event("count", U32, role=Role.OUTPUT),
            "left_out": collection.per_event("left_out", U32, role=Role.OUTPUT),
            "parts": (collection.column("of_first", U16), collection.column("of_second", U16)),
            "columns": {name: collection.column(name, F32) for name in self.numbers},
        }.items():
            object.__setattr__(self, attribute, value)

    @property
    def roots(self) -> tuple[Node, ...]:
        """Its condition and its numbers."""
        return (self.condition, *self.numbers.values())

    @property
    def reads(self) -> tuple[Column, ...]:
        """The distinct columns that it is made from."""
        return columns_of(self.roots, (self.first.count, self.second.count))

    @property
    def writes(self) -> tuple[Column, ...]:
        """Its columns."""
        return (self.count, self.left_out, *self.parts, *self.columns.values())

    @property
    def public(self) -> tuple[str, ...]:
        """The names of the numbers that lines and reports show."""
        return tuple(name for name in self.numbers if not name.endswith("_"))

    @property
    def factors(self) -> tuple[list[Node], list[Node], list[Node]]:
        """The conditions that must all be true: of the first part alone (or of the event), of the second, of both."""
        factors: tuple[list[Node], list[Node], list[Node]] = ([], [], [])
        left = [self.condition]
        while left:
            at = left.pop()
            if at.op is Op.AND:
                left += reversed(at.args)
            elif at.free <= {self.first}:
                factors[0].append(at)
            else:
                factors[1 if at.free == {self.second} else 2].append(at)
        return factors

    def content(self) -> dict[str, Any]:
        """The deciding values in plain types, for the TCK; `combination_of_content` reads them."""
        return {
            "name": self.name,
            "bound": self.bound,
            "first": " ".join(variable_words(self.first)),
            "second": " ".join(variable_words(self.second)),
            "condition": canonical(self.condition),
            "numbers": [[name, canonical(value)] for name, value in self.numbers.items()],
        }


class Composite(Input):
    """Candidates of lines that are made of a candidate of `first` and one of `second`, without common constituents.

    where: whether two candidates are one of the composite; a NaN that leaves it undecided makes it false. numbers: its
    numbers by name; a name with _ at its end is a field for other composites alone (x_: _x). bound: most
    candidates of an event. An event with more is flagged and keeps the first ones, ascending by the first part, then by
    the second one. Of one input with itself, each pair is tested once, with the smaller number first. fields: more
    fields of a candidate for lines.

    Raises LineError, which gives the name and the fault.
    """

    combination: Combination

    def __init__(
        self,
        name: str,
        first: Input,
        second: Input,
        *,
        where: Callable[[Any, Any], Any],
        numbers: Numbers,
        bound: int,
        description: str = "",
        fields: Mapping[str, FieldOf] | None = None,
    ) -> None:
        try:
            combination = _recorded(name, first, second, where, numbers, bound)
        except LineError as error:
            raise LineError(f"composite {shown(name)}: {error}") from None
        of_parts: dict[str, FieldOf] = {
            "first": RelatedField(first, ColumnField(combination.parts[0], ""), f"its candidate of {first.name}"),
            "second": RelatedField(second, ColumnField(combination.parts[1], ""), f"its candidate of {second.name}"),
        }
        own: dict[str, FieldOf] = {
            _field_name(key): ColumnField(column, numbers[key][1], combination.numbers[key].unit)
            for key, column in combination.columns.items()
        }
        super().__init__(
            name,
            description or f"pairs of {first.name} and {second.name}",
            {**of_parts, **own, **(fields or {})},
            collection=combination.collection,
            count=combination.count,
            constituents=("first", "second"),
        )
        self.combination = combination


def _field_name(number: str) -> str:
    return f"_{number[:-1]}" if number.endswith("_") else number


def _recorded(
    name: str, first: Input, second: Input, where: Callable[[Any, Any], Any], numbers: Numbers, bound: int
) -> Combination:
    of_first, of_second = _variable(first, 0), _variable(second, 1)
    if not isinstance(numbers, Mapping):
        fail(f"numbers: functions and descriptions by name are expected, not {numbers!r}")
    with loops_from(MAX_LEVEL):
        one, other = first.candidate(0), second.candidate(1)
        with recording():
            conditions = [first.condition(one), second.condition(other), *_distinct(one, other)]
            conditions.append(truth(_of_both(where, one, other), "the condition of a composite"))
            condition = conditions[0]
            for more in conditions[1:]:
                condition = node(Op.AND, (condition, more), kind=Kind.BOOL)
        values = {}
        for key, pair in numbers.items():
            if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], str):
                fail(f"numbers: {key!r}: a function of both parts and a description are expected, not {pair!r}")
            function, _ = pair
            with recording():
                values[key] = number(_of_both(function, one, other), f"{key}: a number")
    return Combination(name, bound, of_first, of_second, condition, values)


def _variable(part: Input, level: int) -> Variable:
    variable = part.variable(level) if isinstance(part, Input) else None
    if variable is None:
        fail(f"two inputs with candidates are expected, such as long_tracks, not {part!r}")
    return variable


def _of_both(function: Callable[[Any, Any], Any], one: Candidate, other: Candidate) -> Any:
    return made_of(lambda pair: function(*pair), (one, other))


def _distinct(one: Candidate, other: Candidate) -> list[Node]:
    """Conditions for two candidates without a common constituent, each pair of the same input once."""
    conditions = []
    if one._input is other._input:
        conditions.append(node(Op.LESS, (one._index, other._index), kind=Kind.BOOL))  # type: ignore[arg-type]
    for a in constituents(one):
        for b in constituents(other):
            if a._input.collection is b._input.collection:
                same = node(Op.EQUAL, (a._index, b._index), kind=Kind.BOOL)  # type: ignore[arg-type]
                conditions.append(node(Op.NOT, (same,), kind=Kind.BOOL))
    return conditions


def constituents(candidate: Candidate) -> list[Candidate]:
    """The final constituents of a candidate; without parts, the candidate alone."""
    names = candidate._input.constituents
    return [each for name in names for each in constituents(getattr(candidate, name))] or [candidate]


def combinations_of(columns: Iterable[Column]) -> tuple[Combination, ...]:
    """The combinations whose columns these are, and those that they are made of, parts before their wholes.

    Raises LineError if two have the same name.
    """
    found: dict[str, Combination] = {}

    def add(columns: Iterable[Column]) -> None:
        for column in columns:
            if not isinstance(column.collection, _PairCollection):
                continue
            combination = column.collection.combination
            known = found.get(combination.name)
            if known is None:
                add(combination.reads)
                known = found.setdefault(combination.name, combination)
            if known is not combination:
                raise LineError(f"two composites have the name {combination.name}")

    add(columns)
    return tuple(found.values())


def basic_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns, those of composites replaced by the columns that they are made from."""
    columns = tuple(columns)
    read = [column for each in combinations_of(columns) for column in each.reads]
    return tuple(dict.fromkeys(it for it in (*columns, *read) if not isinstance(it.collection, _PairCollection)))


def combination_of_content(content: object, reader: Reader) -> Combination:
    """The combination of a content, on the columns that a reader knows. Raises LineError."""
    if not isinstance(content, Mapping) or set(content) != _CONTENT:
        raise LineError(f"an object with the fields {', '.join(sorted(_CONTENT))} is expected")
    name, numbers = content["name"], content["numbers"]
    try:
        first, second = _part_of_content(content, "first", 0, reader), _part_of_content(content, "second", 1, reader)
        if not isinstance(numbers, list) or not all(
            isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in numbers
        ):
            fail("numbers: a list of names and operations is expected")
        if len({each[0] for each in numbers}) < len(numbers):
            fail("numbers: a name is given twice")
        condition = reader.value(_operations(content["condition"]), Kind.BOOL)
        values = {key: reader.value(_operations(operations), Kind.FLOAT) for key, operations in numbers}
        return Combination(name, content["bound"], first, second, condition, values)
    except LineError as error:
        raise LineError(f"composite {shown(name)}: {error}") from None


def _part_of_content(content: Mapping[str, Any], key: str, level: int, reader: Reader) -> Variable:
    words = content[key].split(" ") if isinstance(content[key], str) else []
    if len(words) != 3 or words[2] != str(level):
        fail(f"{key}: collection, column of its counts and {level} are expected")
    return reader.variable(words)


def _operations(content: object) -> Sequence[object]:
    if not isinstance(content, list):
        fail("a list of operations is expected")
    return content


def as_input(combination: Combination) -> Input:
    """The input of a combination of a TCK document, whose fields have lost their units: for reports."""
    fields: dict[str, FieldOf] = {key: ColumnField(column, "") for key, column in combination.columns.items()}
    return Input(combination.name, "", fields, collection=combination.collection, count=combination.count)


def part_inputs(combination: Combination) -> tuple[Input, Input]:
    """Inputs of the parts without fields: for reports."""
    first, second = (
        Input(variable.collection.name, "", {}, collection=variable.collection, count=variable.count)
        for variable in (combination.first, combination.second)
    )
    return first, second
