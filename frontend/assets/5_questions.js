// The questions' tabs: what a choice, a number or a click on a chart changes in the address, and tables to take away.
(function () {
  "use strict";
  const weir = window.weir;

  // A list or a field inside data-param writes its value to the address; the ends of a range only both together.
  document.addEventListener("change", written);
  document.addEventListener("keydown", (event) => event.key === "Enter" && event.target.matches("[data-param] input") && written(event));
  function written(event) {
    const owner = event.target.closest("[data-param]");
    if (!owner) return;
    const changes = { [owner.dataset.param]: event.target.value.trim() || null };
    (owner.dataset.clears || "").split(" ").filter(Boolean).forEach((name) => (changes[name] = null));
    const pair = owner.dataset.pair && document.querySelector('[data-param="' + owner.dataset.pair + '"] input');
    if (pair) changes[owner.dataset.pair] = pair.value.trim() || null;
    weir.set(changes);
  }

  Object.assign(window.dash_clientside.weir, {
    // A mark of a chart carries the change of the address that a click on it makes.
    pick: function (click) {
      const changes = click && click.points[0].customdata;
      if (typeof changes === "string" && changes.startsWith("{")) weir.set(JSON.parse(changes));
      return window.dash_clientside.no_update;
    },
  });

  const quote = (text) => (/[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);
  const chartCsv = weir.csv;
  weir.csv = function (panel) {
    const table = panel.querySelector("table.facts");
    if (!table) return chartCsv(panel);
    const lines = [...table.rows].map((row) => [...row.cells].map((cell) => quote(cell.dataset.raw ?? cell.textContent)).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = panel.dataset.file + ".csv";
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
})();
