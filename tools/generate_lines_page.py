"""Write the reference pages of the selection lines, one for each chain of this tree: docs/reference/lines-<chain>.md.

python -m tools.generate_lines_page            write them
python -m tools.generate_lines_page --check    exit with 1 if one differs from the code
"""

import argparse
import ast
import dataclasses
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.trigger_chain import TriggerChain
from tools.chains_of_this_tree import chains_of_this_tree

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def lines_page(name: str, chain: TriggerChain) -> str:
    """Lines of the menu of a chain, line types with their cuts, and inputs with their fields."""
    folder = chain.source.parent.relative_to(PROCESSING.parent).as_posix()
    lines = [
        f"# Selection lines of {name}",
        "",
        f"<!-- Written by tools/generate_lines_page.py from {folder}/lines. Do not edit. -->",
        "",
        "These are the choices of a trigger configuration. [Write a selection line](../how-to/write-a-line.md)",
        "explains their use, [selection-lines](../physics/selection-lines.md) the origin of cuts.",
        "`hltnode lines --trigger FILE` lists the lines of a configuration.",
        "",
        *_menu(chain),
        *_other_menus(chain),
        *_prefilters(chain),
        *_types(chain),
        *_inputs(chain),
    ]
    return "\n".join(lines)


def _menu(chain: TriggerChain) -> Iterator[str]:
    """The default lines, with cuts that differ from their type, and the lines that cannot run."""
    yield from ("## The menu", "")
    yield from ("These lines run if a trigger configuration names no lines. Other cuts are those of the type.", "")
    yield from ("| line | type | prescale | postscale | cuts |", "|---|---|---|---|---|")
    yield from (f"| {' | '.join(_cells(line))} |" for line in chain.menu.lines)
    for sequence, menu in chain.menu.lines_of.items():
        if more := _added(chain.menu.lines, menu):
            yield from ("", f"With the sequence `{sequence}` these run too:", "")
            yield from ("| line | type | prescale | postscale | cuts |", "|---|---|---|---|---|")
            yield from (f"| {' | '.join(_cells(line))} |" for line in more)
        else:
            yield from ("", f"With the sequence `{sequence}`: {', '.join(f'`{line.name}`' for line in menu)}.")
    if chain.menu.not_available:
        yield from ("", "Lines of the experiment that are not available:", "", "| line | why |", "|---|---|")
        yield from (f"| `{name}` | {why} |" for name, why in chain.menu.not_available.items())
    yield ""


def _added(usual: tuple[LineType, ...], menu: tuple[LineType, ...]) -> tuple[LineType, ...]:
    """The lines behind the usual ones; none for a menu that does not begin with these."""
    return menu[len(usual) :] if menu[: len(usual)] == usual else ()


def _cells(line: LineType) -> list[str]:
    """Name, type, scales, and the cuts that differ from the type."""
    kind = type(line).__name__
    given = {cut.name: getattr(line, cut.name) for cut in _cuts_of(type(line))}
    own = [f"`{cut.name} = {given[cut.name]}`" for cut in _cuts_of(type(line)) if given[cut.name] != cut.default]
    return [f"`{line.name}`", f"[{kind}](#{kind.lower()})", f"{line.prescale:g}", f"{line.postscale:g}", ", ".join(own)]


def _other_menus(chain: TriggerChain) -> Iterator[str]:
    """The menus that a configuration may choose by name, with the prefilters of their lines."""
    for name, menu in chain.menu.others.items():
        yield from (f"## The menu `{name}`", "", f'A trigger configuration chooses it: `[menu] name = "{name}"`.', "")
        yield from ("| line | type | prescale | postscale | cuts | prefilters |", "|---|---|---|---|---|---|")
        yield from map(_with_prefilters, menu.lines)
        for sequence, lines in menu.lines_of.items():
            yield from ("", f"With the sequence `{sequence}` these run too:", "")
            yield from ("| line | type | prescale | postscale | cuts | prefilters |", "|---|---|---|---|---|---|")
            yield from map(_with_prefilters, _added(menu.lines, lines))
        if menu.not_available:
            yield from ("", "| line that is not available | why |", "|---|---|")
            yield from (f"| `{line}` | {why} |" for line, why in menu.not_available.items())
        yield ""


def _with_prefilters(line: LineType) -> str:
    return f"| {' | '.join([*_cells(line), ', '.join(f'`{each}`' for each in line.prefilters)])} |"


def _prefilters(chain: TriggerChain) -> Iterator[str]:
    """The prefilters of a chain."""
    if not chain.menu.prefilters:
        return
    yield from ("## Prefilters", "", "Lines and configurations may name them.", "")
    yield from ("| prefilter | passes |", "|---|---|")
    yield from (f"| `{each.name}` | {each.description} |" for each in chain.menu.prefilters)
    yield ""


def _types(chain: TriggerChain) -> Iterator[str]:
    """Line types and their cuts."""
    yield from ("## Types", "", "Each has `name`, `prescale`, `postscale` (0 to 1) and `prefilters` (names) too.", "")
    cuts = _kinds_of_cuts(chain)
    units = {} if cuts is None else _docstrings_of_assignments(cuts)
    for kind in chain.menu.types:
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


def _inputs(chain: TriggerChain) -> Iterator[str]:
    """The inputs of lines and their fields."""
    yield from ("## Inputs", "")
    yield from ("Inputs of lines with their fields, by the name that line files import.", "")
    for name, of in chain.inputs.items():
        yield from (f"### {name}", "", f"{of.description[:1].upper()}{of.description[1:]}.", "")
        yield from ("| field | kind or unit | meaning |", "|---|---|---|")
        yield from (f"| `{field}` | {unit} | {text} |" for field, unit, text in of.describe())
        yield ""


def _kinds_of_cuts(chain: TriggerChain) -> types.ModuleType | None:
    """The module `lines.cuts` of a chain: kinds of cuts, with the unit in the text below each. None if it has none."""
    package = "hltnode." + ".".join(chain.source.parent.relative_to(PROCESSING.parent).parts)
    module = f"{package}.lines.cuts"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        return None


def _cuts_of(kind: type[LineType]) -> list[dataclasses.Field[Any]]:
    """The fields that a line type itself defines."""
    shared = {field.name for field in dataclasses.fields(LineType)}
    return [field for field in dataclasses.fields(kind) if field.name not in shared]


def _docstrings_of_assignments(module: types.ModuleType) -> dict[str, str]:
    """The docstrings below assignments of a module."""
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
    """The minimum and the maximum of a cut."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return "true or false" if annotation is bool else ""
    [field] = annotation.__metadata__
    limits = [(sign, getattr(rule, name, None)) for rule in field.metadata for name, sign in (("ge", "≥"), ("le", "≤"))]
    return ", ".join(f"{sign} {_number(limit)}" for sign, limit in limits if limit is not None)


def _number(value: float) -> str:
    return f"{value:_}" if isinstance(value, int) and value >= 100_000 else f"{value:g}"


def main() -> int:
    """Write or check the pages; 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a page is out of date")
    check = parser.parse_args().check
    outdated = 0
    for name, chain in chains_of_this_tree().items():
        page, text = REFERENCE / f"lines-{name}.md", lines_page(name, chain)
        if page.is_file() and page.read_text(encoding="utf-8") == text:
            continue
        outdated += 1
        if check:
            print(f"{page} is out of date: run make reference", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
            print(f"{page} written")
    return int(check and outdated > 0)


if __name__ == "__main__":
    sys.exit(main())
