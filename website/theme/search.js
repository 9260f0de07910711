// Search in the sections that the build wrote into search-index.js. No server, no library: it works from disk.
const input = document.getElementById("search");
const results = document.getElementById("results");
const base = document.body.dataset.base;

function ranked(words) {
  const found = [];
  for (const [url, page, title, text] of SECTIONS) {
    const name = (page + " " + title).toLowerCase(), body = text.toLowerCase();
    if (!words.every((word) => name.includes(word) || body.includes(word))) continue;
    let score = url.startsWith("api/") ? 0 : 1; // guides before the reference
    for (const word of words) score += title.toLowerCase().includes(word) ? 4 : name.includes(word) ? 2 : 0;
    found.push([score, url, page, title, excerpt(text, words[0])]);
  }
  return found.sort((a, b) => b[0] - a[0]).slice(0, 12);
}

function excerpt(text, word) {
  const at = Math.max(text.toLowerCase().indexOf(word) - 40, 0);
  return (at ? "…" : "") + text.slice(at, at + 110);
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  results.replaceChildren();
  results.hidden = words.length === 0;
  if (results.hidden) return;
  for (const [, url, page, title, text] of ranked(words)) {
    const link = element("a", title === page ? page : `${page}: ${title}`);
    link.href = `${base}/${url}`;
    const entry = document.createElement("li");
    entry.append(link, element("p", text));
    results.append(entry);
  }
  if (!results.childElementCount) results.append(element("li", "Nothing has all of these words."));
}

input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { input.value = ""; show(); }
  if (event.key === "Enter") results.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
});
results.addEventListener("click", () => { input.value = ""; show(); });
if (location.hash.startsWith("#search=")) { input.value = decodeURIComponent(location.hash.slice(8)); show(); }
