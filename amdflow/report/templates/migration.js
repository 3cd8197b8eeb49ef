"use strict";
// Findings and files: filtered in memory, drawn one page at a time, so that thousands stay quick.
const DATA = data("data"), PAGE = 50;
for (const finding of DATA.findings) { finding.t = DATA.texts[finding.t]; finding.f = DATA.texts[finding.f]; }
const fileOf = new Map(DATA.files.map((file) => [file.p, file]));
const findingsOf = new Map();
for (const finding of DATA.findings) findingsOf.has(finding.p) ? findingsOf.get(finding.p).push(finding) : findingsOf.set(finding.p, [finding]);

function compare(path, line) {
  const file = fileOf.get(path);
  if (file) Diff.open(file, findingsOf.get(path) || [], line);
}

// A filtered list with pages. `row` draws one item, `after` runs when a page was drawn.
function list(name, table, items, row, after = () => {}) {
  const body = $("tbody", table), pager = $(`.pager[data-for="${name}"]`);
  let shown = items, page = 0;
  const button = (text, label, target) => el("button", { type: "button", "aria-label": label, disabled: target < 0 || target * PAGE >= shown.length, onclick: () => turn(target, true) }, text);
  function draw(from = page * PAGE, to = (page + 1) * PAGE) {
    body.replaceChildren(...shown.slice(from, to).map((item, index) => row(item, from + index)));
    if (!shown.length) body.append(el("tr", {}, el("td", { colspan: "9", class: "soft" }, "Nothing matches.")));
    const last = Math.min(shown.length, (page + 1) * PAGE), count = shown.length.toLocaleString("en");
    const all = shown.length === items.length ? "" : ` (of ${items.length.toLocaleString("en")})`;
    pager.replaceChildren(el("span", { role: "status" }, shown.length > PAGE ? `${(page * PAGE + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${count}${all}` : `${count} ${shown.length === 1 ? name.slice(0, -1) : name}${all}`),
      ...(shown.length > PAGE ? [button("‹ Previous", "Previous page", page - 1), button("Next ›", "Next page", page + 1)] : []));
    after();
  }
  function turn(target, scroll) {
    if (target < 0 || target * PAGE >= Math.max(1, shown.length)) return;
    page = target;
    draw();
    if (scroll) table.scrollIntoView({ block: "start" });
  }
  addEventListener("beforeprint", () => draw(0, shown.length));
  addEventListener("afterprint", () => draw());
  return { show(kept) { shown = kept; page = 0; draw(); }, turn, get page() { return page; }, get shown() { return shown; } };
}

const Findings = (() => {
  const table = $("#finding-table");
  if (!table) return null;
  const chosen = new Set((place.get("severity") || "").split(",").filter(Boolean));
  const search = $("#search"), rule = $("#rule"), where = $("#where");
  for (const finding of DATA.findings) finding.h = [finding.i, finding.t, finding.m, finding.p, finding.c, finding.f].join("\n").toLowerCase();
  let current = -1;

  function options(select, counts, title) {
    select.append(...[...counts].map(([value, count]) => el("option", { value }, `${title(value)} (${count.toLocaleString("en")})`)));
  }
  function count(keys) {
    const counts = new Map();
    for (const key of keys) counts.set(key, (counts.get(key) || 0) + 1);
    return new Map([...counts].sort(([a], [b]) => a < b ? -1 : 1));
  }
  const titles = new Map(DATA.findings.map((finding) => [finding.i, finding.t]));
  options(rule, count(DATA.findings.map((finding) => finding.i)), (id) => titles.get(id) ? `${id} ${titles.get(id)}`.slice(0, 80) : id);
  const folder = (path) => path.includes("/") ? path.slice(0, path.lastIndexOf("/") + 1) : "";
  options(where, count(DATA.findings.flatMap((finding) => folder(finding.p) ? [folder(finding.p), finding.p] : [finding.p])), (path) => path || "no file");

  function row(finding, index) {
    const known = fileOf.has(finding.p), label = finding.p + (finding.l ? ":" + finding.l : "");
    return el("tr", { class: "finding", "data-index": index, tabindex: "-1", "aria-expanded": "false", onfocus: () => mark(index), onclick: (event) => { if (!event.target.closest("button")) select(index, true); } },
      el("td", {}, el("span", { class: "tag " + finding.s }, finding.s)),
      el("td", { class: "what" }, el("span", { class: "title" }, ...prose(finding.t || finding.m)), " ", el("span", { class: "id" }, finding.i), finding.t && finding.m !== finding.t ? el("p", { class: "soft" }, ...prose(finding.m)) : null),
      el("td", { class: "path" }, known ? el("button", { type: "button", class: "link mono", onclick: () => { select(index, false); compare(finding.p, finding.l); } }, label) : el("code", {}, label)),
      el("td", { class: "nowrap", "data-label": "effort:" }, finding.e));
  }
  function details(finding) {
    const facts = [["Code", finding.c && el("pre", {}, finding.c)], ["Fix", finding.f && el("span", {}, ...prose(finding.f))], ["Targets", finding.g && finding.g.join(", ")], ["Read more", finding.i && el("code", {}, "amdflow explain " + finding.i)]];
    const shown = facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
    const button = fileOf.has(finding.p) ? el("p", { class: "no-print" }, el("button", { type: "button", onclick: () => compare(finding.p, finding.l) }, "Show side by side")) : null;
    return el("tr", { class: "more" }, el("td", { colspan: "4" }, el("dl", { class: "facts" }, ...shown), button));
  }
  // One row is in the tab order at a time; the arrow keys (and j, k) move between rows.
  function mark(index) {
    const line = $(`tr[data-index="${index}"]`, table), before = $("tr.current", table);
    if (before) { before.classList.remove("current"); before.tabIndex = -1; }
    if (!line) return null;
    line.classList.add("current");
    line.tabIndex = 0;
    current = index;
    return line;
  }
  function select(index, toggle) {
    const line = mark(index);
    if (!line || !toggle) return;
    const open = line.nextElementSibling?.classList.contains("more");
    open ? line.nextElementSibling.remove() : line.after(details(pages.shown[index]));
    line.setAttribute("aria-expanded", String(!open));
  }
  function fold() {
    for (const more of table.querySelectorAll("tr.more")) { more.previousElementSibling.setAttribute("aria-expanded", "false"); more.remove(); }
  }
  const pages = list("findings", table, DATA.findings, row, () => {
    current = -1;
    const first = $("tr.finding", table);
    if (first) first.tabIndex = 0;
  });

  function apply() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), at = where.value;
    pages.show(DATA.findings.filter((finding) => (!chosen.size || chosen.has(finding.s)) && (!rule.value || finding.i === rule.value) &&
      (!at || finding.p === at || (at.endsWith("/") && folder(finding.p) === at)) && words.every((word) => finding.h.includes(word))));
    for (const chip of document.querySelectorAll("#severities .chip")) chip.setAttribute("aria-pressed", String(chosen.has(chip.dataset.severity)));
    remember({ q: search.value, rule: rule.value, where: at, severity: [...chosen].join(",") });
  }
  function move(by) {
    const start = pages.page * PAGE, end = Math.min(pages.shown.length, start + PAGE) - 1;
    mark(Math.min(end, Math.max(start, current < 0 ? start : current + by)))?.focus({ preventScroll: true });
    $("tr.current", table)?.scrollIntoView({ block: "nearest" });
  }

  $("#severities").addEventListener("click", (event) => {
    const severity = event.target.closest(".chip")?.dataset.severity;
    if (!severity) return;
    chosen.has(severity) ? chosen.delete(severity) : chosen.add(severity);
    apply();
  });
  search.addEventListener("input", apply);
  rule.addEventListener("change", apply);
  where.addEventListener("change", apply);
  $("#clear").addEventListener("click", () => { chosen.clear(); search.value = rule.value = where.value = ""; apply(); });
  search.value = place.get("q") || "";
  rule.value = place.get("rule") || "";
  where.value = place.get("where") || "";
  apply();
  function only(values) {
    chosen.clear();
    search.value = values.search || "";
    rule.value = values.rule || "";
    where.value = "";
    apply();
    $("#findings").scrollIntoView({ block: "start" });
  }
  return { move, pages, fold, only, open: () => select(current, true), current: () => pages.shown[current], focus: () => search.focus() };
})();

{
  const table = $("#file-table"), search = $("#file-search"), readiness = $("#readiness"), method = $("#method");
  function row(file) {
    const name = el("button", { type: "button", class: "link mono", onclick: () => compare(file.p, 0) }, file.p);
    const notes = [file.o && file.o !== file.p ? "→ " + file.o : "", ...file.n].filter(Boolean);
    return el("tr", {}, el("th", { class: "path" }, name, ...notes.map((note) => el("p", { class: "soft" }, note))),
      el("td", {}, el("span", { class: "tag " + file.r.replaceAll(" ", "-") }, file.r)),
      el("td", {}, file.m),
      ...DATA.targets.map((target, index) => el("td", { "data-label": target }, file.t[index] === "ok" || file.t[index] === "failed" ? el("span", { class: "tag " + file.t[index] }, file.t[index]) : el("span", { class: "zero", title: "not compiled alone" }, "–"))),
      el("td", { class: "num" + (file.c ? "" : " zero"), "data-label": "needs a person" }, String(file.c)));
  }
  const pages = list("files", table, DATA.files, row);
  function apply() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    pages.show(DATA.files.filter((file) => (!readiness.value || file.r === readiness.value) && (!method.value || file.m === method.value) && words.every((word) => file.p.toLowerCase().includes(word))));
  }
  search.addEventListener("input", apply);
  readiness.addEventListener("change", apply);
  method.addEventListener("change", apply);
  apply();
}

// Buttons in the lists of libraries and efforts lead to a file, or to the findings they speak of.
document.addEventListener("click", (event) => {
  const { file, rule, search } = event.target.closest("button")?.dataset || {};
  if (file) compare(file, 0);
  if ((rule || search) && Findings) Findings.only({ rule, search });
});

document.addEventListener("keydown", (event) => {
  if (Diff.isOpen()) return;
  if (event.key === "Escape") event.target.matches("input") ? event.target.blur() : Findings?.fold();
  if (typing(event) || !Findings) return;
  const inTable = event.target.closest("#finding-table"), by = { j: 1, n: 1, k: -1, p: -1, ArrowDown: inTable && 1, ArrowUp: inTable && -1 }[event.key];
  if (event.key === "/" || by) event.preventDefault();
  if (event.key === "/") Findings.focus();
  if (by) Findings.move(by);
  if ((event.key === "Enter" || (event.key === " " && inTable)) && !event.target.closest("button, a, summary")) { event.preventDefault(); Findings.open(); }
  if (event.key === "d" && Findings.current()) compare(Findings.current().p, Findings.current().l);
  if (event.key === "]") Findings.pages.turn(Findings.pages.page + 1, true);
  if (event.key === "[") Findings.pages.turn(Findings.pages.page - 1, true);
});

if (place.get("file")) compare(place.get("file"), Number(place.get("line") || 0));
