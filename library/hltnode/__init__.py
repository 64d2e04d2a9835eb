"""hltnode: the software of one trigger farm node, and a library for its events.

    import hltnode

    hltnode.simulate("jpsi.mdf", 1000, sample="jpsi")
    events = hltnode.process("jpsi.mdf", ["long_tracks.pt", "two_track_vertices.mass"])

The names in `__all__` are public and stay compatible; all modules are private, `hltnode.client` excepted.

Every import of a part (`hltnode.daemon`, `hltnode.client`, ...) runs this module first, so it must stay cheap: it
imports a public name when it is first used. Types of the names are in `__init__.pyi`.
"""

__version__ = "0.5.0"

_PLACES = {
    "BackendError": "processing.framework.backends.interface",
    "Bank": "analysis.event_file",
    "Event": "analysis.event_file",
    "EventFile": "analysis.event_file",
    "EventFileError": "processing.framework.event_files",
    "Field": "processing.selection.studies.fields",
    "Picture": "analysis.pictures",
    "Rates": "analysis.studies",
    "SelectedCandidate": "analysis.event_file",
    "ask": "analysis.requests",
    "cached_sample": "analysis.samples",
    "display": "analysis.pictures",
    "fields": "analysis.chains",
    "iterate": "analysis.arrays",
    "open": "analysis.event_file",
    "process": "analysis.arrays",
    "rates": "analysis.studies",
    "simulate": "analysis.samples",
}
__all__ = ["__version__", *_PLACES]
_OTHER_NAMES = {"open": "open_file"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'hltnode' has no attribute {name!r}")
    found = getattr(import_module(f"hltnode.{_PLACES[name]}"), _OTHER_NAMES.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
