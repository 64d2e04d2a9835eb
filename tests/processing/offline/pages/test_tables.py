"""Tables of the HTML reports."""

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from hltnode.processing.offline.pages import template_folder
from hltnode.processing.offline.pages.tables import Cell, Row, with_bars
from tests.chromium import needs_chromium, page_after_scripts

TABLES = Path(template_folder.__file__).parent / "templates" / "tables.js"


def shares(rows: Sequence[Row]) -> list[float | None]:
    return [cell.share if isinstance(cell, Cell) else None for row in rows for cell in row.cells]


def test_bars_compare_the_values_of_a_column_with_its_largest_one() -> None:
    rows = [Row(["a", Cell("4", 4.0), Cell("9", 9.0)]), Row(["b", Cell("1", 1.0), Cell("9", 9.0)], zero=True)]
    barred = with_bars(rows, [1])
    assert shares(barred) == [None, 1.0, None, None, 0.25, None]
    assert [(row.cells[0], row.zero) for row in barred] == [("a", False), ("b", True)]
    assert shares(rows) == [None] * 6


def test_cells_without_a_value_and_columns_of_zeros_have_no_bar() -> None:
    rows = [Row(["a", Cell("–"), Cell("0", 0.0), "7"]), Row(["b", Cell("2", 2.0), Cell("-1", -1.0), "8"])]
    assert shares(with_bars(rows, [0, 1, 2, 3])) == [None, None, None, None, None, 1.0, None, None]
    assert shares(with_bars([Row(["a", Cell("-1", -1.0)]), Row(["b", Cell("2", 2.0)])], [1])) == [None, 0.0, None, 1.0]
    assert with_bars([], [1]) == []


FILTERED = {
    "": ["a", "b", "c", "d", "e", "f"],
    "rate>5": ["c", "d", "e"],
    "rate >= 5": ["b", "c", "d", "e"],
    "rate<5": ["a"],
    "RATE<=5e0": ["a", "b"],
    "eff>−0.5 rate>5": ["c", "d"],
    "eff > -0.5 kept": ["c"],
    "in%<-0.5": ["e"],
    "1,200": ["e"],
    "rate>1000": ["e"],
    "rate>5 nothing": [],
}
FAULTS = {"speed>5": 'no column "speed"', "rate>5<7": '"rate>5<7" is no condition', ">5": '">5" is no condition'}


@needs_chromium
def test_rows_are_filtered_by_words_and_by_conditions_on_columns(tmp_path: Path) -> None:
    rows = [("a", "4", "0", ""), ("b", "5", "1", ""), ("c", "6 +1 −1", "−0.25", "kept"), ("d", "6", ".5", "")]
    rows += [("e", "1,200", "-1", ""), ("f", "–", "–", "")]
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    heads = "<th>line</th><th>rate (kHz)</th><th>eff in %</th><th>note</th>"
    steps = json.dumps([*FILTERED, *FAULTS])
    page = tmp_path / "page.html"
    page.write_text(
        f"""<!doctype html><div class="scroll"><table class="data"><thead><tr>{heads}</tr></thead>
<tbody>{body}</tbody></table></div><pre></pre><script>{TABLES.read_text()}</script><script>
const input = document.querySelector("input"), found = [];
for (const filter of {steps}) {{
  input.value = filter;
  input.dispatchEvent(new Event("input"));
  const shown = [...document.querySelectorAll("tbody tr")].filter((row) => !row.hidden);
  found.push([shown.map((row) => row.cells[0].textContent), input.getAttribute("aria-invalid"),
              document.querySelector("output").textContent]);
}}
document.querySelector("pre").textContent = btoa(JSON.stringify([input.placeholder, found]));
</script>"""
    )
    document = page_after_scripts(tmp_path / "profile", page.as_uri())
    written = re.search(r"<pre>([\w+/=]+)</pre>", document)
    assert written is not None
    placeholder, found = json.loads(base64.b64decode(written[1]))
    assert placeholder == "words, or rate>5"
    for (text, expected), (shown, invalid, count) in zip(FILTERED.items(), found, strict=False):
        assert (text, shown, invalid) == (text, expected, "false")
        assert count == f"{len(expected)} of 6 rows"
    for (text, problem), (_, invalid, count) in zip(FAULTS.items(), found[len(FILTERED) :], strict=True):
        assert invalid == "true", text
        assert f"of 6 rows; {problem}" in count


@needs_chromium
def test_long_names_break_between_words_and_numbers_do_not_break(tmp_path: Path) -> None:
    rows = [("Hlt1DiMuonJpsiMass", "75.0 +1 −1 %", "none"), ("04_long_strange_P>5GeV", "–", "")]
    rows.append(("of K0S", "3", "7 or so"))
    body = "".join(f"<tr><th>{row[0].replace('>', '&gt;')}</th><td>{row[1]}</td><td>{row[2]}</td></tr>" for row in rows)
    heads = "<th>line</th><th>Efficiency, all decays (%)</th><th>note</th>"
    page = tmp_path / "page.html"
    page.write_text(
        f"""<!doctype html><div class="scroll"><table class="data"><thead><tr>{heads}</tr></thead>
<tbody>{body * 2}</tbody><tfoot><tr><th>all_lines</th><td>1</td></tr></tfoot></table></div><pre></pre>
<script>{TABLES.read_text()}</script><script>
const cells = [...document.querySelectorAll("tbody tr:nth-child(-n+3) > *, tfoot tr > *")];
const found = cells.map((it) => [it.innerHTML, it.className]);
document.querySelector("pre").textContent = btoa(encodeURIComponent(JSON.stringify([input(), found])));
function input() {{ return document.querySelector("input").placeholder; }}
</script>"""
    )
    written = re.search(r"<pre>([\w+/=]+)</pre>", page_after_scripts(tmp_path / "profile", page.as_uri()))
    assert written is not None
    placeholder, found = json.loads(unquote(base64.b64decode(written[1]).decode()))
    assert placeholder == "words, or efficiency>5"
    assert [tuple(each) for each in found] == [
        ("Hlt1Di<wbr>Muon<wbr>Jpsi<wbr>Mass", ""),
        ("75.0 +1 −1 %", "number"),
        ("none", ""),
        ("04_<wbr>long_<wbr>strange_<wbr>P&gt;5GeV", ""),
        ("–", "number"),
        ("", ""),
        ("of K0S", ""),
        ("3", "number"),
        ("7 or so", ""),
        ("all_<wbr>lines", ""),
        ("1", "number"),
    ]
