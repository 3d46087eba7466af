// What the page does beyond showing: filters and sorts claims, draws curves, opens what is linked or printed.
"use strict";
const byId = id => document.getElementById(id);

// --- Claims ---
const table = byId("claims-table");
if (table) {
  // A group of claims on one quantity: its heading, then a row for each of its settings.
  const groups = [...table.tBodies], rows = [...table.querySelectorAll("tbody tr[id]")];
  const filters = [...document.querySelectorAll(".filters select")], words = document.querySelector(".filters input");
  // Beside each claim the command that measures it again: written here, since a page would be long with all of them.
  const command = table.dataset.command ?? "";
  for (const row of command.includes("{}") ? rows : []) row.cells[1].querySelector(":scope > code").textContent = command.replace("{}", row.id);
  // A cell's own text, without notes and commands.
  const text = (row, column) => row.cells[column].firstChild?.textContent.trim() ?? "";
  const fits = (row, { value, dataset }) => {
    const found = dataset.of ? row.parentElement.dataset[dataset.of] : text(row, dataset.column).replace(/^[✓≈✗?–] /, "");
    return !value || found === value;
  };
  const filter = () => {
    const asked = words.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const group of groups) {
      const of = [...group.querySelectorAll("a[href^='#']")].map(one => byId(one.hash.slice(1))).filter(one => one.matches("li"));
      const heading = [group.rows[0], ...of].map(one => one.textContent).join(" ").toLowerCase();
      let shown = 0;
      for (const row of [...group.rows].slice(1)) {
        const all = `${heading} ${row.textContent.toLowerCase()} ${row.querySelector("td:last-child a")?.hash}`;
        row.hidden = !(filters.every(one => fits(row, one)) && asked.every(word => all.includes(word)));
        shown += !row.hidden;
      }
      group.hidden = !shown;
      count += shown;
    }
    byId("count").textContent = `${count} of ${rows.length} claims`;
  };
  filters.forEach(one => one.addEventListener("change", filter));
  words.addEventListener("input", filter);
  document.querySelector(".filters").hidden = false;

  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const compare = (a, b) => {
        const [first, second] = [text(a, column), text(b, column)];
        if (!first || !second) return !first - !second;  // what is empty comes last
        const difference = parseFloat(first) - parseFloat(second);
        return (Number.isNaN(difference) ? first.localeCompare(second, "en") : difference) * (falling ? -1 : 1);
      };
      for (const group of groups) group.append(...[...group.rows].slice(1).sort(compare));
      table.append(...[...groups].sort((a, b) => compare(a.rows[1], b.rows[1])));
    });
  });

  const search = text => {
    filters.forEach(one => { one.value = ""; });
    words.value = text;
    filter();
  };
  document.addEventListener("click", event => {
    const link = event.target.closest("a[data-search]");
    if (link) search(link.dataset.search);
  });
  // A link to a claim that a filter hides shows it again; `reveal` then goes there.
  addEventListener("hashchange", () => {
    const row = byId(decodeURIComponent(location.hash.slice(1)));
    if (row && row.hidden) search("");
  });
}

// --- What is folded ---
function reveal() {
  const target = byId(decodeURIComponent(location.hash.slice(1)));
  for (let one = target && target.closest("details:not([open])"); one; one = one.parentElement.closest("details:not([open])")) {
    one.open = true;
  }
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();
addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach(one => { one.open = true; }));

// --- One paper alone, as `?paper=NAME` asks ---
document.querySelectorAll(".alone").forEach(one => { one.hidden = false; });
const alone = new URLSearchParams(location.search).get("paper");
if (alone && document.querySelector(`section.paper[data-paper="${CSS.escape(alone)}"]`)) {
  document.querySelectorAll("[data-paper]").forEach(one => { one.classList.toggle("away", one.dataset.paper !== alone); });
  document.body.classList.add("one-paper");
  document.querySelectorAll(".all, .alone").forEach(one => { one.classList.add("away"); });
}

// --- Curves ---
let loading = null;
// From `report/page.py`: JSON, deflated, as base64.
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), one => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}
function curveData() {
  if (window.replifedCurves) return loading ??= unpacked(window.replifedCurves);
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = document.body.dataset.curves;
    script.onload = () => resolve(unpacked(window.replifedCurves));
    script.onerror = () => reject(new Error(`${script.src} is not beside the page`));
    document.head.append(script);
  });
  return loading;
}
document.querySelectorAll("button[data-draw]").forEach(button => {
  const figure = byId(button.dataset.draw).querySelector("figure"), picture = figure.querySelector("img");
  let drawn = null;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      const data = await curveData();
      if (!drawn) {
        drawn = document.createElement("div");
        picture.after(drawn);
        drawCurves(drawn, data[button.dataset.draw]);
        drawn.hidden = true;
      }
      drawn.hidden = !drawn.hidden;
      picture.hidden = !drawn.hidden;
      button.setAttribute("aria-pressed", !drawn.hidden);
    } catch (error) {
      button.replaceWith(error.message);
    }
  });
});

// --- The run ---
if (window.replifedRun) {
  byId("run-facts").replaceChildren(...Object.entries(window.replifedRun).flatMap(entry => entry.map((words, place) => {
    const made = document.createElement(place ? "dd" : "dt");
    made.textContent = words;
    return made;
  })));
}
