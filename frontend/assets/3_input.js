// Mouse and keyboard: what a click on an element with data-set, data-act or a link does, and the keys.
(function () {
  "use strict";
  const weir = window.weir;
  const at = (id) => document.getElementById(id);

  function instant(text) {
    const found = /^\s*(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?\s*Z?\s*$/.exec(text || "");
    if (!found) return null;
    const zone = weir.query().get("zone") || "UTC";
    const utc = new Date(found[1] + "T" + found[2] + (found[3] || ":00") + "Z");
    if (isNaN(utc)) return null;
    if (zone === "UTC") return utc;
    const shown = new Date(utc.toLocaleString("en-US", { timeZone: zone }) + " UTC");
    return new Date(utc.getTime() - (shown.getTime() - Math.floor(utc.getTime() / 1000) * 1000));
  }

  const acts = {
    theme: () => weir.switchTheme(),
    pause: () => weir.set({ live: weir.isPaused() ? null : "0" }),
    help: () => weir.help(!weir.helpOpen),
    pages: (button) => showPages(button.getAttribute("aria-expanded") !== "true"),
    "local-zone": () => weir.set({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone }),
    range: function () {
      const from = instant(at("range-from").value);
      const to = instant(at("range-to").value);
      const wrong = !from || !to ? "Write both times as 2026-01-31 14:03:00." : from >= to ? "The range ends before it starts." : "";
      at("range-error").textContent = wrong;
      if (wrong) return true;
      weir.set({ from: from.toISOString(), to: to.toISOString() });
      return false;
    },
    table: (button) => swap(button),
    csv: (button) => weir.csv(button.closest("section")),
    png: (button) => weir.png(button.closest("section")),
    next: () => weir.segment(1),
    previous: () => weir.segment(-1),
    "zoom-in": () => weir.zoomBy(0.5),
    "zoom-out": () => weir.zoomBy(2),
    "window-next": () => weir.neighbour(1),
    "window-previous": () => weir.neighbour(-1),
  };

  // Which panels show their numbers instead of the chart stands in the address, by the panels' names.
  const asTables = () => new Set((weir.query().get("table") || "").split(" ").filter(Boolean));
  function swap(button) {
    const name = button.closest("section").id.replace("panel-", "");
    const names = asTables();
    names.delete(name) || names.add(name);
    weir.set({ table: [...names].join(" ") }, true);
    showTables();
  }
  function showTables() {
    const names = asTables();
    document.querySelectorAll("section.panel [data-act=table]").forEach(function (button) {
      const panel = button.closest("section");
      const table = names.has(panel.id.replace("panel-", ""));
      if (panel.classList.contains("as-table") === table) return;
      panel.classList.toggle("as-table", table);
      button.setAttribute("aria-pressed", String(table));
    });
  }
  let drawing = 0; // panels come and go with the tabs, and with back and forward
  const showTablesSoon = () => (drawing = drawing || window.requestAnimationFrame(() => ((drawing = 0), showTables())));
  window.addEventListener("popstate", showTablesSoon);

  // On phones the links of the frame fold into a button.
  const showPages = (open) => at("pages") && at("pages").setAttribute("aria-expanded", String(open));

  weir.help = function (open) {
    weir.helpOpen = open;
    window.dash_clientside.set_props("help", { opened: open });
    weir.live();
  };

  document.addEventListener("click", function (event) {
    const inside = event.target.closest("details.popover");
    document.querySelectorAll("details.popover[open]").forEach((open) => open !== inside && (open.open = false));
    if (!event.target.closest("#pages")) showPages(false);
    const button = event.target.closest("[data-set], [data-act]");
    if (button) {
      const stays = button.dataset.set ? weir.set(JSON.parse(button.dataset.set)) : (acts[button.dataset.act] || (() => {}))(button);
      if (inside && !stays) inside.open = false;
      return;
    }
    const plain = !event.defaultPrevented && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    const link = event.target.closest("a[href^='/']:not([href^='/help'])"); // the guides are pages of their own
    if (link && plain && !link.target) {
      const to = new URL(link.href);
      event.preventDefault();
      weir.go(to.pathname, Object.fromEntries(to.searchParams));
      return;
    }
    const row = plain && event.target.closest("#jobs .ag-row[row-id]");
    if (row) weir.go("/jobs/" + row.getAttribute("row-id"), {});
  });

  let typing;
  document.addEventListener("input", function (event) {
    if (event.target.id !== "search") return;
    window.clearTimeout(typing);
    typing = window.setTimeout(() => weir.set({ search: event.target.value }, true), 250);
  });

  let before = "";
  function moveRow(by) {
    const rows = [...document.querySelectorAll("#jobs .ag-row[row-id]")].sort((a, b) => a.getAttribute("row-index") - b.getAttribute("row-index"));
    if (!rows.length) return;
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[Math.min(rows.length - 1, Math.max(0, here < 0 ? 0 : here + by))];
    const cell = row.querySelector(".ag-cell");
    if (cell) cell.focus();
  }

  const keys = {
    "?": () => weir.help(!weir.helpOpen),
    "/": () => (at("search") || at("find-lanes") || document.body).focus(),
    j: () => moveRow(1),
    k: () => moveRow(-1),
    n: () => weir.segment(1),
    p: () => weir.segment(-1),
    "]": () => weir.neighbour(1),
    "[": () => weir.neighbour(-1),
  };

  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") return escape();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const row = event.key === "Enter" && event.target.closest("#jobs .ag-row[row-id]");
    if (row) return weir.go("/jobs/" + row.getAttribute("row-id"), {});
    if (before === "g" && event.key === "o") weir.go("/", {});
    else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
    before = event.key;
  });

  function escape() {
    const open = document.querySelector("details.popover[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    } else if (at("pages").getAttribute("aria-expanded") === "true") {
      showPages(false);
      at("pages").focus();
    } else if (weir.helpOpen) weir.help(false);
    else if (weir.query().has("segment")) weir.set({ segment: null });
    else if (document.activeElement && ["search", "find-lanes"].includes(document.activeElement.id)) document.activeElement.blur();
  }

  // Mantine closes its dialog by itself; the ticks must go on then.
  new MutationObserver(function () {
    showTablesSoon();
    if (weir.helpOpen && weir.helpShown && !document.querySelector(".mantine-Modal-content")) {
      weir.helpOpen = false;
      weir.live();
    }
    weir.helpShown = Boolean(document.querySelector(".mantine-Modal-content"));
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
