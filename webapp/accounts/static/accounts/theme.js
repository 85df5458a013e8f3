// The theme of the pages: from the address that asked for sign-in, else as chosen before, else the system's.
(function () {
  "use strict";
  const next = new URLSearchParams(window.location.search).get("next") || "";
  const asked = /[?&]theme=(dark|light)/.exec(next);
  const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = (asked && asked[1]) || window.localStorage.getItem("weir-theme") || system;
})();
