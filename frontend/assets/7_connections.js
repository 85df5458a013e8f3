// Buttons that do something (data-do): the question before harm, and what is sent to the page's callback.
(function () {
  "use strict";
  const weir = window.weir;
  const at = (id) => document.getElementById(id);
  let waiting = null;
  let sent = 0;

  function send(button) {
    const part = button.dataset.part || weir.query().get("tab") || "sources";
    const data = Object.assign(JSON.parse(button.dataset.do), { sent: ++sent });
    window.dash_clientside.set_props(part + "-do", { data: data });
  }

  function ask(button) {
    waiting = button;
    const what = button.textContent.replace("…", "");
    at("ask-title").textContent = button.getAttribute("aria-label") + "?";
    at("ask-words").textContent = button.dataset.ask;
    at("ask-yes").textContent = what;
    weir.helpOpen = true; // nothing is refreshed under a dialog
    weir.live();
    at("ask").showModal();
  }

  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-do]");
    if (button) return button.dataset.ask ? ask(button) : send(button);
    const act = event.target.closest("[data-act]");
    if (!act) return;
    if (act.dataset.act === "ask-yes" && waiting) send(waiting);
    if (act.dataset.act === "ask-yes" || act.dataset.act === "ask-no") at("ask").close();
    if (act.dataset.act === "copy-secret") copy();
  });

  // "close" does not bubble; Esc closes the dialog without a click.
  document.addEventListener(
    "close",
    function (event) {
      if (event.target.id !== "ask") return;
      waiting = null;
      weir.helpOpen = false;
      weir.live();
    },
    true
  );

  // A list that is drawn anew has new elements: the focus goes to the one that took the old one's place, and what
  // was unfolded stays so.
  let focused = null;
  const unfolded = new Set();
  document.addEventListener("focusin", (event) => (focused = event.target.dataset.do || null));
  document.addEventListener("pointerdown", () => (focused = null));
  document.addEventListener(
    "toggle",
    function (event) {
      const id = event.target.id || "";
      if (id.startsWith("first-bytes-") && event.target.isConnected) unfolded[event.target.open ? "add" : "delete"](id);
    },
    true
  );
  new MutationObserver(function () {
    unfolded.forEach((id) => at(id) && !at(id).open && (at(id).open = true));
    if (!focused || document.activeElement !== document.body) return;
    const again = [...document.querySelectorAll("[data-do]")].find((button) => button.dataset.do === focused);
    if (again) again.focus({ preventScroll: true });
  }).observe(document.documentElement, { childList: true, subtree: true });

  async function copy() {
    const secret = at("secret");
    let said = "Copied.";
    try {
      await navigator.clipboard.writeText(secret.textContent);
    } catch (e) {
      window.getSelection().selectAllChildren(secret); // without HTTPS there is no clipboard
      said = "It is selected: copy it with your keyboard.";
    }
    at("secret-copied").textContent = said;
  }
})();
