"""hltnode luminosity: the luminosity of each run from the luminosity summaries of its events."""

import json as json_format
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    JsonOption,
    end_with_damage,
    require_files,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.terminal import echo
from hltnode.processing.framework.event_files import DamageLog, read_all_tables
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.reports.lumi_schema import lumi_schema
from hltnode.processing.selection.studies.luminosity import (
    USUAL_COUNTERS,
    Calibration,
    LuminositySums,
    Method,
    run_results,
)
from hltnode.processing.selection.studies.tck_documents import built_in_documents
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.raw_data.lumi_summary import LumiSchema


def luminosity(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Accepted events (MDF).")],
    counter: Annotated[
        list[str] | None,
        typer.Option("--counter", metavar="NAME", help="Counter to use, such as VeloTracks; repeatable."),
    ] = None,
    method: Annotated[
        Method, typer.Option("--method", help="From the fraction of empty events, or from the mean of a counter.")
    ] = Method.LOG_ZERO,
    cross_section: Annotated[
        list[str] | None,
        typer.Option(
            "--cross-section",
            metavar="NAME=MB",
            help="Visible cross section of a counter in mb, from a calibration; repeatable.",
        ),
    ] = None,
    colliding_bunches: Annotated[
        int | None,
        typer.Option(
            "--colliding-bunches",
            metavar="N",
            help="Bunch pairs of an orbit that collide; as in the events if not given.",
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("--duration", metavar="S", help="Seconds of each run; from first to last event if not given."),
    ] = None,
    tck: Annotated[
        list[Path] | None,
        typer.Option("--tck", metavar="FILE", help="Document of the configuration that wrote the events; repeatable."),
    ] = None,
    schema: Annotated[
        list[Path] | None,
        typer.Option("--schema", metavar="FILE", help="Schema of luminosity counters (JSON); repeatable."),
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
) -> None:
    """Measure the luminosity of each run from the luminosity summaries of its events.

    The result is mu, the mean number of visible interactions in a crossing of two beams without the background that
    crossings with one beam or none have, with statistical errors. With --cross-section it is the luminosity as well.

    The counters are known for built-in configurations; --tck or --schema names others.

    Example: hltnode luminosity accepted.mdf --cross-section PlumeChannels=4.5 --colliding-bunches 2228
    """
    with user_errors():
        require_writable(json, reads=(*files, *(tck or ()), *(schema or ())))
        require_files(*files)
        calibration = Calibration(
            cross_sections=_cross_sections(cross_section or ()),
            colliding_bunches=colliding_bunches,
            duration_s=duration,
        )
        counters = tuple(dict.fromkeys((*(counter or USUAL_COUNTERS), *calibration.cross_sections)))
        sums = LuminositySums(counters, _Schemas(chain, tck or (), schema or ()).find)
        damage = DamageLog()
        for table in read_all_tables(files, damaged=damage):
            sums.add(table)
        known = set().union(*(run.sums.keys() for run in sums.runs.values())) if sums.runs else set()
        asked = {*(counter or ()), *calibration.cross_sections}
        named = [name for name in counters if name in asked and not any(name == of for _, of in known)]
        if sums.runs and named:
            have = sorted(set().union(*(run.known for run in sums.runs.values())))
            raise ValueError(f"counter {', '.join(named)}: expected some of {', '.join(have)}")
        result = {
            "files": [str(path) for path in files],
            "events": sums.events,
            "without_summary": sums.without_summary,
            "without_odin": sums.without_odin,
            "unknown_schemas": {f"0x{key:08X}": n for key, n in sorted(sums.unknown_schemas.items())},
            "damage": damage.n,
            "runs": list(run_results(sums, counters, method, calibration)),
        }
        write_json(json, result)
        for line in _lines(result):
            echo(line)
        if not sums.runs:
            raise ValueError(
                f"{', '.join(map(str, files))}: no event has a luminosity summary with known counters; "
                "name them by --tck or --schema"
            )
    end_with_damage(damage)


def _cross_sections(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise ValueError(f"--cross-section {text}: expected NAME=MB, such as VeloVertices=60")
    return found


class _Schemas:
    """Schemas by key: from given documents and schemas, then those of the built-in configurations."""

    def __init__(self, chain: str, documents: Sequence[Path], schemas: Sequence[Path]) -> None:
        self._known: dict[int, LumiSchema] = {}
        for path in schemas:
            try:
                content = json_format.loads(path.read_text(encoding="utf-8"))
                key = int(path.stem, 16) if _is_key(path.stem) else None
                schema = LumiSchema.of_document(content)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            self._known[schema.key if key is None else key] = schema
        for path in documents:
            self._add(TckDocument.load(path))
        self._waiting = _built_in(chain)

    def _add(self, document: TckDocument) -> None:
        schema = lumi_schema(document.collections, document.counters)
        self._known.setdefault(schema.key, schema)

    def find(self, key: int) -> LumiSchema | None:
        """The schema of a key; None if it is not known."""
        while key not in self._known and (document := next(self._waiting, None)) is not None:
            self._add(document)
        return self._known.get(key)


def _is_key(stem: str) -> bool:
    """Whether the name of a file is a key of eight hexadecimal digits, as LHCb names its schemas."""
    return len(stem) == 8 and all(letter in "0123456789abcdefABCDEF" for letter in stem)


def _built_in(chain: str) -> Iterator[TckDocument]:
    """A generator, so that the documents are made when the first one is needed."""
    yield from built_in_documents(installed_chain(chain))


def _lines(result: dict[str, Any]) -> Iterator[str]:
    for run in result["runs"]:
        crossings = ", ".join(f"{n} {name}" for name, n in run["crossings"].items())
        yield (
            f"run {run['run']}: {run['events']} events ({crossings}), {run['colliding_bunches']} colliding bunches, "
            f"{run['duration_s']:.3f} s"
        )
        for each in run["counters"]:
            text = f"  {each['counter']} ({each['method']}): mu {_text(each['mu'], '.4f')}"
            if each["integrated_per_nb"] is not None:
                text += f", {_text(each['instantaneous_per_cm2_s'], '.4g')} /cm2/s"
                text += f", {_text(each['integrated_per_nb'], '.4g')} /nb"
            yield text
            for note in each["notes"]:
                yield f"    {note}"
    if result["without_summary"]:
        yield f"{result['without_summary']} events without a luminosity summary"
    if result["without_odin"]:
        yield f"{result['without_odin']} events without a valid ODIN bank"
    for key, n in result["unknown_schemas"].items():
        yield f"{n} events with counters of the unknown schema {key}"


def _text(measured: dict[str, float] | None, form: str) -> str:
    return "not known" if measured is None else f"{measured['value']:{form}} +- {measured['error']:{form}}"
