// What the theme's buttons do. It calls functions from attributes, which the pages' policy does not run
// (book/_ext/content_policy.py): the build has put their names into `data-call`.
document.addEventListener("click", ({ target }) => {
  const name = target.closest?.("[data-call]")?.dataset.call;
  if (name === "print") window.print();
  else if (name === "toggleFullScreen") globalThis.toggleFullScreen();
});

// Tables that are wider than the column are shown row by row: each value below the heading of its column.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const tables = [...document.querySelectorAll(".bd-article table.table")];
  const fit = () => {
    for (const table of tables) {
      table.classList.remove("fts-stacked");
      if (table.scrollWidth > table.parentElement.clientWidth + 1) stack(table);
    }
  };
  fit();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) fit();
    width = innerWidth;
  });
});

// On a phone a figure is as wide as the screen; a tap shows it as large as it was drawn, to be moved sideways.
document.addEventListener("click", ({ target }) => {
  if (target.matches?.(".bd-article figure img")) target.closest("figure").classList.toggle("fts-large");
});

const SHORT = 120; // pixels
// A formula within a line keeps the mark that follows it: no line begins with a period.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const formula of document.querySelectorAll(".bd-article span.math")) {
    const after = formula.nextSibling,
      [mark] = (after?.nodeType === Node.TEXT_NODE && after.data.match(/^[.,;:)?!]+/)) || [];
    if (!mark || formula.offsetWidth > SHORT) continue; // a long one may have to break
    after.data = after.data.slice(mark.length);
    const kept = document.createElement("span");
    kept.className = "fts-kept";
    formula.replaceWith(kept);
    kept.append(formula, mark);
  }
});

function stack(table) {
  const headings = [...(table.tHead?.rows[0]?.cells ?? [])];
  for (const row of table.tBodies[0]?.rows ?? [])
    [...row.cells].forEach((cell, i) => {
      if (!i || !headings[i] || cell.querySelector(":scope > .fts-heading")) return;
      const heading = document.createElement("span");
      heading.className = "fts-heading";
      heading.append(...[...headings[i].childNodes].map((node) => node.cloneNode(true)));
      cell.prepend(heading);
    });
  table.classList.add("fts-stacked");
}
