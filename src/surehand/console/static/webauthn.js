// Asks an authenticator, for an answer or to be enrolled. What it signs is formed by the server and checked by the
// daemon; a page that lied here would get a signature that counts for nothing.
"use strict";

(() => {
  const WAIT_MS = 120_000;
  const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16));
  const hex = (buffer) => [...new Uint8Array(buffer)].map((one) => one.toString(16).padStart(2, "0")).join("");

  async function ask(path, fields) {
    const answer = await fetch(path, {
      method: "POST",
      body: new URLSearchParams(fields),
      credentials: "same-origin",
      redirect: "error",
    });
    const told = await answer.json();
    if (!answer.ok) throw new Error([told.message, told.fix].filter(Boolean).join(". "));
    return told;
  }

  function say(form, text) {
    const place = form.querySelector("[data-webauthn-said]");
    place.textContent = text;
    place.hidden = !text;
  }

  // What a browser says of it tells people nothing.
  const why = (error) =>
    error.name === "NotAllowedError" || error.name === "AbortError"
      ? "The authenticator did not answer, or could not verify you. Nothing was sent."
      : error.name === "InvalidStateError"
        ? "This authenticator is enrolled already."
        : error.message;

  async function working(form, work) {
    if (form.getAttribute("aria-busy")) return;
    form.setAttribute("aria-busy", "true");
    say(form, "");
    try {
      await work();
      form.submit(); // past every listener: what is sent is what was signed
    } catch (error) {
      say(form, why(error));
      form.removeAttribute("aria-busy");
    }
  }

  addEventListener("pageshow", (event) => {
    if (event.persisted) for (const form of document.forms) form.removeAttribute("aria-busy");
  });

  const enrol = document.getElementById("enrol");
  enrol?.addEventListener("submit", (event) => {
    event.preventDefault();
    working(enrol, async () => {
      const asked = await ask("/credentials/begin", new FormData(enrol));
      const made = await navigator.credentials.create({
        publicKey: {
          rp: { id: asked.rp_id, name: "Surehand" },
          user: { id: bytes(asked.user_handle), name: asked.approver, displayName: asked.approver },
          challenge: bytes(asked.challenge),
          pubKeyCredParams: asked.algorithms.map((alg) => ({ type: "public-key", alg })),
          excludeCredentials: asked.exclude.map((id) => ({ type: "public-key", id: bytes(id) })),
          authenticatorSelection: { userVerification: "required", residentKey: "discouraged" },
          attestation: "none",
          timeout: WAIT_MS,
        },
      });
      enrol.elements.authenticator_data.value = hex(made.response.getAuthenticatorData());
      enrol.elements.client_data.value = hex(made.response.clientDataJSON);
    });
  });

  const answer = document.getElementById("answer");
  const chosen = () => document.getElementById("credential")?.selectedOptions[0]?.dataset.kind === "webauthn";
  // Before the page's own listener, which lets a form go but once.
  document.addEventListener("submit", (event) => {
    if (event.target !== answer || !chosen()) return;
    event.preventDefault();
    event.stopPropagation();
    // A press that came before the question could be read answers nothing.
    if (document.documentElement.dataset.stands === undefined || !event.submitter) return;
    const word = event.submitter.value;
    working(answer, async () => {
      const fields = new FormData(answer);
      fields.set("answer", word);
      fields.set("approval_id", decodeURIComponent(new URL(answer.action).pathname.split("/").pop()));
      const asked = await ask("/credentials/challenge", fields);
      const said = await navigator.credentials.get({
        publicKey: {
          challenge: bytes(asked.challenge),
          rpId: asked.rp_id,
          allowCredentials: [{ type: "public-key", id: bytes(asked.credential_id) }],
          userVerification: "required",
          timeout: WAIT_MS,
        },
      });
      const put = (name, value) => {
        const field = answer.querySelector(`input[type=hidden][name="${name}"]`) ?? answer.appendChild(document.createElement("input"));
        field.type = "hidden";
        field.name = name;
        field.value = value;
      };
      put("answer", word);
      put("webauthn_token", asked.token);
      put("webauthn_authenticator", hex(said.response.authenticatorData));
      put("webauthn_client", hex(said.response.clientDataJSON));
      put("webauthn_signature", hex(said.response.signature));
    });
  }, true);
})();
