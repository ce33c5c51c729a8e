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
  const RUN = "Run this cell";
  const STOPPED = "Stopped. The next run loads Python anew and begins with the first cell.";
  const cells = [];
  let asked = null; // the cell whose button was pressed, until it has run

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
      Object.assign(this, { element, index, done: false, clock: null });
      this.pre = element.querySelector(".cell_input pre");
      this.built = this.pre.textContent.replace(/\n$/, "");
      this.builtOutput = element.querySelector(".cell_output");
      this.editor = make("textarea", { "aria-label": `Code of cell ${index + 1}`, spellcheck: "false", hidden: "" });
      this.runButton = make("button", { type: "button" }, RUN);
      this.editButton = make("button", { type: "button" }, "Edit");
      this.resetButton = make("button", { type: "button", hidden: "" }, "Reset");
      this.status = make("span", { role: "status", class: "fts-soft" });
      this.output = make("div", { class: "fts-cell-output", hidden: "" });
      const bar = make("div", { class: "fts-row fts-cell-bar" });
      bar.append(this.runButton, this.editButton, this.resetButton, this.status);
      this.box = make("div", { class: "fts-explorer fts-live fts-cell-live" }, this.editor, bar, this.output);
      (this.builtOutput ?? element.lastElementChild).before(this.box);
      if (!this.builtOutput) element.append(this.box);
      // The button that starts a cell also stops it, so that the keyboard stays where it is.
      this.runButton.onclick = () => (asked ? stop() : run(this));
      this.editButton.onclick = () => this.edit();
      this.resetButton.onclick = () => this.reset();
      this.editor.oninput = () => {
        kept.set(this, this.editor.value);
        this.done = false;
      };
      this.editor.onkeydown = (event) => {
        if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (!asked) run(this);
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

    /** What is being done, with the seconds since the click, or what came of it. */
    say(text, ended = false) {
      if (ended) {
        clearInterval(this.clock);
        this.clock = null;
        this.status.textContent = text;
        return;
      }
      if (!this.clock) {
        const began = performance.now();
        this.seconds = make("span", { "aria-hidden": "true" });
        this.clock = setInterval(() => {
          this.seconds.textContent = ` – ${Math.round((performance.now() - began) / 1000)} s`;
        }, 1000);
      }
      this.status.replaceChildren(text, this.seconds);
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
    asked = last;
    for (const { runButton } of cells) runButton.disabled = runButton !== last.runButton;
    last.runButton.textContent = "Stop";
    last.say(STAGES.load);
    let current = last;
    try {
      await ftsLive.withChapter(pageName());
      for (const cell of cells.slice(0, last.index + 1)) {
        if (cell.done && cell !== last) continue;
        current = cell;
        if (cell !== last) last.say(`Running cell ${cell.index + 1} of ${last.index + 1}`);
        cell.say(STAGES.run);
        const began = performance.now();
        const { shown } = await ftsLive.ask("run", { code: cell.code });
        cell.show(shown);
        cell.done = !shown.some(({ error }) => error);
        cell.say(`${((performance.now() - began) / 1000).toFixed(1)} s`, true);
        cell.element.dataset.live = cell.done ? "done" : "failed";
        // What comes after was computed from what this cell has made anew.
        for (const later of cells.slice(cell.index + 1)) later.done = false;
        if (!cell.done) break;
      }
      if (!current.done && current !== last) last.say(`Cell ${current.index + 1} above ended in an error.`, true);
    } catch (error) {
      for (const cell of new Set([current, last])) {
        cell.say(error instanceof ftsLive.Stopped ? STOPPED : error.message, true);
        cell.element.dataset.live = "failed";
      }
    }
    asked = null;
    last.runButton.textContent = RUN;
    for (const { runButton } of cells) runButton.disabled = false;
  }

  /** End what runs; what cells have made ends with it. */
  function stop() {
    ftsLive.stop();
    for (const cell of cells) cell.done = false;
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
          make(
            "p",
            { class: "fts-cell-note" },
            "Runs in a notebook: it needs packages, records or time that a page lacks, or digits that differ by machine.",
          ),
        );
    }
    ftsLive.listen((progress) => {
      if (!asked || progress.stage === "run") return;
      const more = progress.megabytes ? ` (${progress.megabytes.toFixed(0)} MB, once per visit)` : "";
      const steps = progress.steps ? `, step ${progress.steps}` : "";
      asked.say(`${STAGES[progress.stage] ?? progress.stage}${more}${steps}`);
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
