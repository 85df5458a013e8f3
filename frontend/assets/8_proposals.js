// Deciding about proposals: the dialog that a button opens, the one answer it sends, and the keys for both.
(function () {
  "use strict";
  const weir = window.weir;
  const at = (id) => document.getElementById(id);
  const set = (id, props) => window.dash_clientside.set_props(id, props);
  let sent = Date.now(); // a store that gets what it has tells nobody: each question differs from the last
  let waiting = false; // from a click to its answer: a double click is one decision

  function open(button) {
    waiting = false;
    set("decide-title", { children: "…" });
    set("decide-words", { children: "Reading …" });
    set("decide-yes", { children: "…", disabled: true });
    set("decide-error", { children: "" });
    at("decide-reason").value = "";
    set("decide-ask", { data: Object.assign(JSON.parse(button.dataset.decide), { sent: ++sent }) });
    weir.helpOpen = true; // nothing is refreshed under a dialog
    weir.live();
    at("decide").showModal();
    at("decide-reason").focus();
  }

  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-decide]");
    if (button && !button.disabled) return open(button);
    if (event.target.closest("#decide-no")) return at("decide").close();
    if (event.target.closest("#decided-gone")) set("decided-line", { hidden: true });
  });

  // "close" does not bubble; Esc closes the dialog without a click.
  document.addEventListener(
    "close",
    function (event) {
      if (event.target.id !== "decide") return;
      waiting = false;
      weir.helpOpen = false;
      weir.live();
    },
    true
  );

  Object.assign(window.dash_clientside.weir, {
    decide: function (_clicks, seen) {
      if (waiting || !seen || !at("decide").open) return window.dash_clientside.no_update;
      waiting = true;
      set("decide-yes", { disabled: true });
      return Object.assign({}, seen, { reason: at("decide-reason").value, sent: ++sent });
    },
    // The answer: the dialog closes on a decision, and stays with the reason why there was none.
    decided: function (done, error) {
      waiting = false;
      const by = window.dash_clientside.callback_context.triggered.map((item) => item.prop_id.split(".")[0]);
      if (by.includes("decided") && done && done.good) {
        at("decide").close();
        set("decided-line", { hidden: false });
        return done.said;
      }
      if (error && !(done && by.includes("decided"))) set("decide-yes", { disabled: false });
      return window.dash_clientside.no_update;
    },
  });

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const button = { a: at("proposal-approve"), r: at("proposal-reject") }[event.key];
    if (!button || weir.helpOpen) return;
    event.preventDefault(); // else the letter is the reason's first
    open(button);
  });
})();
