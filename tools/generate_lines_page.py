"""Write the reference page of the selection lines from their declarations: docs/reference/lines.md.

python tools/generate_lines_page.py            write it
python tools/generate_lines_page.py --check    exit with 1 if it differs from the code
"""

import argparse
import ast
import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines import cuts
from hltnode.processing.selection.lines.line_type import LineType

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "lines.md"


def lines_page() -> str:
    """Lines of the menu, line types with their cuts, and inputs with their fields."""
    lines = [
        "# Selection lines",
        "",
        "<!-- Written by tools/generate_lines_page.py from processing/lhcb/lines. Do not edit. -->",
        "",
        "What a trigger configuration can choose from. [Write a selection line](../how-to/write-a-line.md) says how,",
        "[selection-lines](../physics/selection-lines.md) where cuts come from. `hltnode lines --trigger FILE` lists",
        "the lines of a configuration.",
        "",
        *_menu(),
        *_types(),
        *_inputs(),
    ]
    return "\n".join(lines)


def _menu() -> Iterator[str]:
    """The lines that run by default, with the cuts that are not those of their type, and those that cannot run."""
    yield from ("## The menu", "")
    yield from ("What runs where a trigger configuration names no lines. Other cuts are those of the type.", "")
    yield from ("| line | type | prescale | postscale | cuts |", "|---|---|---|---|---|")
    for line in CHAIN.menu.lines:
        kind = type(line).__name__
        given = {cut.name: getattr(line, cut.name) for cut in _cuts_of(type(line))}
        own = [f"`{cut.name} = {given[cut.name]}`" for cut in _cuts_of(type(line)) if given[cut.name] != cut.default]
        scales = f"{line.prescale:g} | {line.postscale:g}"
        yield f"| `{line.name}` | [{kind}](#{kind.lower()}) | {scales} | {', '.join(own)} |"
    for sequence, menu in CHAIN.menu.lines_of.items():
        yield from ("", f"With the sequence `{sequence}`: {', '.join(f'`{line.name}`' for line in menu)}.")
    yield from ("", "Lines of LHCb that are not available:", "", "| line | why |", "|---|---|")
    yield from (f"| `{name}` | {why} |" for name, why in CHAIN.menu.not_available.items())
    yield ""


def _types() -> Iterator[str]:
    """Line types and their cuts."""
    yield from ("## Types", "", "Each has `name`, `prescale` and `postscale` (0 to 1) too.", "")
    units = _docstrings_of_assignments(cuts)
    for kind in CHAIN.menu.types:
        yield from (f"### {kind.__name__}", "", f"{_first_line(kind)} Selects: {kind.input.name}.", "")
        hints = typing.get_type_hints(kind, include_extras=True)
        if _cuts_of(kind):
            yield from ("| cut | default | unit | range |", "|---|---|---|---|")
        for cut in _cuts_of(kind):
            alias = next((name for name in units if hints[cut.name] == getattr(cuts, name)), "")
            default = "required" if cut.default is dataclasses.MISSING else f"`{cut.default}`"
            unit = units.get(alias, "").split(":")[0].rstrip(".").replace("No unit", "")
            yield f"| `{cut.name}` | {default} | {unit} | {_range(hints[cut.name])} |"
        if _cuts_of(kind):
            yield ""


def _inputs() -> Iterator[str]:
    """What lines select."""
    yield from ("## Inputs", "")
    yield from ("What a line selects, by the name under which a file of lines imports it, and its fields.", "")
    for name, of in CHAIN.inputs.items():
        yield from (f"### {name}", "", f"{of.description[:1].upper()}{of.description[1:]}.", "")
        yield from ("| field | kind or unit | meaning |", "|---|---|---|")
        yield from (f"| `{field}` | {unit} | {text} |" for field, unit, text in of.describe())
        yield ""


def _cuts_of(kind: type[LineType]) -> list[dataclasses.Field[Any]]:
    """The fields of a line type that are its own."""
    shared = {field.name for field in dataclasses.fields(LineType)}
    return [field for field in dataclasses.fields(kind) if field.name not in shared]


def _docstrings_of_assignments(module: types.ModuleType) -> dict[str, str]:
    """The text below each assignment of a module that has one."""
    texts, pending = {}, []
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            pending = [statement.targets[0].id]
        elif pending and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            texts[pending.pop()] = str(statement.value.value)
    return texts


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _range(annotation: Any) -> str:
    """The least and the greatest value of a cut."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return "true or false" if annotation is bool else ""
    [field] = annotation.__metadata__
    limits = [(sign, getattr(rule, name, None)) for rule in field.metadata for name, sign in (("ge", "≥"), ("le", "≤"))]
    return ", ".join(f"{sign} {_number(limit)}" for sign, limit in limits if limit is not None)


def _number(value: float) -> str:
    return f"{value:_}" if isinstance(value, int) and value >= 100_000 else f"{value:g}"


def main() -> int:
    """Write or check the page; 1 if it differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the page is out of date")
    check = parser.parse_args().check
    text = lines_page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(f"{PAGE} is out of date: run tools/generate_lines_page.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
