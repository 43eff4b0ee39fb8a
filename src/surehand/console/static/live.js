// Keeps a page true while it stands: parts with `data-live` are loaded again when something happens that they name.
//
// One stream of events for all tabs of this browser: the tab that holds the lock listens and passes on. Nothing here is
// needed to answer a question; without it a page shows what was true when it was loaded.
"use strict";

(() => {
  const channel = new BroadcastChannel("surehand-console");
  let loading = null;
  let again = false;

  const wants = (part, name) => part.dataset.live.split(" ").some((prefix) => prefix && name.startsWith(prefix));

  async function load() {
    // One load at a time; what happens meanwhile is one more.
    if (loading) {
      again = true;
      return loading;
    }
    loading = (async () => {
      do {
        again = false;
        const headers = { "X-Surehand-By-Itself": "1" }; // nobody looked: it must not keep the session alive
        const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error", headers });
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (answer.status === 403) {
          // The session is over: whatever stands here is nobody's to read any more.
          location.reload();
          return;
        }
        for (const part of document.querySelectorAll("[data-live][id]")) {
          const newer = fresh.getElementById(part.id);
          if (newer && !same(newer, part)) replace(part, newer);
        }
        if (fresh.title) document.title = fresh.title;
        document.dispatchEvent(new Event("surehand:fresh"));
        tick();
      } while (again);
    })().catch(() => {}).finally(() => {
      loading = null;
    });
    return loading;
  }

  function same(newer, part) {
    // Times that count down by themselves are no change.
    const plain = (node) => {
      const copy = node.cloneNode(true);
      for (const time of copy.querySelectorAll("time[data-until]")) time.textContent = "";
      return copy.outerHTML;
    };
    return plain(newer) === plain(part);
  }

  function replace(part, newer) {
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.replaceWith(document.adoptNode(newer));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  function heard(told) {
    document.dispatchEvent(new CustomEvent("surehand:event", { detail: told }));
    const parts = [...document.querySelectorAll("[data-live][id]")];
    if (parts.some((part) => wants(part, told.event))) load();
  }

  function listen() {
    const stream = new EventSource("/events");
    stream.onmessage = (message) => {
      const told = JSON.parse(message.data);
      channel.postMessage(told);
      heard(told);
    };
    stream.onerror = () => {
      document.documentElement.classList.add("silent");
      if (stream.readyState !== EventSource.CLOSED) return;
      // Refused for good: the session is over, which loading finds out, or the console is gone.
      load();
      setTimeout(listen, 2000);
    };
    stream.onopen = () => document.documentElement.classList.remove("silent");
  }

  channel.onmessage = (message) => heard(message.data);
  if (navigator.locks) {
    navigator.locks.request("surehand-console-events", () => {
      listen();
      return new Promise(() => {});
    });
  } else {
    listen();
  }
  // A page that comes back from the browser's memory is of another time.
  addEventListener("pageshow", (event) => event.persisted && load());

  // Where the pages do not fit beside each other, the one that stands here is in sight.
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

  function tick() {
    for (const time of document.querySelectorAll("time[data-until]")) {
      const seconds = Math.max(0, Math.round((Number(time.dataset.until) - Date.now()) / 1000));
      time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    }
  }
  setInterval(tick, 1000);
})();
