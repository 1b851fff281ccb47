"""The site in a real browser, opened from disk: sorting, filtering, keyboard, phone, dark mode, and no way out."""

from __future__ import annotations

import pytest
from browser import Browser, find_browser
from made_rounds import write_rounds
from made_runs import ST_MT_1, write_run

from fmtlbench.reports.collect import collect
from fmtlbench.reports.site import figures, write_site

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium on this machine")
METHODS = ["Local", "FedAvg", "FedPer", "FedHCA²"]
ROWS = "[...document.querySelectorAll('#t1 tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].innerText.trim())"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Four methods, one without a depth score, and a trap; one figure, so that it stays quick."""
    root = tmp_path_factory.mktemp("site")
    for algorithm in ("local", "fedavg", "fedper"):
        write_rounds(root / "runs", algorithm, clients=ST_MT_1)
    lost = {("nyud-multi", "depth"): None, ("pascal-semseg", "semseg"): 99.0}
    write_run(root / "runs", algorithm="fedhca2", clients=ST_MT_1, values=lost, rounds=6)
    title = "<script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>" + "x" * 300
    write_run(root / "runs", algorithm="trap", scenario="other", title=title)
    wanted = figures._wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_wanted", lambda page: [f for f in wanted(page) if f[0] == "metric-semseg"])
        return write_site(collect([root / "runs"]), root / "site").parent


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(PROGRAM, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser, site):
    """The leaderboard, wide and light. Whatever a test did there, nothing complained and nothing left the folder."""
    browser.size(1280, 900)
    browser.colours("light")
    browser.open(next(site.glob("duo*.html")))
    yield browser
    assert browser.complaints() == []
    assert all(address.startswith(f"{site.as_uri()}/") for address in browser.requests())


def head(number: int) -> str:
    return f"#t1 thead tr:last-child th:nth-child({number})"


def sorted_by(page: Browser) -> list:
    return page.value("[...document.querySelectorAll('#t1 [aria-sort]')].map(h => [h.cellIndex + 1, h.ariaSort])")


def test_a_click_sorts_best_first_then_worst_then_as_before(page):
    assert page.value(ROWS) == METHODS and sorted_by(page) == []
    page.click(f"{head(3)} button")
    assert sorted_by(page) == [[3, "descending"]] and page.value(ROWS)[0] == "FedHCA²"
    page.click(f"{head(3)} button")
    assert sorted_by(page) == [[3, "ascending"]] and page.value(ROWS)[-1] == "FedHCA²"
    page.click(f"{head(3)} button")
    assert sorted_by(page) == [] and page.value(ROWS) == METHODS


def test_lower_is_better_sorts_upwards_and_missing_comes_last(page):
    depth = next(n for n in range(2, 13) if "Depth" in page.value(f"document.querySelector('{head(n)}').innerText"))
    page.click(f"{head(depth)} button")
    assert sorted_by(page) == [[depth, "ascending"]]
    cells = page.value(f"[...document.querySelectorAll('#t1 tbody tr')].map(r => r.cells[{depth - 1}].dataset.value)")
    numbers = [float(c) for c in cells if c is not None]
    assert len(numbers) == 3 and numbers == sorted(numbers)
    assert page.value(ROWS)[-1] == "FedHCA²"
    page.click(f"{head(depth)} button")
    assert sorted_by(page) == [[depth, "descending"]] and page.value(ROWS)[-1] == "FedHCA²"


@pytest.mark.parametrize("key", ["Enter", " "])
def test_the_keyboard_reaches_and_sorts(page, key):
    stops = []
    for _ in range(30):
        page.press("Tab")
        stops.append(page.value("document.activeElement.closest('th')?.innerText ?? document.activeElement.className"))
        if stops[-1] == "Method":
            break
    assert stops[0] == "skip" and stops[-1] == "Method" and "frame" in stops
    assert page.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press(key)
    assert sorted_by(page) == [[1, "ascending"]] and page.value(ROWS) == sorted(METHODS)
    before = page.value("document.activeElement.innerText")
    page.press("Tab")  # no trap
    assert page.value("document.activeElement.innerText") != before


def test_the_filter_keeps_the_methods_that_match(page):
    assert page.value("document.querySelector('.tools').hidden") is False
    page.click("input[type=search]")
    page.type("fed HCA")
    assert page.value(ROWS) == ["FedHCA²"]
    assert page.value("document.querySelector('output').textContent") == "1 of 4 shown"
    page.click(f"{head(1)} button")
    assert page.value(ROWS) == ["FedHCA²"]


def test_a_group_of_columns_can_be_hidden(page):
    shown = "[...document.querySelectorAll('#t1 tbody tr:first-child td')].filter(c => c.offsetWidth).length"
    before = page.value(shown)
    page.click("input[type=checkbox]")
    assert page.value(shown) == before - 5
    page.click(f"{head(8)} button")  # columns keep their numbers
    assert sorted_by(page) == [[8, "descending"]]
    page.click("input[type=checkbox]")
    assert page.value(shown) == before


def test_a_method_opens_its_run_and_enter_does_too(page):
    page.events.clear()
    page.click("#t1 tbody tr:first-child a")
    page.wait_for("Page.loadEventFired")
    assert page.value("document.querySelector('h1').innerText").startswith("Local")
    assert page.value("document.querySelectorAll('polyline').length") > 8
    assert page.value("document.querySelector('.frame table').tBodies[0].rows.length") == 9
    page.value("document.querySelector('header a:last-of-type').focus()")
    page.events.clear()
    page.press("Enter")
    page.wait_for("Page.loadEventFired")
    assert page.value("document.title").startswith("fmtlbench leaderboards")


def test_heads_show_that_they_sort_before_any_click(page):
    signs = """[...document.querySelectorAll('#t1 thead button .title')]
        .map(t => getComputedStyle(t, '::after').content.replaceAll('"', '').trim())"""
    assert len(page.value(signs)) > 10 and set(page.value(signs)) == {"↕"}
    page.click(f"{head(3)} button")
    assert page.value(signs).count("▼") == 1 and page.value(signs)[2] == "▼"


def test_figures_are_drawings_that_follow_the_colour_scheme(page, site):
    look = """(() => { const svg = document.querySelector('.figures svg.plot');
        const of = (e, what) => getComputedStyle(e)[what];
        const line = svg.querySelector('[stroke="var(--method-1)"]');
        return [svg.getBoundingClientRect().width, of(svg.querySelector('text'), 'fill'), of(line, 'stroke'),
                document.querySelectorAll('img').length]; })()"""
    wide, text, line, pictures = page.value(look)
    assert wide > 300 and pictures == 0
    assert (text, line) == ("rgb(27, 35, 48)", "rgb(0, 114, 178)")
    page.colours("dark")
    _, text, line, _ = page.value(look)
    assert (text, line) == ("rgb(231, 235, 240)", "rgb(90, 174, 230)")


def test_a_phone_shows_delta_beside_the_method_also_when_scrolled(page):
    page.size(390, 844, mobile=True)
    edges = """(() => { const row = document.querySelector('#t1 tbody tr:nth-child(2)');
        const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.right]; };
        return [box(row.cells[0]), box(row.querySelector('.lead')), box(document.querySelector('.frame'))]; })()"""
    assert page.value("document.querySelector('#t1 tbody .lead').dataset.value") == "0"
    before = page.value(edges)
    page.value("document.querySelector('.frame').scrollLeft = 250")
    after = page.value(edges)
    for method, delta, frame in (before, after):
        assert frame[0] <= method[0] and delta[1] <= frame[1] <= 390  # both in view
        assert abs(delta[0] - method[1]) < 1.5  # side by side, neither covers the other
    covered = page.value(
        "(() => { document.querySelector('#t1').scrollIntoView({block: 'center', behavior: 'instant'});"
        "const s = document.querySelector('#t1 tbody tr:nth-child(2) .lead').getBoundingClientRect();"
        "return document.elementFromPoint(s.left + s.width / 2, s.top + 8).closest('td').className; })()"
    )
    assert covered == "num lead"  # nothing that scrolls lies on it


@pytest.mark.parametrize(
    "which", ["index.html", "duo*.html", "other*.html", "runs/duo-local*.html", "runs/other*.html"]
)
def test_a_phone_never_scrolls_sideways(page, site, which):
    page.size(390, 844, mobile=True)
    page.open(next(site.glob(which)))
    assert page.value("document.documentElement.scrollWidth") <= 390
    assert page.value("innerWidth") == 390
    assert page.value("document.title") != "owned"
    assert "<script>" in page.value("document.body.innerText") or "other" not in which


def test_wide_tables_scroll_in_their_frame_and_keep_the_first_column(page):
    page.size(390, 844, mobile=True)
    wide, seen = page.value("(f => [f.scrollWidth, f.clientWidth])(document.querySelector('.frame'))")
    assert wide > seen
    page.value("document.querySelector('.frame').scrollLeft = 200")
    left = page.value(
        "document.querySelector('#t1 tbody th').getBoundingClientRect().x - "
        "document.querySelector('.frame').getBoundingClientRect().x"
    )
    assert 0 <= left < 3


CONTRASTS = """
(() => {
  const light = (c) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = c.match(/[\\d.]+/g).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    const c = getComputedStyle(e).backgroundColor;
    return c === "rgba(0, 0, 0, 0)" ? ground(e.parentElement) : c;
  };
  return [...document.querySelectorAll("main *, header *")].filter(e => e.innerText && e.offsetWidth).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 80)];
  }).sort((x, y) => x[0] - y[0])[0];
})()
"""


@pytest.mark.parametrize("which", ["index.html", "duo*.html", "runs/duo-local*.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(page, site, which, scheme):
    page.colours(scheme)
    page.open(next(site.glob(which)))
    ground = page.value("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
    contrast, where = page.value(CONTRASTS)
    assert contrast >= 4.5, where


@pytest.mark.parametrize(
    ("directive", "attempt"),
    [
        ("img-src", "new Image().src = 'http://127.0.0.1:9/x.png'"),
        ("connect-src", "fetch('http://127.0.0.1:9/').catch(() => 0)"),
        ("script-src-elem", "const s = document.createElement('script'); s.text = 'done(1)'; document.body.append(s)"),
        ("style-src-attr", "document.body.setAttribute('style', 'color: red')"),
    ],
)
def test_the_policy_stops_what_is_not_ours(browser, site, directive, attempt):
    browser.open(site / "index.html")
    stopped = browser.value(
        "new Promise(done => { document.addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));"
        f"{attempt}; setTimeout(() => done('not stopped'), 2000); }})"
    )
    assert stopped == directive


def test_without_scripts_the_content_is_there(browser, site):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(next(site.glob("duo*.html")))
        shown = "getComputedStyle(document.querySelector('{}')).display"
        assert browser.value(ROWS) == METHODS
        assert browser.value(shown.format(".tools")) == "none"
        assert browser.value("document.querySelectorAll('thead button').length") == 0
        assert browser.value("document.querySelector('#t1 tbody a').href").startswith(site.as_uri())
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
