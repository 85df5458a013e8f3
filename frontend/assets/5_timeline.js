// The timeline: zoom by wheel, drag, key and minimap; stepping along the critical path. The visible part of the window
// stands in the address in ns from its start on, and the server answers with the detail it needs.
(function () {
  "use strict";
  const weir = window.weir;
  const TURN_MS = 150; // after a turn of the wheel Plotly tells the new range within that time
  const PAUSE_MS = 25; // the server is asked before Plotly, 50 ms after the last turn, redraws what it has
  const LATE_MS = 600; // if there is no answer by then, what there is is redrawn after all
  const CONFIG = { displayModeBar: false, doubleClick: false, scrollZoom: true };
  const SHORTEST_NS = 1000;
  const WINDOW_KEYS = ["range", "from", "to", "zone", "theme", "window"];
  const LANES_KEYS = ["window", "theme", "zone", "zoom", "order", "find", "only", "lanes", "segment"];
  const same = () => window.dash_clientside.no_update;
  const at = (id) => document.getElementById(id);
  const graph = () => document.querySelector("#chart-lanes.js-plotly-plot");
  let path = null; // ids and times of the critical path's segments
  let turning = null; // the timer of a gesture under way
  let held = null; // a drawing that came during a gesture
  let drawnOn = null;
  let shown = null; // the newest drawing, and the place it is for
  let shownOn = null;
  let turnedAt = 0;
  let wheeled = false; // the gesture is one of the wheel
  let late = null;
  let typing = null; // the timer of what is typed into the filter
  let labelled = false; // Plotly shows a label of its own
  let stepped = false; // the lane of the selected segment must come into view

  Object.assign(window.dash_clientside.weir, {
    asked: function (_search, windowAsked, lanesAsked) {
      const next = [part(WINDOW_KEYS), part(LANES_KEYS)];
      window.setTimeout(weir.showLaneChoices, 0);
      return [next[0] === windowAsked ? same() : next[0], next[1] === lanesAsked ? same() : next[1]];
    },
    again: (n) => (weir.isBusy() ? same() : n),
    path: function (data) {
      path = data;
      stepped = weir.query().has("segment");
      showMark();
      return same();
    },
    drawn: function (answer) {
      if (!answer || !answer.keys) return null;
      if (answer.since && shownOn !== at("chart-lanes")) return same(); // asked by a tab left since; this one has asked anew
      shownOn = at("chart-lanes");
      shown = answer.figure || { ...shown, data: [answer.selection, ...shown.data.slice(1)] };
      if (turning) held = shown; // else the chart would jump back under the reader's hand
      else draw(shown);
      return answer.keys;
    },
  });

  // Dash's own chart would draw everything a second time after each gesture.
  function draw(figure) {
    const place = at("chart-lanes");
    if (!place) return;
    if (!window.Plotly) return void window.setTimeout(draw, 20, figure); // it comes with the strip's chart
    if (drawnOn && drawnOn !== place) window.Plotly.purge(drawnOn); // of a tab left meanwhile
    drawnOn = place;
    window.clearTimeout(late);
    window.Plotly.react(place, figure.data, figure.layout, CONFIG).then(function (chart) {
      listen(chart);
      chart.dispatchEvent(new CustomEvent("weir-drawn"));
      weir.hoverAgain();
      if (stepped) showLane(figure);
    });
  }
  const part = (keys) => new URLSearchParams([...weir.query()].filter(([key]) => keys.includes(key))).toString() || "-";

  // The visible part [from, to] in ns, whole window if there is none.
  function visible() {
    const found = /^(\d+)-(\d+)$/.exec(weir.query().get("zoom") || "");
    return found ? [Number(found[1]), Number(found[2])] : [0, path ? path.span_ns : 0];
  }

  weir.zoomTo = function (from, to, replace) {
    if (!path) return;
    const whole = path.span_ns;
    const width = Math.min(whole, Math.max(SHORTEST_NS, to - from));
    const first = Math.round(Math.min(Math.max(0, from), whole - width));
    const zoom = width >= whole ? null : first + "-" + Math.round(first + width);
    weir.set({ zoom }, replace, () => window.dash_clientside.set_props("lanes-asked", { data: part(LANES_KEYS) }));
    showMark();
  };
  weir.zoomBy = function (factor, shift) {
    if (!path || !graph()) return false;
    const [from, to] = visible();
    const middle = (from + to) / 2 + (shift || 0) * (to - from);
    const half = ((to - from) * factor) / 2;
    weir.zoomTo(middle - half, middle + half, true);
    return true;
  };

  function listen(chart) {
    if (chart.weirListens) return;
    chart.weirListens = true;
    new ResizeObserver(() => chart.offsetWidth && Math.abs(chart.offsetWidth - chart._fullLayout.width) > 1 && window.Plotly.Plots.resize(chart)).observe(chart);
    chart.addEventListener("wheel", () => ((wheeled = true), turn(TURN_MS, null)), { capture: true, passive: true });
    chart.on("plotly_afterplot", () => unstretch(chart));
    const told = (afterMs) => function (change) {
      const ends = change["xaxis.range"] || [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (ends[0] !== undefined && ends[1] !== undefined) turn(afterMs, ends);
    };
    chart.on("plotly_relayouting", told(PAUSE_MS));
    chart.on("plotly_relayout", told(0));
    chart.on("plotly_click", function (event) {
      const id = event.points[0] && event.points[0].customdata;
      if (id !== undefined) weir.set({ segment: String(id) }, true);
    });
    chart.on("plotly_doubleclick", () => weir.set({ zoom: null }));
    chart.on("plotly_hover", () => ((labelled = true), tip("")));
    chart.on("plotly_unhover", () => (labelled = false));
    chart.addEventListener("mousemove", (event) => event.isTrusted && (labelled || !event.target.closest(".nsewdrag") ? tip("") : hover(chart, event)));
    chart.addEventListener("mouseleave", () => tip(""));
  }

  // While the wheel turns, Plotly stretches the picture; 50 ms later it would draw all of that anew, in the way of the
  // answer that is on its way. A turn of no length makes it forget that. Should the answer be late, it is done here.
  function spare(chart) {
    const area = chart && chart.querySelector(".nsewdrag");
    if (!area || !area._onwheel) return;
    area._onwheel({ deltaY: NaN });
    window.clearTimeout(late);
    late = window.setTimeout(redraw, LATE_MS, chart);
  }
  function redraw(chart) {
    if (turning) late = window.setTimeout(redraw, LATE_MS, chart);
    else if (graph() === chart) window.Plotly.relayout(chart, { "xaxis.range": visible().map((ns) => ns / 1e6) });
  }
  function unstretch(chart) {
    if (turning) return;
    Object.values(chart._fullLayout._plots).forEach(function (area) {
      area.clipRect.attr("transform", null);
      area.plot.attr("transform", "translate(" + area.xaxis._offset + "," + area.yaxis._offset + ")");
      area.xScaleFactor = area.yScaleFactor = 1;
    });
  }

  // A gesture goes on until Plotly tells the range it led to.
  function turn(afterMs, ends) {
    window.clearTimeout(turning);
    turning = window.setTimeout(turned, afterMs, ends);
  }
  function turned(ends) {
    turning = null;
    const byWheel = wheeled;
    wheeled = false;
    const drawing = held;
    held = null;
    const before = window.location.search;
    const far = ([from, to]) => Math.abs(ends[0] - from) + Math.abs(ends[1] - to) > (to - from) * 0.001;
    if (ends && far(visible().map((ns) => ns / 1e6))) {
      const replace = Date.now() - turnedAt < 1500; // one step back in the history for one gesture
      turnedAt = Date.now();
      weir.zoomTo(ends[0] * 1e6, ends[1] * 1e6, replace);
    }
    if (window.location.search !== before) return void (byWheel && spare(graph())); // the answer to that will be drawn
    const range = visible().map((ns) => ns / 1e6);
    if (drawing) draw(drawing);
    else if (ends && far(range) && graph()) window.Plotly.relayout(graph(), { "xaxis.range": range }); // beyond the window's ends
  }

  // Merged segments have no label of their own: each cell knows its type and how many it stands for.
  const bytes = (text) => Uint8Array.from(window.atob(text), (c) => c.charCodeAt(0));
  function merged(meta) {
    if (meta.merged && !meta.merged.read) meta.merged.read = { cells: bytes(meta.merged.cells), count: bytes(meta.merged.count) };
    return meta.merged;
  }
  function hover(chart, event) {
    const meta = chart.layout.meta || {};
    const data = merged(meta);
    const picture = (chart.layout.images || [])[0];
    if (!data || !picture) return tip("");
    const box = chart.querySelector(".nsewdrag").getBoundingClientRect();
    const { xaxis, yaxis } = chart._fullLayout;
    const column = Math.floor(((xaxis.p2d(event.clientX - box.left) - picture.x) / picture.sizex) * data.columns);
    const row = Math.round(yaxis.p2d(event.clientY - box.top));
    const cell = row * data.columns + column;
    if (column < 0 || column >= data.columns || !data.read.cells[cell]) return tip("");
    const [code, count] = [data.read.cells[cell], data.read.count[cell]];
    const critical = code > data.kinds.length ? "critical " : "";
    const kind = data.kinds[(code - 1) % data.kinds.length];
    const what = count === 1 ? "1 short " + critical + "segment, " : (count === 255 ? "255 or more" : count) + " short " + critical + "segments merged, mostly ";
    tip(what + kind + "\n" + meta.who[row] + "\nZoom in for more.", event);
  }
  function tip(text, mouse) {
    let box = at("merged-tip");
    if (!box) {
      box = document.createElement("div");
      box.id = "merged-tip";
      box.setAttribute("aria-hidden", "true");
      document.body.append(box);
    }
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const left = Math.min(mouse.clientX + 14, window.innerWidth - box.offsetWidth - 8);
    box.style.transform = "translate(" + left + "px," + (mouse.clientY + 18) + "px)";
  }
  window.addEventListener("scroll", () => tip(""), { passive: true });

  // n and p. Without a selection the first step goes to what is visible; a zoomed view pans to the segment.
  weir.segment = function (by) {
    if (!path || !path.ids.length) return;
    const [from, to] = visible();
    const named = weir.query().get("segment"); // a number, or who and when, which the server has found
    const drawn = graph() && graph().data[0].meta;
    const chosen = named === null || /^\d+$/.test(named) ? named : drawn && drawn.number;
    let next = chosen === null || chosen === undefined ? -1 : path.ids.indexOf(Number(chosen));
    if (next >= 0) next = (next + by + path.ids.length) % path.ids.length;
    else if (by > 0) next = path.to_ns.findIndex((end) => end > from);
    else next = path.from_ns.findLastIndex((start) => start < to);
    next = Math.max(0, next);
    const [begin, end, width] = [path.from_ns[next], path.to_ns[next], to - from];
    const changes = { segment: String(path.ids[next]) };
    if (begin < from || end > to) {
      const room = end - begin > width * 0.9 ? begin - width * 0.05 : (begin + end - width) / 2;
      const first = Math.round(Math.min(Math.max(0, room), path.span_ns - width));
      if (width < path.span_ns) changes.zoom = first + "-" + (first + width);
    }
    stepped = true;
    weir.set(changes, true);
    showMark();
  };

  // The selected segment's lane may be below the fold.
  function showLane(figure) {
    stepped = false;
    const frame = figure.data[0];
    const chart = graph();
    if (!chart || !frame.y || !frame.y.length) return;
    const top = chart.getBoundingClientRect().top + 8 + (Math.min(...frame.y) + 0.5) * figure.layout.meta.lane_px;
    if (top < 80 || top > window.innerHeight - 60) window.scrollBy({ top: top - window.innerHeight / 2, behavior: "auto" });
  }

  // The minimap: drag over a part to see it, click to go there.
  function showMark() {
    const mark = document.querySelector("#minimap .mark");
    if (!mark || !path) return;
    const [from, to] = visible();
    mark.style.left = (100 * from) / path.span_ns + "%";
    mark.style.width = Math.max(0.2, (100 * (to - from)) / path.span_ns) + "%";
    mark.hidden = to - from >= path.span_ns;
  }
  let drag = null;
  const place = (event) => {
    const box = at("minimap").getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * path.span_ns;
  };
  document.addEventListener("pointerdown", function (event) {
    const map = event.target.closest("#minimap");
    if (!map || !path || event.button !== 0) return;
    event.preventDefault();
    map.setPointerCapture(event.pointerId);
    drag = { from: place(event), x: event.clientX };
  });
  document.addEventListener("pointermove", function (event) {
    if (!drag || !at("minimap")) return;
    const ends = [drag.from, place(event)].sort((a, b) => a - b);
    const mark = document.querySelector("#minimap .mark");
    mark.hidden = false;
    mark.style.left = (100 * ends[0]) / path.span_ns + "%";
    mark.style.width = (100 * (ends[1] - ends[0])) / path.span_ns + "%";
  });
  document.addEventListener("pointerup", function (event) {
    if (!drag || !at("minimap")) return void (drag = null);
    const here = place(event);
    const [from, to] = visible();
    if (Math.abs(event.clientX - drag.x) > 4) weir.zoomTo(Math.min(drag.from, here), Math.max(drag.from, here));
    else weir.zoomTo(here - (to - from) / 2, here + (to - from) / 2);
    drag = null;
  });
  document.addEventListener("pointercancel", () => ((drag = null), showMark()));

  weir.showLaneChoices = function () {
    const query = weir.query();
    document.querySelectorAll(".lane-choices [data-set]").forEach(function (button) {
      const on = Object.entries(JSON.parse(button.dataset.set)).every(([key, value]) => query.get(key) === value);
      button.setAttribute("aria-pressed", String(on));
    });
    const find = at("find-lanes");
    if (find && !typing && find !== document.activeElement && find.value !== (query.get("find") || "")) window.dash_clientside.set_props("find-lanes", { value: query.get("find") || "" });
    const whole = at("go-whole");
    if (whole) whole.disabled = !query.has("zoom");
    showMark();
  };
  document.addEventListener("input", function (event) {
    if (event.target.id !== "find-lanes") return;
    const find = event.target.value;
    window.clearTimeout(typing);
    typing = window.setTimeout(() => ((typing = null), weir.set({ find }, true)), 250);
  });

  const keys = {
    "+": () => weir.zoomBy(0.5),
    "=": () => weir.zoomBy(0.5),
    "-": () => weir.zoomBy(2),
    0: () => graph() && (weir.set({ zoom: null }), true),
    ArrowLeft: () => weir.query().has("zoom") && weir.zoomBy(1, -0.25),
    ArrowRight: () => weir.query().has("zoom") && weir.zoomBy(1, 0.25),
  };
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, .ag-root")) return;
    if (keys[event.key] && keys[event.key]()) event.preventDefault();
  });

  // Exactly what is drawn: bars and messages as they are, merged segments as runs of cells of one type.
  weir.lanesTable = function (chart) {
    const { meta, images } = chart.layout;
    const lines = [["what", "worker", "receiver", "from_ms", "to_ms", "merged"]];
    chart.data.forEach(function (trace) {
      if (!trace.name) return;
      if (trace.type === "bar") trace.x.forEach((x, i) => lines.push([trace.name, meta.who[trace.y[i]], "", trace.base[i], trace.base[i] + x, ""]));
      else trace.x.forEach((x, i) => lines.push([trace.name, meta.who[trace.meta.sender[i]], meta.who[trace.y[i]], trace.meta.sent[i], x, ""]));
    });
    const data = merged(meta);
    if (!data) return lines;
    const { cells } = data.read;
    const from = (column) => images[0].x + (column / data.columns) * images[0].sizex;
    for (let start = 0, end = 0; start < cells.length; start = end) {
      const row = Math.floor(start / data.columns);
      const rowEnd = (row + 1) * data.columns;
      for (end = start + 1; end < rowEnd && cells[end] === cells[start]; end++);
      if (!cells[start]) continue;
      const what = data.kinds[(cells[start] - 1) % data.kinds.length] + (cells[start] > data.kinds.length ? ", critical path" : "");
      lines.push(["mostly " + what, meta.who[row], "", from(start % data.columns), from(((end - 1) % data.columns) + 1), "yes"]);
    }
    return lines;
  };
})();
