"""Documents of trigger configurations: built-in, beside an event file, or a given file."""

from collections.abc import Iterator
from pathlib import Path

from hltnode.processing.selection.configuration.tck import TCK_SUFFIX, TckDocument
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.trigger_chain import TriggerChain


def built_in_documents(chain: TriggerChain) -> Iterator[TckDocument]:
    """The default configuration of a chain, once with each sequence."""
    for sequence in chain.sequences or (None,):
        yield chain.document(chain.load_trigger(None, sequence))


def document_beside(events: Path, tck: int) -> TckDocument | None:
    """The document of a configuration beside an event file, where a node writes it; None if there is none.

    Raises TriggerConfigError if it is damaged or has another TCK.
    """
    path = events.parent / f"0x{tck:08X}{TCK_SUFFIX}"
    if not path.exists():
        return None
    document = TckDocument.load(path)
    if document.tck != tck:
        raise TriggerConfigError(f"{path}: the document of TCK {document.name}")
    return document


def find_document(chain: TriggerChain, which: str) -> TckDocument:
    """A document from a file, with the current name of the chain, or a built-in document by key. Raises ValueError."""
    path = Path(which)
    if path.suffix == TCK_SUFFIX:
        return chain.renamed(TckDocument.load(path))
    try:
        tck = int(which, 16)
    except ValueError as error:
        raise ValueError(f"{which}: expected a key such as 0x1234ABCD or a file *{TCK_SUFFIX}") from error
    for document in built_in_documents(chain):
        if document.tck == tck:
            return document
    raise ValueError(f"no built-in configuration of chain {chain.name} has the TCK 0x{tck:08X}: give its document")
