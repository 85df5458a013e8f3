// Live refresh: the ticks that make callbacks read again, the stamp that says how fresh the page is, and what
// happens when the server does not answer or the session has ended.
(function () {
  "use strict";
  const weir = window.weir;
  let failed = null;
  let underWay = 0; // callbacks without an answer yet

  weir.isBusy = () => underWay > 0;
  weir.helpOpen = false;
  weir.live = function () {
    const off = weir.isPaused() || weir.isAbsolute() || document.hidden || weir.helpOpen || underWay > 0;
    const props = { disabled: off, interval: weir.refreshMs() };
    const key = JSON.stringify(props);
    if (key !== weir.ticking && window.dash_clientside.set_props) {
      weir.ticking = key;
      window.dash_clientside.set_props("tick", props);
    }
    weir.stamp();
  };

  const pad = (n) => String(n).padStart(2, "0");
  function clock(ms) {
    const zone = weir.query().get("zone") || "UTC";
    try {
      return new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: zone }).format(ms);
    } catch (e) {
      const at = new Date(ms);
      return pad(at.getUTCHours()) + ":" + pad(at.getUTCMinutes()) + ":" + pad(at.getUTCSeconds());
    }
  }
  const age = (s) => (s < 120 ? Math.round(s) + " s" : s < 7200 ? Math.round(s / 60) + " min" : Math.round(s / 3600) + " h");

  weir.stamp = function () {
    const stamp = document.getElementById("stamp");
    const pause = document.getElementById("pause");
    if (!stamp || !pause) return;
    const nothing = Boolean(document.getElementById("not-found"));
    const fixed = weir.isAbsolute();
    pause.setAttribute("aria-pressed", String(weir.isPaused()));
    pause.disabled = fixed || nothing;
    pause.dataset.on = String(!weir.isPaused() && !fixed && !nothing);
    if (nothing) stamp.textContent = "nothing to refresh";
    if (nothing) delete stamp.dataset.state;
    if (nothing || !weir.read) return;
    const old = (Date.now() - weir.read.seen) / 1000;
    const stale = !fixed && !weir.isPaused() && !document.hidden && old > (3 * weir.refreshMs()) / 1000;
    const mode = fixed ? "fixed range" : weir.isPaused() ? "paused" : "live";
    let text = mode + " · as of " + clock(weir.read.at_ms);
    if (stale) text = "not refreshed for " + age(old);
    else if (weir.read.quiet) text = weir.read.quiet;
    if (stamp.textContent !== text) stamp.textContent = text;
    stamp.dataset.state = stale || (weir.read.quiet && !fixed) ? "stale" : mode;
  };
  window.setInterval(() => weir.stamp(), 1000);
  document.addEventListener("visibilitychange", () => weir.live());

  function banner(text) {
    const element = document.getElementById("banner");
    if (!element) return;
    element.hidden = !text;
    if (element.textContent !== text) element.textContent = text;
  }

  let leaving = false;

  // Every callback goes through fetch: the one place that sees the server's answer.
  const fetch = window.fetch.bind(window);
  window.fetch = async function (resource, options) {
    const url = String((resource && resource.url) || resource);
    if (!url.includes("_dash-")) return fetch(resource, options);
    // A tick while an answer is outstanding would make Dash throw that answer away: a slow server would then
    // never refresh the page. So the ticks stop until it is there.
    const counts = url.includes("_dash-update-component");
    if (counts && underWay++ === 0) weir.live();
    try {
      const answer = await fetch(resource, options);
      if (answer.status === 401 || answer.status === 403) {
        const last = Number(window.sessionStorage.getItem("weir-reload") || 0);
        if (!leaving && Date.now() - last > 10000) {
          window.sessionStorage.setItem("weir-reload", String(Date.now()));
          leaving = true;
          window.location.reload(); // the page itself leads to sign-in if the session has ended
        }
        if (leaving) return new Promise(() => {}); // nothing is left for Dash to do
        banner("You may not see this. Reload the page, or sign in as somebody who may.");
        if (counts) return new Response(null, { status: 204 }); // Dash would report the refusal as a fault of the page
      } else if (answer.status >= 400) {
        failed = failed || Date.now();
        banner("The page could not be refreshed since " + clock(failed) + " (error " + answer.status + "). It tries again by itself; the server's log has the reason.");
      } else if (failed) {
        failed = null;
        banner("");
      }
      window.setTimeout(weir.hoverAgain, 250);
      return answer;
    } catch (error) {
      failed = failed || Date.now();
      banner("Weir has not answered since " + clock(failed) + ". The page tries again by itself.");
      throw error;
    } finally {
      if (counts && --underWay === 0) window.setTimeout(weir.live, 0);
    }
  };
})();
