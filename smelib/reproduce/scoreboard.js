document.querySelectorAll(".scores th button").forEach((button, column) => {
  button.addEventListener("click", () => {
    const head = button.parentElement, table = head.closest("table"), body = table.tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const text = row => row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [text(a), text(b)], [p, q] = [parseFloat(x), parseFloat(y)];
      if (!isNaN(p) && !isNaN(q) && p !== q) return p - q;
      if (isNaN(p) !== isNaN(q)) return isNaN(p) ? 1 : -1;
      return x.localeCompare(y, "en", {numeric: true});
    };
    const rows = [...body.rows].sort((a, b) => up ? compare(a, b) : compare(b, a));
    body.append(...rows);
  });
});
