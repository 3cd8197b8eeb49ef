"""What every page is measured by, run inside the page."""

from __future__ import annotations

from playwright.sync_api import Page

CONTRAST = """
() => {
  // A light-dark() colour is resolved by the browser; a canvas turns any notation into bytes.
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const bytes = (colour, under) => {
    pen.fillStyle = under; pen.fillRect(0, 0, 1, 1);
    pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backdrop = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
    return "white";
  };
  const low = [];
  for (const node of document.querySelectorAll("body *")) {
    const words = [...node.childNodes].filter((child) => child.nodeType === 3 && child.textContent.trim());
    if (!words.length || !node.checkVisibility() || ["SCRIPT", "STYLE", "OPTION", "NOSCRIPT"].includes(node.tagName)) continue;
    const style = getComputedStyle(node), under = `rgb(${bytes(backdrop(node), "white")})`;
    const [one, other] = [luminance(bytes(style.color, under)), luminance(bytes(under, "white"))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05), large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) low.push(`${node.tagName}.${node.className} ${ratio.toFixed(2)} ${words[0].textContent.trim().slice(0, 30)}`);
  }
  return low;
}
"""
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
UNNAMED = """
() => [...document.querySelectorAll("button, input, select, a")].filter((node) => node.checkVisibility() &&
  !(node.textContent.trim() || node.getAttribute("aria-label") || node.title)).map((node) => node.outerHTML)
"""


def faint_texts(page: Page) -> list[str]:
    """Texts under WCAG AA contrast (4.5, or 3 for large ones)."""
    found: list[str] = page.evaluate(CONTRAST)
    return found


def assert_well_made(page: Page) -> None:
    """Readable contrast, no sideways scrolling, every control has a name, and the ids are unique."""
    assert faint_texts(page) == []
    assert page.evaluate(SIDEWAYS) <= 0
    assert page.evaluate(UNNAMED) == []
    ids = page.eval_on_selector_all("[id]", "nodes => nodes.map((node) => node.id)")
    assert len(ids) == len(set(ids))
