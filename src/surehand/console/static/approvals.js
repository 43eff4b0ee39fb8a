// Keys for the pages of approvals. Everything here can be done without it.
//
// A key that was pressed before a question stood there, for as long as reading takes, does nothing; and no single key
// answers: it goes to what answers, and Enter there does.
"use strict";

(() => {
  const READ_MS = 500;
  let stands = Infinity;
  let timer = 0;

  function arm() {
    stands = Infinity;
    clearTimeout(timer);
    delete document.documentElement.dataset.stands;
    if (document.visibilityState !== "visible") return;
    // Two frames later it is painted.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      stands = performance.now() + READ_MS;
      timer = setTimeout(() => (document.documentElement.dataset.stands = ""), READ_MS);
    }));
  }
  arm();
  addEventListener("pageshow", arm);
  addEventListener("focus", arm);
  document.addEventListener("visibilitychange", arm);

  const form = document.getElementById("answer");
  let wanted = "approve";

  function point(answer) {
    const button = document.getElementById(answer);
    if (!button) return;
    wanted = answer;
    if (answer === "while") document.getElementById("while-details").open = true;
    const field = document.getElementById("passphrase");
    const next = field && !field.closest("[hidden]") && !field.value ? field : button;
    next.focus();
    form.dataset.wanted = answer;
    say();
  }

  function say() {
    // Who types a passphrase sees what Enter will do with it.
    const words = { approve: "Enter approves.", deny: "Enter denies.", while: "Enter approves for a while." };
    const place = document.getElementById("pointed");
    if (place) place.textContent = words[wanted];
  }

  function move(step) {
    const links = [...document.querySelectorAll(".questions .whole")];
    if (!links.length) return;
    const here = links.indexOf(document.activeElement);
    links[Math.min(links.length - 1, Math.max(0, here < 0 ? 0 : here + step))].focus();
  }

  const keys = { a: () => point("approve"), d: () => point("deny"), w: () => point("while"), j: () => move(1), k: () => move(-1) };

  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || !event.isTrusted) return;
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "Enter" && event.target.id === "passphrase") {
      // The first button is switched off, so Enter would do nothing: here it goes to the answer that was pointed at.
      event.preventDefault();
      if (event.timeStamp >= stands) document.getElementById(wanted)?.click();
      return;
    }
    if (event.key === "Escape" && document.getElementById("back")) {
      if (typing) event.target.blur();
      else location.assign(document.getElementById("back").href);
      return;
    }
    const does = typing ? undefined : keys[event.key.toLowerCase()];
    if (!does) return;
    event.preventDefault();
    if (event.timeStamp >= stands) does();
  });

  if (form) {
    // A form that is on its way is not sent again.
    let sent = false;
    form.addEventListener("submit", (event) => {
      if (sent || performance.now() < stands) {
        event.preventDefault();
        return;
      }
      sent = true;
      form.setAttribute("aria-busy", "true");
    });
    addEventListener("pageshow", () => {
      sent = false;
      form.removeAttribute("aria-busy");
    });
    const select = document.getElementById("credential");
    if (select) {
      const fit = () => {
        const chosen = select.selectedOptions[0];
        for (const part of form.querySelectorAll(".credential")) {
          const bare = chosen?.dataset.kind === "key" && JSON.parse(chosen.dataset.facts).passphrase === false;
          part.hidden = part.dataset.kind !== chosen?.dataset.kind || bare;
        }
      };
      for (const option of select.querySelectorAll("option[data-script]")) option.disabled = false;
      select.addEventListener("change", fit);
      fit();
    }
    say();
    // After an answer that was refused one goes on where one was; nothing is answered by it.
    if (document.getElementById("problem")) point(form.dataset.wanted || wanted);
  }
})();
