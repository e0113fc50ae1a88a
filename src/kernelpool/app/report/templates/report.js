// Tables sort by a click on a column's head. Without this script they stand as they were written.
(() => {
  const value = (row, i) => {
    const cell = row.cells[i];
    if (!cell) return "";
    return cell.hasAttribute("data-sort") ? cell.getAttribute("data-sort") : cell.textContent.trim();
  };
  const compare = (a, b) => {
    const x = parseFloat(a), y = parseFloat(b);
    if (a !== "" && b !== "" && isFinite(a) && isFinite(b)) return x - y;
    return a.localeCompare(b, undefined, { numeric: true });
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, i) => {
      if (!head.hasAttribute("data-sortable")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const number = head.classList.contains("num") || head.hasAttribute("aria-sort");
        const last = head.getAttribute("aria-sort");
        const up = last === null ? !number : last === "descending";
        const rows = [...body.rows].map((row) => [value(row, i), row]);
        rows.sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
        body.append(...rows.map((pair) => pair[1]));
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
      });
    });
  }
})();
