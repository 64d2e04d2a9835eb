"""Hooks of MkDocs: pages of the site outside docs/, and links to them.

Pages link to each other and to files of the repository by relative paths, for readers of the repository. These hooks
convert each link to the same page or file of the site. Notebooks become pages with the output that they have.
Diagrams are drawn, and search works from the disk, if `fetch_site_scripts.sh` has fetched their scripts.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter
from pymdownx.superfences import fence_code_format

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs/"
PAGES = {
    "README.md": "index.md",
    "examples/README.md": "project/examples.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Pages outside docs/: path from the root, and place in the site."""

NOTEBOOKS = "examples/notebooks"
SCRIPTS = ROOT / "build" / "site-scripts"
DIAGRAMS, SEARCH_FROM_DISK = "mermaid.js", "iframe-worker.js"
"""Files of SCRIPTS, and of the folder `scripts` of the site."""

FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(?=[#)])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Use the scripts that are there."""
    if (SCRIPTS / DIAGRAMS).is_file():
        config.extra_javascript.append(f"scripts/{DIAGRAMS}")
        fence = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
        config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]
    # Instead of the address on the network that the theme's plugin `offline` has set.
    config.extra["polyfills"] = [f"scripts/{SEARCH_FROM_DISK}"] if (SCRIPTS / SEARCH_FROM_DISK).is_file() else []
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, and all other files to which pages link."""
    for path, place in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    for script in sorted(SCRIPTS.glob("*.js")):
        files.append(File.generated(config, f"scripts/{script.name}", abs_src_path=str(script)))
    pages = list(files.documentation_pages())
    for notebook in sorted((ROOT / NOTEBOOKS).glob("*.ipynb")):
        for place, content in _pages_of_notebook(notebook):
            files.append(File.generated(config, place, content=content))
    for page in pages:
        for part in FENCE.split(page.content_string)[::2]:
            for link in LINK.findall(part):
                path = _path_of_link(page, link)
                place = _place(path)
                if (ROOT / path).is_file() and files.get_file_from_path(place) is None:
                    files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def _pages_of_notebook(notebook: Path) -> Iterator[tuple[str, str | bytes]]:
    """The page of a notebook and the pictures on it: place in the site, and content."""
    pictures = f"{notebook.stem}_files"
    text, resources = MarkdownExporter().from_filename(
        str(notebook), resources={"unique_key": notebook.stem, "output_files_dir": pictures}
    )
    yield f"notebooks/{notebook.stem}.md", text
    for name, content in resources["outputs"].items():
        yield f"notebooks/{name}", content


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links from its place in the site; broken links stay, and MkDocs reports them."""
    del config, files
    if page.file.abs_src_path is None:
        return markdown
    folder = posixpath.dirname(page.file.src_uri)

    def in_site(link: re.Match[str]) -> str:
        return posixpath.relpath(_place(_path_of_link(page.file, link[1])), folder or ".")

    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(in_site, part) for part in parts[::2]]
    return "".join(parts)


def _path_of_link(page: File, link: str) -> str:
    """Target of a link of a page, from the root of the repository."""
    assert page.abs_src_path is not None
    folder = Path(page.abs_src_path).relative_to(ROOT).parent.as_posix()
    path = posixpath.normpath(posixpath.join(folder, link))
    return f"{path}/README.md" if (ROOT / path).is_dir() else path


def _place(path: str) -> str:
    """Place of a file of the repository in the site."""
    if path in PAGES:
        return PAGES[path]
    if posixpath.dirname(path) == NOTEBOOKS:
        return f"notebooks/{posixpath.basename(path).removesuffix('.ipynb')}.md"
    return path.removeprefix(DOCS) if path.startswith(DOCS) else f"files/{path}"
