"""The page of a whole run in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from amdflow.pipeline.manifest import Status
from amdflow.report.run import write_run_report
from tests.browser.conftest import Open, Scheme
from tests.browser.looks import assert_well_made
from tests.unit.report.manifests import manifest, save, whole_run


@pytest.fixture
def run_page(tmp_path: Path) -> Path:
    """A run with a curve of 300 steps, an unreadable manifest and a cancelled attempt."""
    workdir = tmp_path / "out"
    whole_run(workdir)
    save(workdir, manifest("finetune", metrics={"loss": [[step, 3 / step] for step in range(1, 301)]}))
    save(workdir, manifest("kernels", Status.CANCELLED), "attempt.json")
    save(
        workdir,
        manifest("migrate", Status.OK_WITH_FINDINGS, findings={"silent": 3}, not_exercised=["no kernel was run"]),
    )
    (workdir / "export" / "manifest.json").write_text("{")
    write_run_report(workdir, workdir / "report.html")
    return workdir / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 380])
def test_it_is_well_made_in_both_schemes_and_on_a_phone(
    open_page: Open, run_page: Path, scheme: Scheme, width: int
) -> None:
    page = open_page(run_page, scheme=scheme, width=width)
    for fold in page.locator("details > summary").all():
        fold.click()
    assert_well_made(page)


def test_the_strip_leads_to_each_stage(open_page: Open, run_page: Path) -> None:
    page = open_page(run_page)
    states = page.locator(".chain .tag").all_inner_texts()
    assert states == ["ok with findings", "cancelled", "ok", "unreadable", "ok"]
    page.locator(".chain a").nth(4).click()
    expect(page.locator("#serve-title")).to_be_in_viewport()


def test_the_curve_can_be_read_with_pointer_and_keys(open_page: Open, run_page: Path) -> None:
    page = open_page(run_page)
    chart = page.get_by_role("img", name="loss by step")
    said = chart.locator("output")
    chart.focus()
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text("step 1: loss 3")
    page.keyboard.press("End")
    expect(said).to_have_text("step 300: loss 0.01")
    page.keyboard.press("ArrowLeft")
    expect(said).to_have_text("step 299: loss 0.010033")
    chart.locator(".area").hover()
    expect(said).to_contain_text("step 15")
    page.mouse.move(0, 0)
    expect(said).to_have_text("")


def test_paper_gets_everything_unfolded(open_page: Open, run_page: Path) -> None:
    page = open_page(run_page)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
