"use strict";
// Theme and small helpers shared by every page. Text reaches the page through textContent only.
const $ = (selector, root = document) => root.querySelector(selector);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// Words in backticks are code.
const prose = (text) => text.split(/`([^`\n]+)`/).map((part, index) => index % 2 ? el("code", {}, part) : part);

const data = (id) => JSON.parse(document.getElementById(id).textContent);


// JSON that was packed (deflate, base64) because most pages never open it.
async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
}

const place = new URLSearchParams(location.hash.slice(1));
function remember(values) {
  for (const [name, value] of Object.entries(values)) value ? place.set(name, value) : place.delete(name);
  history.replaceState(null, "", "#" + place.toString());
}

{
  const root = document.documentElement, button = $(".theme"), words = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  const stored = () => { try { return localStorage.getItem("amdflow-theme") || ""; } catch { return ""; } };
  const show = (theme) => {
    theme ? root.dataset.theme = theme : delete root.dataset.theme;
    button.textContent = words[theme];
  };
  let theme = place.get("theme") || stored();
  if (!(theme in words)) theme = "";
  show(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    const names = Object.keys(words);
    theme = names[(names.indexOf(theme) + 1) % names.length];
    show(theme);
    place.delete("theme");
    try { localStorage.setItem("amdflow-theme", theme); } catch { /* a file opened from disk may have no storage */ }
  });
}

const typing = (event) => event.target.closest("input, select, textarea") !== null || event.ctrlKey || event.metaKey || event.altKey;
