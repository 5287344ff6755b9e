"""The datasheet in a real browser, opened from disk."""

from pathlib import Path

from r2med.construction.publish.dataset_folder import write_output
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.browser import launched
from support.written_builds import small_build

HOSTILE = "<script>window.harmed = 1</script><img src=x onerror=alert(1)> \u202e"
CONTRAST = Path(__file__).parents[2] / "publication/site/contrast.js"


def test_a_datasheet_is_readable_in_both_themes_fits_a_phone_and_does_nothing_that_its_data_say(tmp_path):
    folder = write_output(small_build(tmp_path / "build", hostile=HOSTILE), Runtime(store=Store(tmp_path / "store")))
    faults = []
    with launched() as browser:
        for scheme, width in (("light", 1280), ("dark", 390)):
            page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("console", lambda message: faults.append(message.text))
            page.on("request", lambda request: faults.append(request.url) if "datasheet" not in request.url else None)
            page.goto(f"file://{folder}/datasheet.html")
            page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
            assert "<script>window.harmed" in page.inner_text("h1")
            assert "\u202e" not in page.inner_text("body")
            assert page.evaluate("[window.harmed, document.images.length]") == [None, 0]
            assert {pair: ratio for pair, ratio in page.evaluate(CONTRAST.read_text()) if ratio < 4.5} == {}
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults == []
