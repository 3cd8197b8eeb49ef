"use strict";
// The side-by-side view of one file, drawn from its own JSON element when it is opened.
const Diff = (() => {
  const KEEP = 4, FOLD_FROM = 14, PIECE = 400, WORDS = /[A-Za-z0-9_]+|\s+|[^A-Za-z0-9_\s]/g, WORD_LIMIT = 240;
  const dialog = $("#compare"), body = $("#diff");
  let stops = [], at = -1, opener = null, wanted = "", drawing = 0, counted = 0;

  // Longest common subsequence over words, good for one line of code.
  function changedWords(before, after) {
    const a = before.match(WORDS) || [], b = after.match(WORDS) || [];
    if (a.length > WORD_LIMIT || b.length > WORD_LIMIT) return [[[before, false]], [[after, false]]];
    const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    const left = [], right = [];
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) { left.push([a[i++], false]); right.push([b[j++], false]); }
      else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) left.push([a[i++], true]);
      else right.push([b[j++], true]);
    }
    return table[0][0] * 3 < Math.min(a.length, b.length) ? [[[before, false]], [[after, false]]] : [left, right];
  }

  function code(column, words) {
    const cell = el("code", { class: "c" + column });
    for (let from = 0, to; from < words.length; from = to) {
      for (to = from + 1; to < words.length && words[to][1] === words[from][1];) to++;
      const text = words.slice(from, to).map(([word]) => word).join("");
      cell.append(words[from][1] ? el("mark", {}, text) : text);
    }
    return cell;
  }

  function row(kind, a, old, b, now) {
    const cells = [[0, a, old], [1, b, now]].flatMap(([column, number, words]) => words === null
      ? [el("i", { class: `n${column} none` }), el("code", { class: `c${column} none` })]
      : [el("i", { class: "n" + column }, String(number)), code(column, words)]);
    return el("div", { class: "row " + kind, "data-line": old === null ? null : a }, ...cells);
  }

  const sameRow = (segment, index) => {
    const words = [[segment.t[index], false]];
    return row("same", segment.a + index, words, segment.b + index, words);
  };

  function* editRows(segment) {
    for (let index = 0; index < Math.max(segment.o.length, segment.n.length); index++) {
      const old = segment.o[index], now = segment.n[index];
      const [left, right] = old !== undefined && now !== undefined ? changedWords(old, now) : [old === undefined ? null : [[old, false]], now === undefined ? null : [[now, false]]];
      yield row("edit", segment.a + index, left, segment.b + index, right);
    }
  }

  function remark(finding) {
    return el("div", { class: "remark " + finding.s },
      el("p", {}, el("span", { class: "tag " + finding.s }, finding.s), " ", el("b", {}, ...prose(finding.t || finding.m)), " ", el("span", { class: "soft" }, finding.i)),
      finding.t && finding.m !== finding.t ? el("p", {}, ...prose(finding.m)) : null, finding.f ? el("p", {}, ...prose("Fix: " + finding.f)) : null);
  }

  function withRemarks(node, remarks) {
    const found = remarks.get(Number(node.dataset.line));
    if (!found) return [node];
    node.classList.add("marked");
    remarks.delete(Number(node.dataset.line));
    return [node, ...found.map(remark)];
  }

  // Which lines of an unchanged run to show at once: the ends beside an edit, and what lies around a finding.
  function sameSegment(segment, remarks, first, last) {
    const count = segment.t.length, shown = new Uint8Array(count);
    const mark = (from, to) => shown.fill(1, Math.max(0, from), Math.min(count, to));
    if (count < FOLD_FROM) mark(0, count);
    if (!first) mark(0, KEEP);
    if (!last) mark(count - KEEP, count);
    for (const line of remarks.keys()) mark(line - segment.a - KEEP, line - segment.a + KEEP + 1);
    const nodes = [];
    for (let index = 0; index < count;) {
      let end = index;
      while (end < count && shown[end] === shown[index]) end++;
      if (shown[index] || end - index < 3) for (; index < end; index++) nodes.push(...withRemarks(sameRow(segment, index), remarks));
      else { nodes.push(fold(segment, index, end)); index = end; }
    }
    return nodes;
  }

  function fold(segment, from, to) {
    return el("button", { type: "button", class: "fold", onclick: (event) => {
      event.target.replaceWith(...Array.from({ length: to - from }, (_, step) => sameRow(segment, from + step)));
      body.focus();
    } }, `Show ${to - from} unchanged lines`);
  }

  function* nodesOf(segments, remarks) {
    for (const [index, segment] of segments.entries()) {
      if (segment.k === "-") yield el("div", { class: "fold" }, `${segment.c} unchanged lines, left out of this page`);
      else if (segment.k === "~") for (const node of editRows(segment)) yield* withRemarks(node, remarks);
      else yield* sameSegment(segment, remarks, index === 0, index === segments.length - 1);
    }
    for (const rest of remarks.values()) yield* rest.map(remark);
  }

  // What is looked at first is drawn at once, the rest of a long file in pieces.
  function draw(segments, findings, labels, line) {
    const remarks = new Map(), drawn = ++drawing;
    for (const finding of findings) remarks.set(finding.l, [...(remarks.get(finding.l) || []), finding]);
    body.replaceChildren(el("div", { class: "row head" }, el("span", {}, labels[0]), el("span", {}, labels[1])), ...(remarks.get(0) || []).map(remark));
    remarks.delete(0);
    const nodes = nodesOf(segments, remarks);
    function piece(least) {
      const part = document.createDocumentFragment();
      let count = 0, seen = !line;
      for (let next = nodes.next(); !next.done; next = nodes.next()) {
        part.append(next.value);
        seen ||= next.value.dataset.line === String(line);
        if (++count >= least && seen) break;
      }
      body.append(part);
      return count >= least;
    }
    function rest() {
      line = 0;
      if (drawn !== drawing || !dialog.open) return;
      const more = piece(PIECE * 2);
      collectStops();
      if (more) setTimeout(rest);
    }
    counted = 0;
    stops = [];
    if (piece(PIECE)) setTimeout(rest);
  }

  // Where "next" and "previous" lead; nodes that were looked at before are not looked at again.
  function collectStops() {
    const all = body.children;
    for (; counted < all.length; counted++) {
      const node = all[counted];
      if (node.classList.contains("marked") || (node.classList.contains("edit") && !all[counted - 1].classList.contains("edit"))) stops.push(node);
    }
  }

  function step(by) {
    if (!stops.length) return;
    at = Math.min(stops.length - 1, Math.max(0, at + by));
    aim(stops[at]);
  }

  function aim(node) {
    $(".row.target", body)?.classList.remove("target");
    node.classList.add("target");
    body.scrollTop = node.offsetTop - body.offsetTop - body.clientHeight / 3;
  }

  async function open(file, findings, line) {
    if (!dialog.open) opener = document.activeElement;
    $("#compare-title").textContent = wanted = file.p;
    remember({ file: file.p, line: line ? String(line) : "" });
    const segments = file.d < 0 ? null : await unpack("d" + file.d);
    if (wanted !== file.p) return;
    if (segments) draw(segments, findings, ["CUDA: " + file.p, file.o ? "HIP: " + file.o : "not written"], line);
    else body.replaceChildren(...findings.map(remark), el("p", { class: "remark" }, "Nothing in this file was changed, or its text is not in this page."));
    if (!dialog.open) dialog.showModal();
    collectStops();
    const row = line ? $(`.row[data-line="${line}"]`, body) : null;
    at = row ? stops.indexOf(row) : -1;
    body.scrollTop = 0;
    if (row) aim(row);
    body.focus({ preventScroll: true });
  }

  $("#compare-next").addEventListener("click", () => step(1));
  $("#compare-previous").addEventListener("click", () => step(-1));
  $("#compare-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { wanted = ""; remember({ file: "", line: "" }); body.replaceChildren(); opener?.focus({ preventScroll: true }); });
  dialog.addEventListener("keydown", (event) => {
    if (typing(event)) return;
    if (event.key === "n" || event.key === "j") step(1);
    if (event.key === "p" || event.key === "k") step(-1);
  });
  return { open, isOpen: () => dialog.open };
})();
