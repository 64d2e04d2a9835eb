"""Writes the trigger configuration (TCK document) beside the events that it accepted."""

import os
from contextlib import suppress

from hltnode.daemon.storage.file_bytes import write_all
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError
from hltnode.processing.selection.configuration.tck import TckDocument

_NEW_SUFFIX = ".new"


def write_tck(directory: OutputDirectory, document: TckDocument) -> str:
    """Write the document as `0x1234ABCD.json`, unless it exists, and force it to the disk; returns the file name.

    A file with this name and other content, for example after a power cut, is replaced by an atomic rename. Raises
    OutputError.
    """
    name, content = document.file_name, document.text.encode()
    if directory.size(name) == len(content) and _content(directory, name) == content:
        return name
    new = name + _NEW_SUFFIX
    descriptor = directory.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError as error:
        with suppress(OutputError):
            directory.unlink(new)
        raise OutputError(directory.path / new, error) from error
    finally:
        os.close(descriptor)
    directory.rename(new, name)
    directory.sync()
    return name


def _content(directory: OutputDirectory, name: str) -> bytes:
    with os.fdopen(directory.open(name, os.O_RDONLY), "rb") as file:
        return file.read()
