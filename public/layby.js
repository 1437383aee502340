// Makes pages live where JavaScript runs. Every page is complete without it.

try {
  await import("./vendor/turbo.js");
  // Its progress bar is an inline style, which our Content-Security-Policy refuses.
  window.Turbo.config.drive.progressBarDelay = 1e9;
} catch {
  // Pages work as they are.
}

const typed = (form) =>
  [...form.elements].filter((field) => field.name && field.type !== "hidden" && (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked : "defaultValue" in field && field.value !== field.defaultValue));

// A form that was handed in gives way to the answer, which carries what was typed.
let handedIn = null;
document.addEventListener("turbo:submit-start", (event) => (handedIn = event.target));
document.addEventListener("turbo:render", () => (handedIn = null));

// A refresh would break off a form that is on its way, and the click would be lost; and it would take a refusal away, with
// what was typed, before somebody has read it. Only the answer to a form may follow then.
let onItsWay = false;
let answered = false;
document.addEventListener("turbo:submit-start", () => (onItsWay = true));
document.addEventListener("turbo:submit-end", () => (onItsWay = false));
document.addEventListener("turbo:before-fetch-response", (event) => {
  if (event.target.tagName !== "FORM") return;
  onItsWay = false;
  answered = true;
});
document.addEventListener("turbo:render", () => (answered = false));
document.addEventListener("turbo:before-visit", (event) => {
  const refused = !answered && event.detail.url === location.href && document.querySelector("main [role=alert]");
  if (onItsWay || refused) event.preventDefault();
});

const dirty = () =>
  [...document.querySelectorAll("form[data-typed]")].filter((form) => form !== handedIn && form.id && typed(form).length > 0);

// A refresh never takes away what is being typed: such a form stays as it is. Where the question has ended meanwhile,
// the words stay readable.
document.addEventListener("turbo:before-morph-element", (event) => {
  const form = event.target.closest?.("form[data-typed]");
  if (form && event.detail.newElement && dirty().includes(form)) event.preventDefault();
});
// What somebody opened stays open.
document.addEventListener("turbo:before-morph-attribute", (event) => {
  if (event.target.tagName === "DETAILS" && event.detail.attributeName === "open") event.preventDefault();
});
document.addEventListener("turbo:before-render", (event) => {
  if (event.detail.renderMethod !== "morph") return;
  const next = event.detail.newBody;
  for (const form of document.querySelectorAll("form[data-typed]")) {
    if (form === handedIn || !form.id || next.querySelector(`#${CSS.escape(form.id)}`)) continue;
    // Never a secret; and of a choice, its words.
    const told = typed(form).filter((field) => !/^(password|file|hidden)$/.test(field.type));
    const words = told.map((field) => (/^(radio|checkbox)$/.test(field.type) ? field.closest("label")?.textContent.trim() : field.value)).join("\n");
    const other = next.querySelector(`form[data-typed][action="${CSS.escape(form.getAttribute("action"))}"]`);
    const box = document.createElement("div");
    const say = (tag, text) => (box.appendChild(document.createElement(tag)).textContent = text);
    if (other) {
      // What is shown is what is decided on: nobody decides on what came under their finger a moment ago.
      other.inert = true;
      setTimeout(() => document.querySelectorAll("form[inert]").forEach((form) => (form.inert = false)), 1000);
      box.setAttribute("role", "alert");
      box.tabIndex = -1;
      say("p", "What is asked has changed while this page stood open. Read it again before you answer.");
    }
    if (words) {
      say("p", "What you had typed:");
      say("blockquote", words);
    }
    if (!box.hasChildNodes()) continue;
    box.className = other ? "alert" : "typed";
    box.dataset.test = other ? "changed" : "typed";
    next.querySelector("main")?.prepend(box);
  }
});

// After a refusal, the sentence is what a reader needs first.
document.addEventListener("turbo:render", () => document.querySelector("[role=alert]")?.focus());

// j and k move through a list.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const links = [...document.querySelectorAll("[data-keys] a")];
  if (links.length === 0 || (event.key !== "j" && event.key !== "k")) return;
  const at = links.indexOf(document.activeElement);
  const next = event.key === "j" ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0);
  links[next].focus();
});
