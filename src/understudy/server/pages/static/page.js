// The pages work without this script. With it, a question is priced while it is written, its answer is put in place,
// conditions are inserted by a click, and texts can be copied.
"use strict";

const byId = (id) => document.getElementById(id);

async function sent(form, address, part) {
  const body = new URLSearchParams(new FormData(form));
  const headers = part ? { "X-Understudy-Part": "1" } : {};
  const reply = await fetch(address, { method: "POST", body, headers, credentials: "same-origin", redirect: "manual" });
  return new DOMParser().parseFromString(await reply.text(), "text/html");
}

function take(found, id) {
  const here = byId(id), there = found.getElementById(id);
  if (here && there) here.replaceChildren(...document.adoptNode(there).childNodes);
}

// ---- asking

const form = byId("ask"), box = byId("question"), price = byId("price");

if (form && box && price) {
  let timer = 0, latest = 0;

  const priced = async () => {
    const mine = ++latest;
    price.classList.add("asking");
    try {
      const found = await sent(form, price.dataset.address, true);
      if (mine === latest) price.replaceChildren(...document.adoptNode(found.body).childNodes);
    } catch {
      if (mine === latest) price.textContent = "The server does not answer; the price appears when it does.";
    } finally {
      if (mine === latest) price.classList.remove("asking");
    }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(priced, 350); };

  const asked = async () => {
    const button = form.querySelector("button.main");
    button.disabled = true;
    clearTimeout(timer);
    latest++;
    try {
      const found = await sent(form, form.action, false);
      if (!found.getElementById("answer")) { form.submit(); return; }
      for (const id of ["budget", "answer", "last"]) take(found, id);
      form.elements.nonce.value = found.querySelector("#ask [name=nonce]").value;
      prepare(byId("answer"));
      byId("answer").scrollIntoView({ block: "nearest" });
      priced();
    } catch {
      form.submit();  // the browser shows what is wrong; the same request pays once
    } finally {
      button.disabled = false;
    }
  };

  byId("price-button").hidden = true;
  document.querySelector(".keys").hidden = false;
  box.addEventListener("input", soon);
  byId("error").addEventListener("input", soon);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(form.querySelector("button.main"));
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.id === "price-button") return;
    event.preventDefault();
    asked();
  });
  if (box.value.trim() && !price.dataset.priced) priced();
}

// ---- inserting what is clicked

function inserted(text, words) {
  if (/^(count|select)\b/i.test(words) || !text.trim()) return /^(count|select|share)\b/i.test(words) ? words : `count ${words}`;
  const found = /^(.*?)(\s+by\s+.*)?$/s.exec(text.trim());
  const joined = /^\w+$/.test(found[1].trim()) ? " " : " and ";
  return found[1].trim() + joined + words + (found[2] || "");
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-insert]");
  const target = box || byId("draft");
  if (!link || !target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  target.value = inserted(target.value, link.dataset.insert);
  target.focus();
  target.dispatchEvent(new Event("input"));
});

// ---- copying

function prepare(part) {
  if (!navigator.clipboard) return;
  for (const button of part.querySelectorAll(".copy-button")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

prepare(document);
