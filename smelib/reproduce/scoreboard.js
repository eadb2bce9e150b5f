(() => {
  const table = document.querySelector(".scores.cells table");
  if (!table) return;
  const body = table.tBodies[0];
  const text = (row, column) => row.cells[column].textContent;
  // A number may carry a sign that is no hyphen, or end in ×.
  const value = words => parseFloat(words.replace("−", "-"));

  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = (a, b) => {
        const [x, y] = [text(a, column), text(b, column)], [p, q] = [value(x), value(y)];
        if (!isNaN(p) && !isNaN(q) && p !== q) return p - q;
        if (isNaN(p) !== isNaN(q)) return isNaN(p) ? 1 : -1;
        return x.localeCompare(y, "en", {numeric: true});
      };
      body.append(...[...body.rows].sort((a, b) => up ? compare(a, b) : compare(b, a)));
    });
  });

  const filters = document.querySelector(".filters");
  if (!filters) return;
  const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const selects = [...filters.querySelectorAll("select")];
  const show = () => {
    let shown = 0;
    for (const row of body.rows) {
      // "L_sim" is set with a subscript in the table, so the underscore does not count
      row.hidden = selects.some(select => select.value &&
        select.value.replace("_", "") !== text(row, heads.indexOf(select.dataset.column)));
      shown += !row.hidden;
    }
    filters.querySelector("output").textContent = `${shown} of ${body.rows.length} shown`;
  };
  selects.forEach(select => select.addEventListener("change", show));
  filters.hidden = false;
  show();
})();
