// The address is the state of the page. Everything that changes the view changes the address here, and the
// callbacks follow it. Back and copied links work by themselves.
(function () {
  "use strict";
  const weir = (window.weir = window.weir || {});
  const KEPT = ["theme", "zone", "range", "from", "to", "live"]; // what another page takes over
  const TELL_MS = 200; // by then the answer to what was asked first is there or nearly so
  const REFRESH_MS = { "5m": 2000, "15m": 2000, "1h": 5000, "6h": 15000, "24h": 60000 };
  const LABELS = { "5m": "last 5 min", "15m": "last 15 min", "1h": "last 1 h", "6h": "last 6 h", "24h": "last 24 h" };

  weir.query = () => new URLSearchParams(window.location.search);
  weir.range = () => (REFRESH_MS[weir.query().get("range")] ? weir.query().get("range") : "15m");
  weir.isAbsolute = () => weir.query().has("from") && weir.query().has("to");
  weir.isPaused = () => weir.query().get("live") === "0";
  weir.refreshMs = () => REFRESH_MS[weir.range()];

  let telling = null;
  const tell = () => window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));

  // What `first` asks for is what matters: Dash goes through all else that follows the address after it.
  weir.go = function (path, changes, replace, first) {
    const now = weir.query();
    const next = path === window.location.pathname ? now : new URLSearchParams();
    if (next !== now) KEPT.forEach((key) => now.has(key) && next.set(key, now.get(key)));
    Object.entries(changes || {}).forEach(([key, value]) =>
      value === null || value === undefined || value === "" ? next.delete(key) : next.set(key, value)
    );
    const query = next.toString();
    const address = path + (query ? "?" + query : "");
    if (address === window.location.pathname + window.location.search) return;
    window.history[replace ? "replaceState" : "pushState"]({}, "", address);
    window.clearTimeout(telling);
    if (first) {
      first();
      telling = window.setTimeout(tell, TELL_MS);
    } else tell();
    if (next === now) return;
    window.scrollTo(0, 0);
    document.getElementById("page").focus({ preventScroll: true }); // the reader of a screen reader is on the new page too
  };
  weir.set = (changes, replace, first) => weir.go(window.location.pathname, changes, replace, first);

  // The theme of a first visit: chosen before, else the system's. It then stands in the address.
  weir.theme = () => (weir.query().get("theme") === "dark" ? "dark" : "light");
  (function () {
    const stored = window.localStorage.getItem("weir-theme");
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    if (!weir.query().has("theme")) {
      const next = weir.query();
      next.set("theme", stored || (dark ? "dark" : "light"));
      window.history.replaceState({}, "", window.location.pathname + "?" + next.toString());
    }
    document.documentElement.setAttribute("data-mantine-color-scheme", weir.theme());
  })();

  weir.switchTheme = function () {
    const next = weir.theme() === "dark" ? "light" : "dark";
    window.localStorage.setItem("weir-theme", next);
    weir.set({ theme: next }, true);
  };

  // What the frame shows of the address.
  function showFrame(path) {
    const query = weir.query();
    const zone = query.get("zone") || "UTC";
    const label = document.getElementById("range-label");
    const moment = (text) => text.replace("T", " ").replace(/\.000Z$|Z$/, "").slice(5);
    const words = weir.isAbsolute() ? moment(query.get("from")) + " – " + moment(query.get("to")) + " UTC" : LABELS[weir.range()];
    if (label) label.textContent = weir.isAbsolute() ? words : words + " · " + (zone === "UTC" ? "UTC" : zone.split("/").pop().replace("_", " "));
    document.querySelectorAll(".nav a").forEach((link) => {
      const to = link.getAttribute("href");
      const here = path === to || (to !== "/" && path.startsWith(to + "/"));
      if (here === link.hasAttribute("aria-current")) return;
      here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
      if (here) link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetLeft - 24; // phones show a part of the links
    });
    document.documentElement.setAttribute("data-mantine-color-scheme", weir.theme());
    document.querySelectorAll("[data-set]").forEach((button) => {
      const wanted = JSON.parse(button.dataset.set);
      const on = "range" in wanted ? !weir.isAbsolute() && wanted.range === weir.range() : "zone" in wanted && zone === "UTC";
      if ("range" in wanted || "zone" in wanted) button.setAttribute("aria-pressed", String(on));
    });
    const local = document.getElementById("zone-local");
    if (local) local.setAttribute("aria-pressed", String(zone !== "UTC"));
  }

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    weir: {
      // What is drawn is compared with the stores, since Dash may drop the result of a call that another follows.
      route: function (pathname, _search, drawn, drawnFor) {
        const route = { path: pathname, tab: weir.query().get("tab") || "limits" };
        const screen = window.innerWidth < 768 ? "narrow" : "wide";
        const same = window.dash_clientside.no_update;
        const still = drawn && drawn.path === route.path && drawn.tab === route.tab;
        weir.screen = screen;
        weir.live && weir.live();
        showFrame(pathname);
        return [still ? same : route, drawnFor === screen ? same : screen, weir.theme()];
      },
      fresh: function (data) {
        const head = document.querySelector("main h1");
        document.title = head ? head.textContent + " · Weir" : "Weir";
        if (data) weir.read = Object.assign({ seen: Date.now() }, data);
        weir.stamp && weir.stamp();
        return window.dash_clientside.no_update;
      },
      // A click on a column's head: the server sorts. The first state is the address's own.
      sorted: function (columns) {
        const by = (columns || []).find((column) => column.sort);
        const wanted = by ? (by.sort === "desc" ? "-" : "") + by.colId : null;
        if (columns && weir.sortSeen && wanted !== weir.query().get("sort")) weir.set({ sort: wanted, page: null }, true);
        if (columns) weir.sortSeen = true;
        return window.dash_clientside.no_update;
      },
      chosen: function (start) {
        if (start && weir.query().get("tab") === "timeline" && weir.query().get("window") !== start) weir.set({ window: start }, true);
        return window.dash_clientside.no_update;
      },
    },
  });

  window.addEventListener("resize", function () {
    const screen = window.innerWidth < 768 ? "narrow" : "wide";
    if (weir.screen && screen !== weir.screen) {
      weir.screen = screen;
      window.dash_clientside.set_props("screen", { data: screen });
    }
  });
})();
