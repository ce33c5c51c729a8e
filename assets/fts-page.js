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
