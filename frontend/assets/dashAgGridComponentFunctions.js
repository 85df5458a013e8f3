// Cells of the overview's table.
(function () {
  "use strict";
  const cells = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});
  const h = (...parts) => window.React.createElement(...parts);

  // The server has sorted all pages; sorting this one again would only mix it up.
  (window.dashAgGridFunctions = window.dashAgGridFunctions || {}).weirKeepOrder = () => 0;

  cells.JobLink = (props) => h("a", { href: "/jobs/" + props.data.id, title: props.value, tabIndex: -1 }, props.value);

  cells.Freshness = (props) =>
    h("span", { className: "freshness-cell", "data-state": props.data.state, title: props.data.problem || props.value },
      h("span", { "aria-hidden": true }, { live: "●", finished: "✓", quiet: "▲", error: "✕" }[props.data.state] || ""), " ", props.value);

  cells.Limiter = (props) =>
    props.data.kind
      ? h("span", { className: "limiter", title: props.value },
          h("i", { className: "swatch " + props.data.kind, "aria-hidden": true }), props.value)
      : h("span", { className: "muted" }, props.value);

  cells.Sparkline = function (props) {
    const values = props.value || [];
    if (!values.some((value) => value !== null)) return h("span", { className: "muted" }, "–");
    const x = (i) => (i * 116) / Math.max(1, values.length - 1) + 2;
    const y = (value) => 24 - value * 20;
    const parts = [];
    let open = false;
    values.forEach((value, i) => {
      if (value !== null) parts.push((open ? "L" : "M") + x(i).toFixed(1) + " " + y(value).toFixed(1) + (open ? "" : "h0.1"));
      open = value !== null;
    });
    const known = values.filter((value) => value !== null);
    const words = "CP per minute of the last hour, from " + Math.round(known[0] * 100) + " % to " + Math.round(known[known.length - 1] * 100) + " %";
    return h("svg", { width: 120, height: 28, role: "img", "aria-label": words }, h("title", null, words),
      h("line", { x1: 2, x2: 118, y1: 24, y2: 24, className: "spark-base" }),
      h("path", { d: parts.join(""), className: "spark " + props.data.kind }));
  };
})();
