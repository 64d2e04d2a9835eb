"""HTML pages from templates; all inserted text is escaped."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, *folders: Path, **values: object) -> str:
    """The page from a template with `values`; the template is searched in `folders`, in order."""
    return _environment(folders).get_template(template).render(values)


@cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
