// Sorting, filtering and hiding columns. Without this script the pages still show everything.
"use strict";

function sortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.querySelectorAll("th[data-sort]")];

  function show(rows) {
    body.append(...rows);
  }

  function key(row, head) {
    const cell = row.cells[head.cellIndex];
    if (head.dataset.sort === "text") return cell.textContent.trim();
    return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
  }

  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null); // missing comes last in either direction
    if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
    return sign * (a - b);
  }

  function sortBy(head) {
    const first = head.dataset.sort === "down" ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const now = head.getAttribute("aria-sort");
    const next = now === null ? first : now === first ? second : null; // the third time: as it was
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    if (next === null) return show(original);
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const keyed = original.map((row) => [key(row, head), row]);
    show(keyed.sort((a, b) => compare(a[0], b[0], sign)).map((pair) => pair[1]));
  }

  for (const head of heads) {
    const button = document.createElement("button");
    const title = document.createElement("span");
    const metric = head.querySelector(".metric");
    button.type = "button";
    title.className = "title";
    title.append(...[...head.childNodes].filter((node) => node !== metric));
    button.append(title);
    if (metric) button.append(metric);
    head.append(button);
    button.addEventListener("click", () => sortBy(head));
  }
}

function filterable(input) {
  const table = document.getElementById(input.dataset.filter);
  const count = document.querySelector(`[data-count="${input.dataset.filter}"]`);
  const rows = [...table.tBodies[0].rows];

  function apply() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? `${shown} of ${rows.length} shown` : "";
  }

  input.addEventListener("input", apply);
  apply(); // browsers keep what was typed before a reload
}

function hideable(box) {
  const cells = document.getElementById(box.dataset.table).querySelectorAll(`[data-group="${box.value}"]`);
  const apply = () => cells.forEach((cell) => (cell.hidden = !box.checked));
  box.addEventListener("change", apply);
  apply();
}

document.querySelectorAll("table.grid").forEach(sortable);
document.querySelectorAll("input[data-filter]").forEach(filterable);
document.querySelectorAll("input[data-table]").forEach(hideable);
document.querySelectorAll(".tools").forEach((tools) => (tools.hidden = false));
