// "Run this cell": the chapter's live cells with a button each. They run in order in one Python, which is loaded on the
// first click; what a cell prints stands where the built page's output stood, and edits are kept until they are reset.
(() => {
  "use strict";
  const STAGES = {
    load: "Loading Python",
    runtime: "Starting Python",
    packages: "Unpacking packages",
    import: "Importing fts",
    run: "Running",
  };
  const cells = [];
  let current = null;

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /** A reader's edits outlive the visit where the browser keeps them. */
  const kept = {
    key: (cell) => `fts-live:${location.pathname.split("/").pop()}:${cell.index}`,
    get: (cell) => attempt(() => localStorage.getItem(kept.key(cell))),
    set: (cell, text) => attempt(() => localStorage.setItem(kept.key(cell), text)),
    drop: (cell) => attempt(() => localStorage.removeItem(kept.key(cell))),
  };

  function attempt(action) {
    try {
      return action();
    } catch {
      return null;
    }
  }

  class Cell {
    constructor(element, index) {
      Object.assign(this, { element, index, done: false });
      this.pre = element.querySelector(".cell_input pre");
      this.built = this.pre.textContent.replace(/\n$/, "");
      this.builtOutput = element.querySelector(".cell_output");
      this.editor = make("textarea", { "aria-label": `Code of cell ${index + 1}`, spellcheck: "false", hidden: "" });
      this.runButton = make("button", { type: "button" }, "Run this cell");
      this.editButton = make("button", { type: "button" }, "Edit");
      this.resetButton = make("button", { type: "button", hidden: "" }, "Reset");
      this.status = make("span", { role: "status", class: "fts-soft" });
      this.output = make("div", { class: "fts-cell-output", hidden: "" });
      const bar = make("div", { class: "fts-row fts-cell-bar" });
      bar.append(this.runButton, this.editButton, this.resetButton, this.status);
      this.box = make("div", { class: "fts-explorer fts-live fts-cell-live" }, this.editor, bar, this.output);
      (this.builtOutput ?? element.lastElementChild).before(this.box);
      if (!this.builtOutput) element.append(this.box);
      this.runButton.onclick = () => run(this);
      this.editButton.onclick = () => this.edit();
      this.resetButton.onclick = () => this.reset();
      this.editor.oninput = () => {
        kept.set(this, this.editor.value);
        this.done = false;
      };
      const edited = kept.get(this);
      if (edited !== null) this.edit(edited);
    }

    get code() {
      return this.editor.hidden ? this.built : this.editor.value;
    }

    edit(text = this.built) {
      this.editor.value = text;
      this.editor.rows = text.split("\n").length + 1;
      this.editor.hidden = false;
      this.pre.closest(".cell_input").hidden = true;
      this.editButton.hidden = true;
      this.resetButton.hidden = false;
    }

    reset() {
      kept.drop(this);
      this.done = false;
      this.editor.hidden = this.resetButton.hidden = true;
      this.editButton.hidden = false;
      this.pre.closest(".cell_input").hidden = false;
      this.output.hidden = true;
      if (this.builtOutput) this.builtOutput.hidden = false;
      this.status.textContent = "";
    }

    show(shown) {
      this.output.replaceChildren();
      for (const { text, png, error } of shown) {
        if (text) this.output.append(make("pre", {}, text.replace(/\n$/, "")));
        if (png)
          this.output.append(make("img", { src: `data:image/png;base64,${png}`, alt: "Figure drawn by this cell" }));
        if (error) this.output.append(make("pre", { class: "fts-bad" }, error));
      }
      this.output.hidden = !shown.length;
      if (this.builtOutput) this.builtOutput.hidden = true;
      this.resetButton.hidden = false;
    }
  }

  /** The cells up to this one that have not run yet, then this one. */
  async function run(last) {
    for (const { runButton } of cells) runButton.disabled = true;
    try {
      await ftsLive.withChapter(pageName());
      for (const cell of cells.slice(0, last.index + 1)) {
        if (cell.done && cell !== last) continue;
        current = cell;
        cell.status.textContent = "Running";
        const began = performance.now();
        const { shown } = await ftsLive.ask("run", { code: cell.code });
        cell.show(shown);
        cell.done = !shown.some(({ error }) => error);
        cell.status.textContent = `${((performance.now() - began) / 1000).toFixed(1)} s`;
        cell.element.dataset.live = cell.done ? "done" : "failed";
        // What comes after was computed from what this cell has made anew.
        for (const later of cells.slice(cell.index + 1)) later.done = false;
        if (!cell.done) break;
      }
    } catch (error) {
      (current ?? last).status.textContent = error.message;
      last.element.dataset.live = "failed";
    }
    current = null;
    for (const { runButton } of cells) runButton.disabled = false;
  }

  const pageName = () =>
    location.pathname
      .split("/")
      .pop()
      .replace(/\.html$/, "");

  function start() {
    // The explorers', where there are some.
    if (!document.querySelector("style[data-fts]"))
      document.head.append(make("style", { "data-fts": "" }, ftsParts.STYLE));
    for (const element of document.querySelectorAll(".bd-article .cell")) {
      if (!element.querySelector(".cell_input pre")) continue;
      if (element.classList.contains("tag_live")) cells.push(new Cell(element, cells.length));
      else if (!element.matches(".tag_hide-input, .tag_checked"))
        element.append(
          make("p", { class: "fts-cell-note" }, "Runs in a notebook: it needs what this page does not carry."),
        );
    }
    ftsLive.listen((progress) => {
      const cell = current ?? cells.find(({ runButton }) => runButton.disabled);
      if (!cell) return;
      const more = progress.megabytes ? ` (${progress.megabytes.toFixed(0)} MB, once per visit)` : "";
      const steps = progress.steps ? `, step ${progress.steps}` : "";
      cell.status.textContent = `${STAGES[progress.stage] ?? progress.stage}${more}${steps}`;
    });
    ftsLive.available().then((contents) => {
      if (contents) return;
      for (const { runButton, status } of cells) {
        runButton.disabled = true;
        status.textContent = "This copy of the book was built without Python: make live, then make book.";
      }
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
