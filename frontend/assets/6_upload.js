// Sending a file: the field to choose it with, the transfer with its progress, and what the server answers.
(function () {
  "use strict";
  const weir = window.weir;
  const at = (id) => document.getElementById(id);
  const HEAD_BYTES = 16384;
  let chosen = null;
  let sending = null;

  const size = (n) => (n >= 1e9 ? (n / 1e9).toFixed(2) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(1) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : n + " bytes");
  function say(text) {
    const error = at("upload-error");
    if (error) error.textContent = text;
  }

  // Dash has no file field that leaves the file on disk, so the field is made here when its page is drawn.
  function field() {
    const drop = at("upload-drop");
    if (!drop || at("upload-file")) return;
    chosen = null;
    const label = document.createElement("label");
    label.htmlFor = "upload-file";
    const words = document.createElement("span");
    words.id = "upload-chosen";
    words.textContent = "Choose a trace file, or drop it here";
    const input = document.createElement("input");
    input.type = "file";
    input.id = "upload-file";
    label.append(words, input);
    drop.append(label);
  }
  async function choose(file) {
    if (!file || sending) return;
    chosen = null;
    at("upload-send").disabled = true;
    at("upload-chosen").textContent = file.name + ", " + size(file.size);
    const most = Number(at("upload-chooser").dataset.maxBytes);
    say(file.size > most ? "The file is larger than " + size(most) + ", the limit of uploads here. Gzip it, or cut the trace." : file.size === 0 ? "The file is empty." : "");
    if (file.size > most || file.size === 0) return;
    try {
      const bytes = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
      let text = "";
      bytes.forEach((byte) => (text += String.fromCharCode(byte)));
      chosen = file;
      at("upload-format").value = "";
      window.dash_clientside.set_props("upload-head", { data: { name: file.name, bytes: window.btoa(text), at: Date.now() } });
    } catch (error) {
      say("The browser cannot read this file: " + error.message);
    }
    ready();
  }

  function ready() {
    const button = at("upload-send");
    if (button) button.disabled = !chosen || Boolean(sending) || !at("upload-format").value;
  }

  // The server's guess comes as text in the page; the first sight of it sets the format.
  new MutationObserver(function () {
    field();
    const guess = at("upload-guessed");
    if (guess && !guess.dataset.used) {
      guess.dataset.used = "1";
      at("upload-format").value = guess.dataset.guess;
    }
    ready();
  }).observe(document.documentElement, { childList: true, subtree: true, characterData: true });

  const cookie = (name) => (document.cookie.split("; ").find((part) => part.startsWith(name + "=")) || "").slice(name.length + 1);

  weir.upload = function () {
    if (!chosen || sending) return;
    const form = new FormData();
    form.append("format", at("upload-format").value);
    form.append("job", at("upload-job").value || "");
    form.append("file", chosen, chosen.name); // last, so that the rest is known when it comes
    const request = (sending = new XMLHttpRequest());
    const began = Date.now();
    request.upload.onprogress = (event) => event.lengthComputable && show(event.loaded, event.total, began);
    request.onload = () => done(request);
    request.onerror = () => ended("The connection broke off, and nothing was kept. Try again.");
    request.onabort = () => ended("Cancelled; nothing was kept.");
    request.open("POST", "/api/v1/uploads");
    request.setRequestHeader("X-CSRFToken", cookie("csrftoken"));
    say("");
    at("upload-transfer").hidden = false;
    show(0, chosen.size, began);
    ready();
    request.send(form);
  };
  weir.uploadCancel = () => sending && sending.abort();

  function show(loaded, total, began) {
    const bar = at("upload-bar");
    if (!bar) return;
    const share = total ? (100 * loaded) / total : 0;
    const seconds = (Date.now() - began) / 1000;
    bar.value = share;
    const speed = seconds > 1 ? ", " + size(loaded / seconds) + "/s" : "";
    at("upload-sent").textContent = loaded >= total ? "All sent; the server is taking it in …" : Math.floor(share) + " %, " + size(loaded) + " of " + size(total) + speed;
  }

  function ended(text) {
    sending = null;
    if (!at("upload-transfer")) return;
    at("upload-transfer").hidden = true;
    say(text);
    ready();
  }

  function done(request) {
    let answer = {};
    try {
      answer = JSON.parse(request.responseText);
    } catch (error) {
      answer = {}; // not ours: the status must do
    }
    if (request.status === 201) {
      const here = Boolean(at("upload-chooser"));
      ended("");
      chosen = null;
      if (here) weir.go("/upload/" + answer.id, {});
    } else if (request.status === 401 || answer.code === "not_authenticated") {
      ended("Your session has ended. Sign in again, then upload the file once more.");
    } else {
      const detail = answer.detail || "The server answered with error " + request.status + ".";
      ended(detail.charAt(0).toUpperCase() + detail.slice(1));
    }
  }

  document.addEventListener("change", function (event) {
    if (event.target.id === "upload-file") choose(event.target.files[0]);
    if (event.target.id === "upload-format") ready();
  });
  ["dragover", "dragleave", "drop"].forEach((kind) =>
    document.addEventListener(kind, function (event) {
      const drop = event.target.closest && event.target.closest("#upload-drop");
      const any = at("upload-drop");
      if (!any) return;
      event.preventDefault(); // a file dropped beside the field must not replace the page
      any.classList.toggle("over", kind === "dragover" && Boolean(drop));
      if (kind === "drop" && drop && event.dataTransfer.files.length) {
        at("upload-file").files = event.dataTransfer.files;
        choose(event.dataTransfer.files[0]);
      }
    })
  );
  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-act]");
    if (!button) return;
    if (button.dataset.act === "upload") weir.upload();
    if (button.dataset.act === "upload-cancel") weir.uploadCancel();
  });
  window.addEventListener("beforeunload", function (event) {
    if (sending) event.preventDefault();
  });

  // A call while an answer is outstanding would make Dash drop that answer.
  window.dash_clientside.weir.beat = (count) => ((weir.isBusy && weir.isBusy()) || document.hidden ? window.dash_clientside.no_update : count);
})();
