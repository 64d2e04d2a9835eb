"""Words that the shell completes: chains, sequences, lines with their cuts, configuration keys and TCKs.

`hltnode --install-completion` sets it up. A completion that fails offers nothing, because its message would stand in
the middle of the command that the user types.
"""

from collections.abc import Callable, Iterable
from glob import glob
from typing import Any


def _offered(words: Callable[[dict[str, Any]], Iterable[str]]) -> Callable[[Any, str], list[str]]:
    """A completion from the words that fit the options given so far."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        try:
            return [word for word in words(ctx.params) if word.startswith(incomplete)]
        except (ValueError, OSError, RuntimeError, ImportError):
            return []

    return complete


def _chain(given: dict[str, Any]) -> Any:
    from hltnode.processing.selection.trigger_chain import installed_chain

    return installed_chain(given["chain"])


def _chains(_given: dict[str, Any]) -> Iterable[str]:
    from importlib.metadata import entry_points

    return sorted({point.name for point in entry_points(group="hltnode.chains")})


def _sequences(given: dict[str, Any]) -> Iterable[str]:
    return sorted(_chain(given).sequences)


def _cuts(given: dict[str, Any]) -> Iterable[str]:
    types = _chain(given).load_trigger(given.get("trigger"), given.get("sequence")).types
    return [f"{line.name}.{cut}=" for line in types for cut in line.cuts()]


def _tcks(given: dict[str, Any]) -> Iterable[str]:
    from hltnode.processing.selection.studies.tck_documents import built_in_documents

    return sorted(document.name for document in built_in_documents(_chain(given))) + sorted(glob("0x*.json"))


def _configuration_keys(_given: dict[str, Any]) -> Iterable[str]:
    from hltnode.daemon.configuration.loading import section_of
    from hltnode.daemon.configuration.model import NodeConfig

    sections = list(NodeConfig.model_fields)
    return [*sections, *(f"{section}.{key}" for section in sections for key in section_of(section).model_fields)]


complete_chains = _offered(_chains)
complete_sequences = _offered(_sequences)
complete_cuts = _offered(_cuts)
complete_tcks = _offered(_tcks)
complete_configuration_keys = _offered(_configuration_keys)
