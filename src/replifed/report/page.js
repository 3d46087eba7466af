// What the page does beyond showing: filters and sorts claims, draws curves, opens what is linked or printed.
"use strict";
const byId = id => document.getElementById(id);

// --- Claims ---
const table = byId("claims-table");
if (table) {
  const body = table.tBodies[0], rows = [...body.rows];
  const filters = [...document.querySelectorAll(".filters select")], words = document.querySelector(".filters input");
  const text = (row, column) => row.cells[column].textContent.trim();
  // A filter asks for the whole of a cell, that of papers for the beginning of the artefact.
  const fits = (row, filter) => {
    const value = filter.value, found = text(row, filter.dataset.column).replace(/^[✓≈✗?–] /, "");
    return !value || found === value || (filter.name === "paper" && found.startsWith(`${value}/`));
  };
  const filter = () => {
    const asked = words.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const row of rows) {
      const all = row.textContent.toLowerCase();
      row.hidden = !(filters.every(one => fits(row, one)) && asked.every(word => all.includes(word)));
      count += !row.hidden;
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
      body.append(...[...rows].sort(compare));
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

// --- Curves ---
let loading = null;
function curveData() {
  if (window.replifedCurves) return Promise.resolve(window.replifedCurves);
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = document.body.dataset.curves;
    script.onload = () => resolve(window.replifedCurves);
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
