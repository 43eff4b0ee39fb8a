// Keeps the pictures of the page "now" as the desktops are. Everything that stops or pauses is a form and works without.
//
// One question is open at a time, for all desktops. It is not asked while the page is hidden, nor when nobody has
// touched anything for a quarter of an hour: a page that was left open somewhere must not keep its session alive.
"use strict";

(() => {
  const REST_MS = 15 * 60 * 1000;
  const channel = new BroadcastChannel("surehand-console");
  const screens = [...document.querySelectorAll("[data-desktop]")].map((figure) => ({
    figure,
    name: figure.dataset.desktop,
    image: figure.querySelector("img"),
    outlines: figure.querySelector(".outlines"),
    caption: figure.querySelector("figcaption"),
    tag: "",
    stateTag: "",
  }));
  let touched = Date.now();
  let asking = false;

  const rests = () => document.visibilityState !== "visible" || Date.now() - touched > REST_MS;

  async function follow() {
    if (asking || !screens.length) return;
    asking = true;
    try {
      while (!rests()) {
        const query = new URLSearchParams();
        for (const one of screens) query.append("d", [one.name, one.tag, one.stateTag].join("\n"));
        const answer = await fetch(`/now/next?${query}`, { credentials: "same-origin", redirect: "error" });
        if (!answer.ok) throw new Error(String(answer.status));
        for (const told of await answer.json()) show(screens.find((one) => one.name === told.name), told);
      }
      for (const one of screens) one.caption.textContent = "Watching rests; move the pointer to go on.";
    } catch {
      for (const one of screens) one.caption.textContent = "This picture is old: the console does not answer.";
      setTimeout(follow, 2000);
    } finally {
      asking = false;
    }
  }

  function show(screen, told) {
    if (told.tag && told.tag !== screen.tag) {
      screen.image.src = `/now/picture/${encodeURIComponent(screen.name)}?tag=${told.tag}`;
      if (told.width) screen.image.parentElement.style.aspectRatio = `${told.width} / ${told.height}`;
    }
    const changed = screen.stateTag && told.state_tag !== screen.stateTag;
    screen.tag = told.tag;
    screen.stateTag = told.state_tag;
    screen.caption.textContent = told.error || screen.caption.dataset.said;
    outline(screen, told);
    // What is told in words is loaded as a page is.
    if (changed) channel.postMessage({ event: "now.changed" });
  }

  function outline(screen, told) {
    const whole = [told.width * told.scale_milli, told.height * told.scale_milli];
    screen.outlines.replaceChildren(
      ...(whole[0] ? told.outlines : []).map(([x, y, width, height]) => {
        const box = document.createElement("div");
        box.style.left = `${(x * 100000) / whole[0]}%`;
        box.style.top = `${(y * 100000) / whole[1]}%`;
        box.style.width = `${(width * 100000) / whole[0]}%`;
        box.style.height = `${(height * 100000) / whole[1]}%`;
        return box;
      }),
    );
  }

  const names = () => document.getElementById("desktops")?.dataset.names;
  const began = names();
  document.addEventListener("surehand:fresh", () => {
    // Another desktop has no place on this page yet.
    if (names() !== began) location.reload();
  });

  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || !event.isTrusted) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key.toLowerCase() === "s") {
      event.preventDefault();
      document.getElementById("stop")?.click();
    }
  });
  for (const kind of ["pointermove", "pointerdown", "keydown", "focus", "visibilitychange"]) {
    addEventListener(kind, () => {
      touched = Date.now();
      follow();
    }, { passive: true, capture: true });
  }
  follow();
})();
