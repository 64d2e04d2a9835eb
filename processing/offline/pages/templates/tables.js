"use strict";
// Tables of class "data": sorted by a button in each head, filtered by words and by conditions such as rate>5, rows of
// zeros folded.
// The value of a cell is data-value, or the number at its start; without number the rows are sorted by text.
(() => {
  const FILTERED_FROM = 6;

  const valueOf = (cell) => {
    const text = cell.dataset.value ?? cell.textContent.trim();
    const found = text.match(/^[-+−]?(\d[\d,]*\.?\d*|\.\d+)(e[-+]?\d+)?/i);
    return found ? Number(found[0].replace("−", "-").replaceAll(",", "")) : NaN;
  };

  const isNumeric = (rows, column) => {
    const filled = rows.filter((row) => /[^\s–-]/.test(row.cells[column]?.textContent ?? ""));
    return filled.length > 0 && filled.every((row) => !Number.isNaN(valueOf(row.cells[column])));
  };

  const sortRows = (rows, column, direction) => {
    const numeric = isNumeric(rows, column);
    const compare = (a, b) => {
      if (!numeric) return direction * a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      const [x, y] = [valueOf(a.cells[column]), valueOf(b.cells[column])];
      // Rows without a value are last in both directions.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return direction * (x - y);
    };
    return [...rows].sort(compare);
  };

  // A filter has words, and conditions: the beginning or a part of a head, one of < <= > >=, and a number.
  const CONDITION = /^([^<>]+)(<=|>=|<|>)([-+−]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)$/;
  const COMPARE = { "<": (x, y) => x < y, "<=": (x, y) => x <= y, ">": (x, y) => x > y, ">=": (x, y) => x >= y };

  const withoutSpaces = (text) => text.toLowerCase().replace(/\s/g, "");

  const conditionOf = (term, names) => {
    const [, name, operator, number] = term.match(CONDITION) ?? [];
    if (operator === undefined) return { problem: `"${term}" is no condition such as name>5` };
    const starts = names.findIndex((each) => each.startsWith(name));
    const column = starts >= 0 ? starts : names.findIndex((each) => each.includes(name));
    if (column < 0) return { problem: `no column "${name}"` };
    const bound = Number(number.replace("−", "-"));
    // NaN, a cell without a number, fulfils no condition.
    return { holds: (row) => COMPARE[operator](valueOf(row.cells[column]), bound) };
  };

  const filterOf = (text, names) => {
    const terms = text.toLowerCase().replace(/\s*([<>]=?)\s*/g, "$1").split(/\s+/).filter(Boolean);
    return terms.map((term) =>
      /[<>]/.test(term)
        ? conditionOf(term, names)
        : { holds: (row) => row.textContent.toLowerCase().includes(term) },
    );
  };

  const element = (name, properties, ...content) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...content);
    return made;
  };

  // Long names such as Hlt1DiMuonJpsiMass and long_strange break between their words.
  const breakBetweenWords = (cell) => {
    const parts = cell.textContent.split(/(?<=[a-z])(?=[A-Z][a-z])|(?<=_)/);
    cell.replaceChildren(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
  };

  const enhance = (table) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const zeros = rows.filter((row) => "zero" in row.dataset);
    const tools = element("div", { className: "tools" });
    const names = heads.map((head) => withoutSpaces(head.textContent));
    const numeric = heads.map((_, column) => column > 0 && names[column] !== "" && isNumeric(rows, column));
    // A condition takes the beginning of a head: its first word is short enough for the field.
    const first = heads[numeric.indexOf(true)]?.textContent.trim().split(/[\s,(]/)[0].toLowerCase();
    const placeholder = first ? `words, or ${first}>5` : "words";
    const input = element("input", { type: "search", autocomplete: "off", placeholder });
    const count = element("output");
    const unfold = element("button", { type: "button" });
    let showsZeros = zeros.length === 0 || zeros.length === rows.length;

    const show = () => {
      const terms = filterOf(input.value, names);
      const problem = terms.find((term) => term.problem)?.problem;
      const wanted = terms.filter((term) => term.holds);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !wanted.every((term) => term.holds(row)) || (!showsZeros && "zero" in row.dataset);
        shown += !row.hidden;
      }
      input.setAttribute("aria-invalid", String(problem !== undefined));
      count.textContent = `${shown} of ${rows.length} rows${problem ? `; ${problem}` : ""}`;
      unfold.textContent = `${showsZeros ? "Hide" : "Show"} ${zeros.length} rows of zeros`;
      unfold.setAttribute("aria-expanded", String(showsZeros));
    };

    for (const row of table.querySelectorAll("tbody tr, tfoot tr")) {
      breakBetweenWords(row.cells[0]);
      // A value, its errors and its unit stay on one line.
      numeric.forEach((it, column) => row.cells[column]?.classList.toggle("number", it));
    }
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = element("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        // Numbers: the largest first, text: from A; a second click turns the order.
        const first = isNumeric(rows, column) ? "descending" : "ascending";
        const second = first === "ascending" ? "descending" : "ascending";
        const order = before === first ? second : first;
        for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", order);
        body.append(...sortRows(rows, column, order === "ascending" ? 1 : -1));
      });
    });

    if (rows.length >= FILTERED_FROM) {
      tools.append(element("label", {}, "Filter rows ", input), count);
      count.setAttribute("aria-live", "polite");
      input.addEventListener("input", show);
    }
    if (!showsZeros) {
      tools.append(unfold);
      unfold.addEventListener("click", () => {
        showsZeros = !showsZeros;
        show();
      });
    }
    if (tools.children.length) table.closest(".scroll").before(tools);
    show();
  };

  document.querySelectorAll("table.data").forEach(enhance);
})();
