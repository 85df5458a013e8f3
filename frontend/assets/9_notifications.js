// A mail's frame is as high as the mail, so that there is one scrollbar.
(function () {
  "use strict";
  function fit(frame) {
    const inner = frame.contentDocument;
    if (inner && inner.body) frame.style.height = inner.documentElement.scrollHeight + 2 + "px";
  }
  document.addEventListener("load", (event) => event.target.classList && event.target.classList.contains("mail-frame") && fit(event.target), true);
  window.addEventListener("resize", () => document.querySelectorAll(".mail-frame").forEach(fit));
})();
