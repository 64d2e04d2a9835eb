"""C++ headers from the declarations: parameter structs, records, enumerations, sizes, the list of kernels.

The headers are committed, so that a build needs no generator; `make headers` writes them,
`make check` compares, and an engine refuses to run a sequence whose headers are out of date.
"""

from collections.abc import Iterable
from enum import IntEnum, IntFlag
from pathlib import Path

import numpy as np

from hltnode.processing.framework.batch import batch_header, batch_types
from hltnode.processing.framework.collections import (
    C_TYPES,
    PROCESSING,
    Collection,
    Column,
    DeclarationError,
    Placement,
    Record,
    SharedTypes,
    View,
    types_of,
)
from hltnode.processing.framework.declaration import Algorithm, EventSizes, Grid, launch_types
from hltnode.processing.framework.limits import BatchLimits

GENERATOR = "tools/generate_device_headers.py"
PLATFORM = "framework/device/platform.cuh"

Roots = tuple[Path, ...]
ROOTS: Roots = (PROCESSING,)


def include_path(path: Path, roots: Roots = ROOTS) -> str:
    """The include path of a file below one of the folders `roots`. Raises DeclarationError."""
    for root in roots:
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    raise DeclarationError(f"{path} is not below one of the include folders {', '.join(map(str, roots))}")


def _heading(source: Path, roots: Roots) -> list[str]:
    written = f"// Written by {GENERATOR} from {include_path(source, roots)}. Do not edit."
    return [written, "// clang-format off", "#pragma once", ""]


def _c_type(column: Column) -> str:
    if column.record is not None:
        return f"hlt::{column.record.name}"
    try:
        return C_TYPES[column.dtype]
    except KeyError:
        raise DeclarationError(f"{column.name}: kernels have no type for {column.dtype}") from None


def _pointer(column: Column, name: str, *, constant: bool) -> str:
    return f"{'const ' if constant else ''}{_c_type(column)}* {name};"


def _first(placement: Placement, offsets: str, of: str) -> str:
    """The body of `first`, which is placement.first() in C++ for the event or part `of`."""
    expression = f"{offsets}[{of}]" if placement.offsets is not None else "0u"
    if placement.divisor != 1:
        expression = f"{expression} / {placement.divisor}u"
    if placement.per_event:
        own = of if placement.per_event == 1 else f"{of} * {placement.per_event}u"
        expression = own if expression == "0u" else f"({expression} + {own})"
    if placement.times != 1:
        expression = f"{expression} * {placement.times}u"
    return expression


def parameter_columns(algorithm: Algorithm) -> list[Column]:
    """The pointers of the parameter struct, in order."""
    if algorithm.template is not None:
        of_template = {batch_header: batch_header, **algorithm.of_template}
        return [of_template[column] for column in parameter_columns(algorithm.template)]
    return [column for group in _members(algorithm) for column, _ in group.fields]


class _Group:
    """A group of members of a parameter struct: those of one collection or view, or a single column."""

    def __init__(self, name: str, collection: Collection | None = None, view: View | None = None) -> None:
        self.name = name
        self.collection = collection
        self.view = view
        self.fields: list[tuple[Column, bool]] = []


def _members(algorithm: Algorithm) -> list[_Group]:
    header = _Group("batch")
    header.fields.append((batch_header, True))
    groups: dict[str, _Group] = {"batch": header}
    for view in algorithm.views:
        group = groups[view.name] = _Group(view.name, view=view)
        group.fields += [(column, True) for column in view.columns]
    in_views = {column for view in algorithm.views for column in view.columns}
    listed = [(column, True) for column in algorithm.named_reads if column not in in_views]
    listed += [(column, False) for column in (*algorithm.updates, *algorithm.writes)]
    if algorithm.large_events is not None and algorithm.large_events.size in algorithm.offset_columns:
        listed.append((algorithm.large_events.size, True))
    for column, constant in listed:
        if column is batch_header:
            raise DeclarationError(f"{algorithm.name} names {column.name}: every kernel has it as `batch`")
        name = column.name.rpartition(".")[0] or column.name
        group = groups.setdefault(name, _Group(name, column.collection))
        group.fields.append((column, constant))
    for group in groups.values():
        placed = [column for column, _ in group.fields if column.is_placed]
        placement = group.collection.placement if group.collection and placed else None
        if placement and placement.offsets and placement.offsets not in [column for column, _ in group.fields]:
            group.fields.insert(0, (placement.offsets, True))
    scratch: dict[str, _Group] = {}
    one_collection = len({item.per for item in algorithm.scratch}) == 1
    for item, column in zip(algorithm.scratch, algorithm.scratch_columns, strict=True):
        name = "scratch" if one_collection else f"{item.per.name}_scratch"
        group = scratch.setdefault(item.per.name, _Group(name, item.per))
        if not group.fields and item.per.placement is not None and item.per.placement.offsets is not None:
            group.fields.append((item.per.placement.offsets, True))
        group.fields.append((column, False))
    return [*groups.values(), *scratch.values()]


def _field_name(group: _Group, column: Column) -> str:
    if column.name.startswith(group.name + ".") or "/" in column.name:
        return column.name.replace("/", ".").rpartition(".")[2]
    return column.name.replace(".", "_")


def _group_lines(group: _Group) -> list[str]:
    if group.view is not None:
        return [f"    hlt::{group.view.name} {group.name};"]
    if group.fields[0][0].name == group.name:
        ((column, constant),) = group.fields
        return ["    " + _pointer(column, group.name, constant=constant)]
    lines = ["    struct {"]
    for column, constant in group.fields:
        lines.append("        " + _pointer(column, _field_name(group, column), constant=constant))
    placement = group.collection.placement if group.collection else None
    if placement is not None and any(column.is_placed for column, _ in group.fields):
        offsets = _field_name(group, placement.offsets) if placement.offsets else ""
        of = "event" if group.collection is None or group.collection.parts is None else "part_in_batch"
        body = _first(placement, offsets, of)
        lines.append(f"        __device__ uint32_t first(uint32_t {of}) const {{ return {body}; }}")
    return [*lines, f"    }} {group.name};"]


def member_names(algorithm: Algorithm) -> dict[Column, str]:
    """The C++ names of the columns of an algorithm, without scratch."""
    names: dict[Column, str] = {}
    for group in _members(algorithm):
        for column, _ in group.fields:
            alone = group.fields[0][0].name == group.name
            names.setdefault(column, f"p.{group.name}" if alone else f"p.{group.name}.{_field_name(group, column)}")
    return names


def _takes(algorithm: Algorithm) -> list[str]:
    """The function `takes`, which selects the blocks of a launch, and the words that it compares."""
    if algorithm.grid == Grid.PARTS:
        parts = f"{algorithm.parts}u"
        return [
            "",
            f"    static constexpr uint32_t n_parts = {parts};",
            "    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }",
            "    __device__ bool takes(uint32_t part_in_batch) const "
            "{ return event_of(part_in_batch) < batch->n_events; }",
        ]
    if algorithm.grid == Grid.FRAGMENTS:
        return ["", "    __device__ bool takes(uint32_t fragment) const { return fragment < batch->n_fragments; }"]
    if algorithm.grid != Grid.EVENTS:
        return []
    heading = "    __device__ bool takes(uint32_t event) const"
    exists = "event < batch->n_events"
    if algorithm.large_events is None:
        return ["", f"{heading} {{ return {exists}; }}"]
    size = algorithm.large_events.size
    ((group, column),) = [(g, c) for g in _members(algorithm) for c, _ in g.fields if c is size]
    return [
        *("    uint32_t min_event_size;", "    uint32_t max_event_size;", "", heading, "    {"),
        f"        if (!({exists})) return false;",
        f"        const uint32_t size = {group.name}.{_field_name(group, column)}[event];",
        "        return size >= min_event_size && size <= max_event_size;",
        "    }",
    ]


def parameter_words(algorithm: Algorithm, limits: BatchLimits, events: EventSizes) -> list[np.uint32]:
    """The bytes after the pointers of the parameter struct of a launch.

    The size of a struct with pointers is a multiple of the pointer size.
    """
    words = [constant.packed() for constant in algorithm.constants]
    words += [np.uint32(capacity.count(limits)) for capacity in algorithm.capacities]
    if algorithm.large_events is not None:
        words += [np.uint32(events.min_size), np.uint32(events.max_size)]
    return words + [np.uint32(0)] * (len(words) % 2)


def algorithm_header(algorithm: Algorithm, roots: Roots = ROOTS) -> str:
    """The header with the struct of parameters of an algorithm. Raises DeclarationError."""
    lines = _heading(algorithm.source.with_suffix(".py"), roots)
    lines += [f'#include "{name}"' for name in sorted(_includes(algorithm, roots))]
    return "\n".join([*lines, "", *_struct_lines(algorithm)])


def generated_source(algorithm: Algorithm, roots: Roots = ROOTS) -> str:
    """The whole source of a generated kernel."""
    assert algorithm.generated is not None
    includes = _includes(algorithm, roots) | set(algorithm.generated.includes)
    lines = [f'#include "{name}"' for name in sorted(includes)]
    return "\n".join([*lines, "", *_struct_lines(algorithm), algorithm.generated.body])


def _includes(algorithm: Algorithm, roots: Roots) -> set[str]:
    records = [column.record for column in parameter_columns(algorithm) if column.record is not None]
    includes = {PLATFORM, include_path(batch_types.path), include_path(launch_types.path)}
    includes |= {include_path(types_of(record).path, roots) for record in records}
    return includes | {include_path(view.path, roots) for view in algorithm.views}


def _struct_lines(algorithm: Algorithm) -> list[str]:
    lines = [f"struct {algorithm.name}_parameters {{"]
    for group in _members(algorithm):
        lines += _group_lines(group)
    for constant in algorithm.constants:
        lines.append(f"    {'float' if isinstance(constant.value, float) else 'uint32_t'} {constant.name};")
    lines += [f"    uint32_t {capacity.name};" for capacity in algorithm.capacities]
    return [*lines, *_takes(algorithm), "};", ""]


def view_header(view: View, roots: Roots = ROOTS) -> str:
    """The header with the struct of a view: `<collection>_<column>` pointers, all const."""
    records = [column.record for column in view.columns if column.record is not None]
    includes = {PLATFORM, *(include_path(types_of(record).path, roots) for record in records)}
    lines = _heading(view.source, roots) + [f'#include "{name}"' for name in sorted(includes)]
    lines += ["", "namespace hlt {", "", f"struct {view.name} {{"]
    for column in view.columns:
        name = column.short_name if column.name.startswith("input.") else column.name.replace(".", "_")
        lines.append("    " + _pointer(column, name, constant=True))
    return "\n".join([*lines, "};", "", "}  // namespace hlt", ""])


def _record_lines(record: Record) -> list[str]:
    lines = [f"struct {record.name} {{"]
    assert record.dtype.names is not None
    for name in record.dtype.names:
        base, shape = record.dtype[name].base, record.dtype[name].shape
        c_type = C_TYPES[base] if base.names is None else _record_named(record, base)
        array = "".join(f"[{n}]" for n in shape)
        comment = f"  // {record.comments[name]}" if name in record.comments else ""
        lines.append(f"    {c_type} {name}{array};{comment}")
    return [*lines, "};", f"static_assert(sizeof({record.name}) == {record.dtype.itemsize});", ""]


def _record_named(record: Record, dtype: np.dtype[np.void]) -> str:
    for other in types_of(record).records:
        if other.dtype == dtype:
            return other.name
    raise DeclarationError(f"record {record.name} holds a struct that its SharedTypes does not declare")


def _enum_lines(name: str, enum: type[IntEnum | IntFlag], *, scoped: bool) -> list[str]:
    lines = [f"enum {'class ' if scoped else ''}{name} : uint32_t {{"]
    lines += [f"    {member.lower()} = {int(value)}," for member, value in enum.__members__.items()]
    return [*lines, "};", ""]


def _size_line(name: str, value: float | int) -> str:
    if isinstance(value, float):
        return f"constexpr float {name} = {np.float32(value)!s}f;"
    return f"constexpr uint32_t {name} = {value};"


def types_header(types: SharedTypes, roots: Roots = ROOTS) -> str:
    """The header with records, enumerations, sizes and flags of a folder."""
    lines = _heading(types.source, roots)
    lines += [f'#include "{name}"' for name in sorted({PLATFORM, *(include_path(t.path, roots) for t in types.uses)})]
    lines += ["", "namespace hlt {", ""]
    lines += [_size_line(name, value) for name, value in types.sizes.items()]
    lines += [_size_line(flag.name, flag.mask) for flag in types.flags]
    lines += [""] if types.sizes or types.flags else []
    for name, enum in types.enums.items():
        lines += _enum_lines(name, enum, scoped=name in types.scoped)
    for record in types.records:
        lines += _record_lines(record)
    return "\n".join([*lines, "}  // namespace hlt", ""])


def kernel_list(algorithms: Iterable[Algorithm], source: Path, roots: Roots = ROOTS) -> str:
    """The translation unit of some algorithms: their kernel files and `HLT_KERNELS(X)`, which names every kernel.

    With HLT_WITH_CPU_FORMS it includes the CPU forms too, and `HLT_CPU_FORMS(X)` names them.
    """
    algorithms = tuple(algorithms)
    lines = _heading(source, roots)
    lines += [f'#include "{name}"' for name in sorted({include_path(a.source, roots) for a in algorithms})]
    lines += ["", "#define HLT_KERNELS(X) \\"]
    lines += [f"    X({algorithm.name}) \\" for algorithm in algorithms]
    lines[-1] = lines[-1].removesuffix(" \\")
    return "\n".join([*lines, *_cpu_forms(algorithms, roots), ""])


def _cpu_forms(algorithms: Iterable[Algorithm], roots: Roots) -> list[str]:
    forms = {algorithm.name: algorithm.cpu_form for algorithm in algorithms}
    files = {name: include_path(path, roots) for name, path in forms.items() if path is not None}
    if not files:
        return []
    lines = ["", "#if defined(HLT_WITH_CPU_FORMS)", *(f'#include "{file}"' for file in sorted(files.values()))]
    lines += ["", "#define HLT_CPU_FORMS(X) \\", *(f"    X({name}) \\" for name in files)]
    return [*lines[:-1], lines[-1].removesuffix(" \\"), "#endif"]


def generated_headers(
    algorithms: Iterable[Algorithm],
    types: Iterable[SharedTypes],
    list_path: Path,
    list_source: Path,
    roots: Roots = ROOTS,
) -> dict[Path, str]:
    """Every generated header of a chain by its path, in the format of clang-format."""
    headers = {types_of_folder.path: types_header(types_of_folder, roots) for types_of_folder in types}
    algorithms = tuple(algorithms)
    for algorithm in algorithms:
        headers |= {view.path: view_header(view, roots) for view in algorithm.views}
        headers[algorithm.header] = algorithm_header(algorithm, roots)
    headers[list_path] = kernel_list(algorithms, list_source, roots)
    return headers
