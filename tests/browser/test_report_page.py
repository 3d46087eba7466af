"""The report in a real browser: what its scripts do, and what a screen, a keyboard and a printer see.

A script that is added to the page clicks and reads, and leaves what it found as the page's text.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Claim
from replifed.claims.verdicts import measure
from replifed.figures.style import canvas, save
from replifed.report.page import build

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
pytestmark = pytest.mark.skipif(not CHROMIUM.is_file(), reason=f"there is no {CHROMIUM}")

SETTINGS = {
    "papers": ["fedht", "fedac"],
    "fedac": {"artefacts": {}},
    "fedht": {
        "artefacts": {"fig1": {"runs": {"simulation1": ["fedht"]}}, "fig2": {}, "fig3": {}, "bias": {}},
        "experiments": {"simulation1": {"rounds": 40, "replicates": [1, 2, 3]}},
    },
}


class Inputs:
    def has(self, key):
        return True

    def data_kind(self, experiment):
        return "synthetic", ""


def claim(name, values, **more):
    return Claim(
        id=f"fedht.{name}",
        paper="fedht",
        artefact="fig1",
        kind="near",
        statement=f"The rate is {more['published']}, as {name} says.",
        tolerance=0.1,
        tolerance_reason="a tenth",
        unit="rate",
        measure=lambda inputs: np.array(values),
        **more,
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A small report of made-up numbers, and the folder that it is in."""
    folder = tmp_path_factory.mktemp("report")
    figures = folder / "figures" / "fedht"
    figures.mkdir(parents=True)
    rows = [
        {
            **{"experiment": "simulation1", "level": "0.1,0.1", "reading": reading, "method": method},
            **{"local_steps": steps, "step": 0.1, "chaotic": 0, "round": at, "iterations": at * steps},
            **{"bits": 64 * at, "mean": 0.9**at, "low": 0.8 * 0.9**at, "high": 1.2 * 0.9**at},
            **{"alive": 5, "seeds": 5, "diverged": 0, "data": "", "scale": "paper"},
        }
        for reading in ("own", "common")
        for method in ("fedht", "fediterht")
        for steps in (3, 10)
        for at in range(41)
    ]
    frame = pd.DataFrame(rows)
    frame.to_csv(figures / "fig1.csv", index=False)
    # Figure 2 has a curve for each level, on a page for each reading.
    two = frame[frame["local_steps"] == 3]
    pd.concat([two, two.assign(level="1,1")]).to_csv(figures / "fig2.csv", index=False)
    # Figure 3 has one curve per method, and a published number.
    two[two["reading"] == "common"].to_csv(figures / "fig3.csv", index=False)
    for name in ("fig1", "fig2", "fig3"):
        save(canvas(1, 1)[0], figures / f"{name}.png")
    axes = Axes(
        Axis("step", "?", *(Option(name, "chosen", "a grid") for name in ("own", "common"))),
        Axis("loss", "?", Option("mean", "printed", "(2)"), Option("sum", "fitted", "Table 1 comes out")),
    )
    rates = {("own", "mean"): 0.4, ("own", "sum"): 0.5, ("common", "sum"): 0.6}
    main = [
        Claim(
            **{"id": f"fedht.rate.{step}.{loss}", "part": "fedht.rate", "paper": "fedht", "artefact": "fig1"},
            **{"kind": "value", "statement": "The rate is one half.", "unit": "rate", "axes": axes},
            **{"options": {"step": step, "loss": loss}, "published": 0.5, "precision": 0.05, "rival": 0.9},
            **{"main": True, "statement_id": "fedht.rate", "place": "Abstract", "sentence": "It is faster."},
            measure=lambda inputs, rate=rate: rate + 0.01 * np.linspace(-1, 1, 20),
        )
        for (step, loss), rate in rates.items()
    ]
    found = [
        *main,
        claim("beta", [0.5, 0.52, 0.51], published=0.5),
        claim("alpha", [0.9, 0.92, 0.91], published=0.1, note="a scale is not stated; seeds agree"),
        claim("gamma", [10.0, 10.02, 9.99], published=10.0),
    ]
    commands = {"command": lambda one: f"replifed make {one.id} --cores 2"}
    measure(found, Inputs(), "paper", **commands).to_csv(folder / "claims.csv", index=False)
    build(
        folder / "figures",
        "paper",
        SETTINGS,
        folder / "report.html",
        claims=folder / "claims.csv",
        curves=folder / "report_curves.js",
        run=folder / "report_run.js",
    )
    return folder


def chromium(folder, *words, page, query=""):
    """Call the browser on a page; return its standard output."""
    profile = folder / "profile"
    try:
        done = subprocess.run(
            [str(CHROMIUM), *QUIET, f"--user-data-dir={profile}", *words, (folder / page).as_uri() + query],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    finally:
        shutil.rmtree(profile, ignore_errors=True)
    return done.stdout


HARNESS = """<script>
addEventListener("load", async () => {
  const wait = time => new Promise(done => setTimeout(done, time));
  const all = selector => [...document.querySelectorAll(selector)];
  const seen = one => one.checkVisibility() && one.getBoundingClientRect().height > 0;
  const faults = window.faults, found = {};
  try { %s } catch (error) { faults.push(String(error)); }
  document.documentElement.textContent = `FOUND${JSON.stringify({ faults, ...found })}FOUND`;
});
</script>"""
# Before all else, so that nothing that a script complains of is lost.
LISTENER = """<script>
window.faults = [];
const fault = event => window.faults.push(event.message || `cannot load ${event.target.src}`);
addEventListener("error", fault, true);
addEventListener("unhandledrejection", event => window.faults.push(String(event.reason)));
for (const name of ["error", "warn"]) console[name] = (...words) => window.faults.push(words.join(" "));
</script>"""


def observed(folder, script, width=1400, height=1000, query=""):
    """What a script of the page, which fills `found`, sees in a window; nothing on the console."""
    text = (folder / "report.html").read_text()
    text = text.replace("<head>", f"<head>{LISTENER}", 1).replace("</body>", f"{HARNESS % script}</body>")
    (folder / "tried.html").write_text(text)
    words = ["--virtual-time-budget=5000", f"--window-size={width},{height}", "--dump-dom"]
    dumped = chromium(folder, *words, page="tried.html", query=query).split("FOUND")[1]
    found = json.loads(dumped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert found.pop("faults") == []
    return found


def test_curves_replace_the_picture_and_are_read_and_toggled(report):
    found = observed(
        report,
        """
        const section = byId("fedht-fig2"), button = section.querySelector("button[data-draw]");
        found.before = [seen(section.querySelector("img")), section.querySelectorAll(".panel").length];
        button.click();
        await wait(300);
        found.after = [seen(section.querySelector("img")), section.querySelectorAll(".panel").length];
        const count = () => section.querySelectorAll(".panel:first-child polyline").length;
        const legend = [...section.querySelectorAll(".legend button")], counts = [count()];
        legend[0].click();
        counts.push(count(), legend[0].getAttribute("aria-pressed"));
        legend[0].click();
        counts.push(count());
        found.counts = counts;
        const svg = () => section.querySelector(".panel svg"), frame = svg().getBoundingClientRect();
        const [clientX, clientY] = [frame.right - 16, frame.bottom - 50];
        svg().dispatchEvent(new PointerEvent("pointermove", { clientX, clientY }));
        found.hovered = section.querySelector(".tip").textContent;
        svg().dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
        found.said = section.querySelector(".said").textContent;
        const [page, axis] = section.querySelectorAll(".controls select");
        const [across, up] = [...section.querySelectorAll(".controls button")];
        const texts = () => [...section.querySelectorAll(".panel:first-child g > text:not(.tip)")];
        found.axes = [...axis.options].map(one => one.value);
        axis.value = "bits";
        axis.dispatchEvent(new Event("change"));
        found.bits = texts().map(one => one.textContent);
        const path = () => section.querySelector("polyline").getAttribute("points"), first = path();
        up.click();
        found.turned = path() !== first;
        found.pages = page.options.length;
        button.click();
        await wait(50);
        found.again = [seen(section.querySelector("img")), seen(section.querySelector(".panels"))];
        """,
    )
    assert found["before"] == [True, 0]
    assert found["after"] == [False, 2]
    assert found["counts"] == [2, 1, "false", 2]
    assert re.match(r"\(α, β\) = \(.*\)40 → 0\.01478 \[0\.0118, 0\.0177\]", found["hovered"])
    assert re.match(
        r"\(α, β\) = \(.*\): communication rounds 38, objective / initial objective 0\.01825.*; 5 seeds",
        found["said"],
    )
    assert found["axes"] == ["round", "iterations", "bits"]
    assert "bits sent" in found["bits"] and "2000" in found["bits"]
    assert found["turned"]
    assert found["pages"] == 2
    assert found["again"] == [True, False]


def test_a_published_number_stands_on_its_own_axis_alone(report):
    found = observed(
        report,
        """
        const section = byId("fedht-fig3"), said = () => [...section.querySelectorAll(".said-of")];
        section.querySelector("button[data-draw]").click();
        await wait(300);
        found.said = said().map(one => one.textContent);
        const at = d => Number(d.match(/^M([\\d.]+)/)[1]), curve = section.querySelector("polyline");
        const [first, last] = curve.getAttribute("points").split(" ").map(one => Number(one.split(",")[0]))
          .filter((one, i, all) => i === 0 || i === all.length - 1);
        const drawn = at(section.querySelector("path.published").getAttribute("d"));
        found.share = (drawn - first) / (last - first);
        const axis = [...section.querySelectorAll(".controls select")].at(-1);
        axis.value = "iterations";
        axis.dispatchEvent(new Event("change"));
        found.elsewhere = said().length;
        """,
    )
    assert found["said"] == ["published: 20 rounds (Simulation I)"]
    assert found["share"] == pytest.approx(20 / 40, abs=0.01)
    assert found["elsewhere"] == 0


def test_claims_are_filtered_searched_and_sorted(report):
    found = observed(
        report,
        """
        const ids = () => all("#claims-table tr[id]").filter(one => !one.hidden).map(one => one.id);
        const input = document.querySelector(".filters input"), verdict = all(".filters select")[1];
        const choose = (one, value, name) => { one.value = value; one.dispatchEvent(new Event(name)); };
        choose(verdict, "fails", "change");
        found.fails = [ids(), byId("count").textContent];
        found.headings = all("#claims-table .says").filter(seen).length;
        choose(verdict, "", "change");
        choose(input, "gamma says", "input");
        found.searched = ids();
        found.command = byId("fedht.gamma").querySelector("code").textContent;
        location.hash = "#fedht.alpha";
        await wait(100);
        found.linked = [ids().length, Math.round(byId("fedht.alpha").getBoundingClientRect().top) >= 30];
        choose(input, "says", "input");
        const heads = all("#claims-table th"), published = heads[4];
        published.querySelector("button").click();
        found.rising = [ids(), published.getAttribute("aria-sort")];
        published.querySelector("button").click();
        found.falling = [ids(), published.getAttribute("aria-sort")];
        """,
    )
    assert found["fails"] == [
        ["fedht.rate.own.mean", "fedht.rate.common.sum", "fedht.alpha"],
        "3 of 6 claims",
    ]
    assert found["headings"] == 2
    assert found["searched"] == ["fedht.gamma"]
    assert found["command"] == "replifed make fedht.gamma --cores 2"
    assert found["linked"] == [6, True]
    assert found["rising"] == [["fedht.alpha", "fedht.beta", "fedht.gamma"], "ascending"]
    assert found["falling"] == [["fedht.gamma", "fedht.beta", "fedht.alpha"], "descending"]


def test_main_claims_are_drawn_by_settings_and_lead_to_their_claims(report):
    found = observed(
        report,
        """
        const section = byId("fedht-main"), shown = () => all("svg[role=img]").filter(seen);
        const table = section.nextElementSibling, picture = table.querySelector("tr + .by-settings details");
        found.cells = [...table.querySelector("tbody tr").cells].map(one => one.textContent.trim());
        found.summary = picture.querySelector("summary").textContent;
        found.said = picture.querySelector("svg").getAttribute("aria-label");
        found.dots = picture.querySelectorAll("svg circle").length;
        found.open = seen(picture.querySelector("svg"));
        table.querySelector("a").click();
        await wait(50);
        found.target = location.hash;
        """,
    )
    assert found["cells"] == [
        *("≈ conditional (against the text)", "It is faster. Abstract claims"),
        *("not stated", "fails"),
        'it holds in other settings, which replace "loss: mean" and were not fitted on it; its orders are '
        "corrected for the number of settings; it holds in 1 of 2 other settings, not in loss: sum; "
        "step: common",
        "published 0.5, measured 0.5 [0.4366, 0.5634] (rate: factor by which the error shrinks in a round)",
    ]
    assert found["summary"].startswith("It hangs on the settings") and found["open"]
    assert found["said"].startswith("It is faster. In 3 settings: loss: mean; step: own fails")
    assert found["dots"] == 3 + 6 + 2  # of settings, of their axes, of the legend
    assert found["target"] == "#fedht.rate.own.sum"


def test_nothing_is_cut_off_at_any_width(report):
    # Narrower than a browser's window may be: the page is looked at in frames.
    frames = (
        f'<iframe src="report.html" width="{width}" height="900"></iframe>' for width in (400, 800, 1400)
    )
    script = """<script>
        addEventListener("load", () => {
          const cut = [...document.querySelectorAll("iframe")].map(frame => {
            const inside = frame.contentDocument, root = inside.documentElement;
            inside.querySelectorAll("details").forEach(one => { one.open = true; });
            const out = [...inside.querySelectorAll("main *, header *")].filter(one =>
              !one.closest(".wide, .skip, svg") && one.getBoundingClientRect().right > root.clientWidth + 1);
            return [root.scrollWidth > root.clientWidth, ...out.map(one => one.outerHTML.slice(0, 80))];
          });
          document.title = JSON.stringify(cut);
        });</script>"""
    (report / "frames.html").write_text("".join(frames) + script)
    words = ["--allow-file-access-from-files", "--virtual-time-budget=3000", "--dump-dom"]
    dumped = chromium(report, *words, page="frames.html")
    assert re.search(r"<title>(.*?)</title>", dumped)[1] == "[[false],[false],[false]]"


def test_the_keyboard_reaches_the_content_and_folded_links_open(report):
    found = observed(
        report,
        """
        const main = document.querySelector("main");
        const stops = all("a[href], button, input, select, summary, [tabindex='0']").filter(seen);
        const before = one => main.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING;
        found.before = stops.filter(before).length;
        found.first = stops[0].getAttribute("href");
        found.ordered = all("[tabindex]").every(one => one.tabIndex <= 0);
        found.hidden = byId("fedht-bias").checkVisibility();
        location.hash = "#fedht-bias";
        await wait(100);
        found.opened = byId("fedht-bias").checkVisibility();
        found.run = all("#run-facts dt").map(one => one.textContent);
        const named = one => one.getAttribute("alt") || one.getAttribute("aria-label");
        found.named = all("img, svg[role=img]").every(named);
        """,
    )
    assert found["first"] == "#content"
    assert found["before"] < 10
    assert found["ordered"] and found["named"]
    assert (found["hidden"], found["opened"]) == (False, True)
    assert found["run"][0] == "Commit"


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext reads what was printed")
def test_what_is_published_and_measured_is_printed(report):
    printed = report / "printed.pdf"
    chromium(report, f"--print-to-pdf={printed}", "--no-pdf-header-footer", page="report.html")
    text = subprocess.run(
        ["pdftotext", "-layout", str(printed), "-"], capture_output=True, text=True, check=True
    ).stdout
    for words in ("Published", "Measured", "0.1 ± 0.1", "0.91", "a scale is not stated"):
        assert words in text
    assert text.count("The rate is 0.1, as alpha says.") == 2  # with its number, and under its cause
    assert "Skip to the content" not in text


def test_a_paper_alone_hides_what_is_of_others(report):
    script = """
        const rows = all("[data-paper]").filter(one => one.dataset.paper !== "fedht");
        found.alone = [document.body.className, all(".cards, .alone").some(seen), rows.some(seen)];
        found.shown = seen(byId("fedht-fig1"));
        """
    text = (report / "report.html").read_text()
    other = (
        '<section class="paper" data-paper="fedac"><h2>FedAc</h2></section><p data-paper="fedac">of it</p>'
    )
    (report / "report.html").write_text(text.replace("</main>", f"{other}</main>", 1))
    try:
        found = observed(report, script, query="?paper=fedht")
        whole = observed(report, script)
    finally:
        (report / "report.html").write_text(text)
    assert found == {"alone": ["one-paper", False, False], "shown": True}
    assert whole == {"alone": ["", True, True], "shown": True}


def test_without_scripts_all_is_there(report):
    text = (report / "report.html").read_text()
    without = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    (report / "plain.html").write_text(without)
    dumped = chromium(report, "--dump-dom", page="plain.html")
    assert '<div class="filters" role="search" hidden' in dumped  # of no use
    assert '<button type="button" data-draw="fedht-fig1" aria-pressed="false" hidden' in dumped
    assert "figures/fedht/fig1.png" in dumped and "The rate is 0.1, as alpha says." in dumped


def test_sizes(report):
    assert (report / "report.html").stat().st_size < 100_000
    assert (report / "report_curves.js").stat().st_size < 100_000
