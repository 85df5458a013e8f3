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
    // Every so many ticks, so that the frame follows the page's pauses.
    slow: function () {
      const now = Date.now();
      if (now - (weir.slowAt || 0) < 10000) return window.dash_clientside.no_update;
      weir.slowAt = now;
      return now;
    },
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

  // The inbox: a click or j and k choose a proposal, Enter opens it.
  const items = () => [...document.querySelectorAll("#inbox-list [data-item]")];
  const openItem = (item) => weir.go("/proposals/" + item.dataset.item, {});
  const choose = (item) => {
    item.focus();
    weir.set({ item: item.dataset.item }, true);
  };
  function step(by) {
    const all = items();
    const here = all.findIndex((item) => item === document.activeElement);
    const chosen = here < 0 ? all.findIndex((item) => item.hasAttribute("aria-current")) : here + by;
    if (all.length) choose(all[Math.min(all.length - 1, Math.max(0, chosen))]);
  }
  document.addEventListener("click", function (event) {
    const item = event.target.closest("#inbox-list [data-item]");
    if (item) weir.screen === "narrow" ? openItem(item) : choose(item);
  });

  // The card may still be the last one's when the next one is chosen already.
  function isChosen(button) {
    const card = button.closest("[data-proposal]");
    const item = document.activeElement.closest("[data-item]");
    return !card || !item || card.dataset.proposal === item.dataset.item;
  }

  let before = "";
  const ways = { i: "/inbox", c: "/calibration" };
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const item = event.key === "Enter" && event.target.closest("[data-item]");
    const last = before;
    before = event.key;
    if (item) {
      event.preventDefault();
      return openItem(item);
    }
    if (last === "g" && ways[event.key]) return weir.go(ways[event.key], {});
    if ((event.key === "j" || event.key === "k") && items().length) return step(event.key === "j" ? 1 : -1);
    const button = { a: at("proposal-approve"), r: at("proposal-reject") }[event.key];
    if (!button || weir.helpOpen || !isChosen(button)) return;
    event.preventDefault(); // else the letter is the reason's first
    open(button);
  });
})();
