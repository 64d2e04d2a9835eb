"""The report: sections in order, as Markdown and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Section:
    """Result of one part of the benchmark.

    good: whether it passed; None if it cannot fail. rows: a table. data: the same data for programs.
    """

    title: str
    good: bool | None = None
    text: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    data: Any = None
    pictures: dict[str, str] = field(default_factory=dict)
    """SVG by file name."""


class Report:
    """The report is rewritten after each section, so earlier results stay if a later section hangs."""

    def __init__(self, folder: Path, heading: str) -> None:
        self._folder = folder
        self._heading = heading
        self.sections: list[Section] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def good(self) -> bool:
        """True if no section failed."""
        return all(section.good is not False for section in self.sections)

    def add(self, section: Section) -> None:
        """Write all sections so far."""
        self.sections.append(section)
        for name, picture in section.pictures.items():
            (self._folder / name).write_text(picture)
        (self._folder / "report.md").write_text(markdown(self._heading, self.sections))
        content = {section.title: {"good": section.good, "data": section.data} for section in self.sections}
        (self._folder / "report.json").write_text(json.dumps(content, indent=1) + "\n")


def markdown(heading: str, sections: Sequence[Section]) -> str:
    """The whole report."""
    parts = [f"# {heading}\n"]
    verdicts = {True: "passed", False: "FAILED"}
    judged = [f"- {section.title}: {verdicts[section.good]}" for section in sections if section.good is not None]
    parts.append("\n".join(judged) + "\n")
    for section in sections:
        verdict = "" if section.good is None else f": {verdicts[section.good]}"
        parts.append(f"## {section.title}{verdict}\n")
        if section.text:
            parts.append(section.text.rstrip() + "\n")
        if section.rows:
            lines = [section.header, ["---"] * len(section.header), *section.rows]
            parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")
        parts += [f"![{section.title}]({name})\n" for name in section.pictures]
    return "\n".join(parts)
