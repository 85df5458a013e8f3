// Sliders of a cluster's page: each writes its value to the address, some times a second while it moves.
// Dash has no such field that tells while it moves, so they are made here, inside every .slide.
(function () {
  "use strict";
  const weir = window.weir;
  const EVERY_MS = 120;
  let waiting = {};
  let timer = null;

  const valueOf = (slide) => weir.query().get(slide.dataset.slider) || "100";

  function show(input) {
    const text = input.value + " %";
    input.setAttribute("aria-valuetext", text);
    input.nextElementSibling.textContent = text;
  }

  function send() {
    timer = null;
    weir.set(waiting, true);
    waiting = {};
  }

  function make(slide) {
    const input = document.createElement("input");
    const output = document.createElement("span");
    Object.assign(input, { type: "range", min: slide.dataset.min, max: slide.dataset.max, step: slide.dataset.step });
    input.value = valueOf(slide);
    input.setAttribute("aria-label", slide.dataset.label);
    output.className = "slide-value";
    slide.append(input, output);
    show(input);
    input.addEventListener("input", function () {
      show(input);
      waiting[slide.dataset.slider] = input.value === "100" ? null : input.value;
      timer = timer || window.setTimeout(send, EVERY_MS);
    });
  }

  // What stands in the address may have changed by a link, or by Back.
  function follow() {
    document.querySelectorAll(".slide > input").forEach(function (input) {
      if (timer || input.value === valueOf(input.parentElement)) return;
      input.value = valueOf(input.parentElement);
      show(input);
    });
  }

  new MutationObserver(() => document.querySelectorAll(".slide:empty").forEach(make)).observe(document.documentElement, {
    childList: true,
    subtree: true,
  });
  window.addEventListener("_dashprivate_pushstate", follow);
  window.addEventListener("popstate", follow);
})();
