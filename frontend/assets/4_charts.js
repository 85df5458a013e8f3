// Charts: a click opens the window under it, a drag sets the page's range, and what is drawn can be taken away.
(function () {
  "use strict";
  const weir = window.weir;
  const same = () => window.dash_clientside.no_update;
  const graph = (id) => document.querySelector("#" + id + " .js-plotly-plot") || document.querySelector("#" + id + ".js-plotly-plot");

  // Plotly's x values are the reader's wall clock; the figure's meta says which ns the first step starts at.
  const wallClock = (x) => (typeof x === "number" ? x : Date.parse(String(x).replace(" ", "T").replace(/Z?$/, "Z")));
  function isoAt(meta, x) {
    const ms = Number(BigInt(meta.start) / 1000000n) + (wallClock(x) - meta.x0);
    return new Date(ms).toISOString();
  }

  Object.assign(window.dash_clientside.weir, {
    chart: function (click, relayout, figure) {
      const meta = figure && figure.layout && figure.layout.meta;
      const triggered = window.dash_clientside.callback_context.triggered.map((item) => item.prop_id.split(".")[1]);
      if (!meta) return same();
      if (triggered.includes("clickData") && click) {
        const step = Math.min(click.points[0].pointNumber, meta.count - 1);
        weir.set({ tab: "timeline", window: String(BigInt(meta.start) + BigInt(step) * BigInt(meta.width)), segment: null, zoom: null });
      } else if (triggered.includes("relayoutData") && relayout) {
        const ends = relayout["xaxis.range"] || [relayout["xaxis.range[0]"], relayout["xaxis.range[1]"]];
        if (ends[0] !== undefined && ends[1] !== undefined) weir.set({ from: isoAt(meta, ends[0]), to: isoAt(meta, ends[1]) });
        else if (relayout["xaxis.autorange"]) weir.set({ from: null, to: null });
      }
      return same();
    },
    strip: function (click) {
      const start = click && click.points[0].customdata;
      if (start) weir.set({ window: String(start), segment: null, zoom: null });
      return same();
    },
  });

  weir.neighbour = function (by) {
    const chart = graph("chart-strip");
    const meta = chart && chart.layout.meta;
    if (!meta) return;
    const next = meta.starts[meta.starts.indexOf(meta.chosen) + by];
    if (next) weir.set({ window: next, segment: null, zoom: null });
  };

  // Plotly draws anew and drops the hover label: move the mouse to where it is.
  let mouse = null;
  document.addEventListener("mousemove", (event) => event.isTrusted && (mouse = { clientX: event.clientX, clientY: event.clientY }), { passive: true });
  weir.hoverAgain = function () {
    if (!mouse) return;
    const under = document.elementFromPoint(mouse.clientX, mouse.clientY);
    if (under && under.closest(".js-plotly-plot")) under.dispatchEvent(new MouseEvent("mousemove", Object.assign({ bubbles: true }, mouse)));
  };

  // A click while the chart is still being read means the chart that comes.
  function whenDrawn(panel, take) {
    const chart = panel.querySelector(".js-plotly-plot");
    if (chart && chart.layout && !panel.querySelector(".wait:not([hidden])")) take(chart);
    else if (panel.isConnected) window.setTimeout(whenDrawn, 100, panel, take);
  }
  weir.png = (panel) =>
    whenDrawn(panel, (chart) =>
      window.Plotly.downloadImage(chart, { format: "png", width: chart.offsetWidth, height: chart.offsetHeight, scale: 2, filename: panel.dataset.file })
    );

  const quote = (value) => (/[",\n]/.test(String(value)) ? '"' + String(value).replace(/"/g, '""') + '"' : String(value));
  function rows(chart) {
    const meta = chart.layout.meta || {};
    if (meta.edges) return weir.lanesTable(chart);
    const traces = chart.data.filter((trace) => trace.visible !== false && trace.name);
    if (traces.length && traces[0].type === "heatmap") {
      const map = traces[0];
      const lines = map.y.flatMap((sender, i) => map.x.map((receiver, j) => [sender, receiver, map.z[i][j]]));
      return [["sender", "receiver", "cp"], ...lines.filter((line) => line[2])];
    }
    if (meta.starts) {
      const windows = traces.find((trace) => trace.name === "windows") || { y: [], hovertext: [] };
      return [["window_start_ns", "what", "cp"], ...meta.starts.map((start, i) => [start, windows.hovertext[i].split("<br>")[1], windows.y[i]])];
    }
    const over = traces.filter((trace) => trace.dx);
    const head = ["from", ...over.map((trace) => trace.name)];
    const lines = [];
    for (let i = 0; i < (meta.count || 0); i++) {
      const ms = Number(BigInt(meta.start) / 1000000n) + (i * Number(meta.width)) / 1e6;
      lines.push([new Date(ms).toISOString(), ...over.map((trace) => (trace.y[i] === null || trace.y[i] === undefined ? "" : trace.y[i]))]);
    }
    return [head, ...lines];
  }
  weir.csv = (panel) =>
    whenDrawn(panel, function (chart) {
      const text = rows(chart).map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = panel.dataset.file + ".csv";
      link.click();
      window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
})();
