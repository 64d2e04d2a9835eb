"""TCK documents: a trigger configuration, complete with all values, and its key (docs/formats/tck-documents.md)."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from hltnode.processing.selection.configuration.trigger_config import content_hash, content_key
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.raw_data.lumi_summary import CounterRange

TCK_SUFFIX = ".json"

_FORMAT = 1
_FIELDS = {"format", "tck", "sha256", "chain", "sequence_name", "collections", "content"}
_OPTIONAL_FIELDS = {"counters"}
_OPTIONAL_CONTENT = {"composites", "conditions", "models", "prefilters"}


@dataclass(frozen=True, slots=True)
class TckDocument:
    """A trigger configuration with all values that decide on an event.

    chain, sequence: names; collections: collections that luminosity summaries count; content: lines, algorithms and
    conditions with all their values; counters: those of luminosity summaries, none if they count the collections. The
    key is the hash of the content.
    """

    chain: str
    sequence: str
    collections: tuple[str, ...]
    content: dict[str, Any]
    counters: tuple[CounterRange, ...] = ()
    tck: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tck", content_key(self.content))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a document.

        Raises TriggerConfigError, which names the file, also if the key does not match the content.
        """
        try:
            return cls.from_text(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TriggerConfigError(f"{path}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TriggerConfigError(f"{path}: cannot be read: {error}") from error
        except TriggerConfigError as error:
            raise TriggerConfigError(f"{path}: {error}") from error

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the text of a document. Raises TriggerConfigError."""
        try:
            return cls._of_values(json.loads(text))
        except TriggerConfigError:
            raise
        except (ValueError, RecursionError) as error:
            raise TriggerConfigError(f"not a JSON file: {error}") from error

    @classmethod
    def _of_values(cls, values: Any) -> Self:
        if not isinstance(values, dict) or set(values) - _OPTIONAL_FIELDS != _FIELDS or values["format"] != _FORMAT:
            raise TriggerConfigError(f"not a TCK document of format {_FORMAT}")
        collections, content = values["collections"], values["content"]
        if not (
            isinstance(values["chain"], str)
            and isinstance(values["sequence_name"], str)
            and isinstance(collections, list)
            and all(isinstance(name, str) for name in collections)
            and _is_content(content)
        ):
            raise TriggerConfigError("a field of the TCK document has a wrong type")
        try:
            counters = tuple(CounterRange(**each) for each in values.get("counters", ()))
        except (TypeError, ValueError) as error:
            raise TriggerConfigError(f"the counters of the TCK document are not valid: {error}") from error
        document = cls(values["chain"], values["sequence_name"], tuple(collections), content, counters)
        if (values["tck"], values["sha256"]) != (document.name, content_hash(content).hex()):
            raise TriggerConfigError(f"names TCK {values['tck']}, but its content has {document.name}")
        return document

    @property
    def text(self) -> str:
        """The document as JSON, one value per line, so that any diff tool can compare two."""
        values = {
            "format": _FORMAT,
            "tck": self.name,
            "sha256": content_hash(self.content).hex(),
            "chain": self.chain,
            "sequence_name": self.sequence,
            "collections": list(self.collections),
            **({"counters": [asdict(counter) for counter in self.counters]} if self.counters else {}),
            "content": self.content,
        }
        return json.dumps(values, indent=1) + "\n"

    @property
    def name(self) -> str:
        """The TCK as text, such as 0x1A2B3C4D."""
        return f"0x{self.tck:08X}"

    @property
    def file_name(self) -> str:
        """Name of the document's file beside the accepted events."""
        return tck_file_name(self.tck)

    @property
    def line_names(self) -> tuple[str, ...]:
        """Names of the lines; line i has decision id i + 1."""
        return tuple(line["name"] for line in self.content["lines"])

    def numbers_of_composites(self, n: int) -> tuple[str, ...]:
        """Names of the n reported numbers of a composite; none if its composites of n numbers have different names."""
        composites = self.content.get("composites", ())
        every = {tuple(name for name, _ in it["numbers"] if not name.endswith("_")) for it in composites}
        found = [names for names in every if len(names) == n]
        return found[0] if len(found) == 1 else ()

    @property
    def values(self) -> dict[str, Any]:
        """Every value by its path, such as `lines.Hlt1Line.prescale`."""
        found: dict[str, Any] = {"chain": self.chain, "sequence": self.sequence}
        found["algorithms"] = " ".join(name for name, _ in self.content["sequence"])
        found["order of lines"] = " ".join(self.line_names)
        for line in self.content["lines"]:
            for key, value in line.items():
                found |= _values_at(f"lines.{line['name']}.{key}", value)
        for algorithm, constants in self.content["sequence"]:
            for key, value in constants.items():
                found[f"sequence.{algorithm}.{key}"] = value
        for name, operations in self.content.get("prefilters", {}).items():
            found |= _values_at(f"prefilters.{name}", operations)
        for composite in self.content.get("composites", ()):
            for key, value in composite.items():
                found |= _values_at(f"composites.{composite['name']}.{key}", value)
        for digest, table in self.content.get("models", {}).items():
            found[f"models.{digest}"] = table
        for name, value in self.content.get("conditions", {}).items():
            found[f"conditions.{name}"] = value
        return found


def tck_file_name(tck: int) -> str:
    """Name of the file of a document beside the accepted events."""
    return f"0x{tck:08X}{TCK_SUFFIX}"


def _values_at(path: str, value: Any) -> dict[str, Any]:
    """A value by its path; a list gives one entry per element."""
    if isinstance(value, list):
        return {f"{path}[{i}]": element for i, element in enumerate(value)}
    return {path: value}


def differences(first: TckDocument, second: TckDocument) -> dict[str, tuple[Any, Any]]:
    """The values that differ, by path; None if a document lacks the value."""
    before, after = first.values, second.values
    paths = [*before, *(path for path in after if path not in before)]
    return {path: (before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)}


def _is_content(content: object) -> bool:
    if not isinstance(content, dict) or set(content) - _OPTIONAL_CONTENT != {"lines", "sequence"}:
        return False
    if not isinstance(content.get("conditions", {}), dict):
        return False
    models = content.get("models", {})
    if not isinstance(models, dict) or not all(isinstance(table, str) for table in models.values()):
        return False
    prefilters = content.get("prefilters", {})
    if not isinstance(prefilters, dict) or not all(isinstance(each, list) for each in prefilters.values()):
        return False
    lines, sequence, composites = content["lines"], content["sequence"], content.get("composites", [])
    return (
        isinstance(lines, list)
        and isinstance(composites, list)
        and all(isinstance(composite, dict) and _are_numbers(composite.get("numbers")) for composite in composites)
        and all(isinstance(named, dict) and isinstance(named.get("name"), str) for named in (*lines, *composites))
        and isinstance(sequence, list)
        and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict)
            for pair in sequence
        )
    )


def _are_numbers(numbers: object) -> bool:
    """Whether they are a list of names and operations."""
    return isinstance(numbers, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in numbers
    )
