"use strict";
// Reading values off a chart, with the pointer or the arrow keys.
for (const chart of document.querySelectorAll(".chart")) {
  const points = JSON.parse($("script", chart).textContent), area = $(".area", chart), guide = $(".guide", chart), dot = $(".dot", chart), output = $("output", chart);
  const name = chart.closest("figure").querySelector("figcaption b").textContent;
  let at = -1;
  function show(index) {
    at = Math.min(points.length - 1, Math.max(0, index));
    const [left, bottom, x, y] = points[at];
    guide.hidden = dot.hidden = false;
    guide.style.left = dot.style.left = left + "%";
    dot.style.bottom = bottom + "%";
    output.textContent = `step ${x}: ${name} ${Number(y.toPrecision(5))}`;
  }
  function hide() { guide.hidden = dot.hidden = true; output.textContent = ""; at = -1; }
  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect(), wanted = 100 * (event.clientX - box.left) / box.width;
    let low = 0, high = points.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; points[middle][0] < wanted ? low = middle : high = middle; }
    show(wanted - points[low][0] < points[high][0] - wanted ? low : high);
  });
  area.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(at < 0 && Number.isFinite(step) ? 0 : at + step);
  });
}
// On paper everything is open.
addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll("details")) { fold.dataset.was = fold.open; fold.open = true; } });
addEventListener("afterprint", () => { for (const fold of document.querySelectorAll("details")) fold.open = fold.dataset.was === "true"; });
