// What all explorers share: labelled controls bound to the model, reset, progress, result, redraw on resize.

import { ask } from "./engine.js";
import { sharedState, shareState } from "./share.js";
import { STYLE } from "./style.js";

// Milliseconds between two steps of a slider that plays.
const PACE = 180;

/** Builds an explorer into `el`; `view` is {question(frame), draw(frame, answer)}, or answers itself with `answer(frame)`. */
export class Frame {
  constructor(model, el, { sources, references }, view, inPage) {
    Object.assign(this, { model, el, sources, references, view, inPage });
    this.controls = model.get("controls");
    this.asker = `${model.get("key")} ${Math.random()}`;
    this.build();
    this.begin = Object.fromEntries(this.allControls().map(({ name }) => [name, model.get(name)]));
    if (inPage) this.readAddress();
    for (const { name } of this.allControls()) model.on(`change:${name}`, () => this.changed());
    let width = 0;
    this.observer = new ResizeObserver(([entry]) => {
      if (Math.abs(entry.contentRect.width - width) < 2) return;
      width = entry.contentRect.width;
      if (this.last) this.draw();
    });
    this.observer.observe(this.figure);
    this.changed();
  }

  get source() {
    return this.sources[Math.min(this.model.get("choice"), this.sources.length - 1)];
  }

  get info() {
    return this.source.get("info");
  }

  /** The truth and the samples laid beside the chosen field, or nothing. */
  get reference() {
    return this.references[this.sources.indexOf(this.source)] ?? null;
  }

  /** Lowest and highest value of a control for the chosen field. */
  range({ name, low, high }) {
    return (
      this.model.get("limits")[this.sources.indexOf(this.source)]?.[name] ?? [low ?? 0, high ?? this.sources.length - 1]
    );
  }

  /** The paper's values for the chosen field. */
  get paper() {
    return this.model.get("papers")[this.sources.indexOf(this.source)];
  }

  get width() {
    return Math.max(280, Math.floor(this.figure.getBoundingClientRect().width));
  }

  value(name) {
    return this.model.get(name);
  }

  /** Set traits as a reader's hand would: model, address, picture. */
  set(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  allControls() {
    return [{ name: "choice" }, ...this.controls];
  }

  changed() {
    this.showValues();
    if (this.inPage) this.writeAddress();
    if (this.scheduled) return;
    this.scheduled = true;
    // One frame later: a drag that moves several traits asks once.
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.update();
    });
  }

  async update() {
    if (this.view.answer) {
      const began = performance.now();
      this.last = this.view.answer(this);
      await this.draw();
      this.root.dataset.milliseconds = (performance.now() - began).toFixed(1);
      return this.root.setAttribute("aria-busy", "false");
    }
    const { task, question } = this.view.question(this);
    this.root.setAttribute("aria-busy", "true");
    const first = this.last ? null : this.firstAnswer();
    if (first) {
      this.last = first;
      await this.draw();
      this.root.dataset.first = performance.now().toFixed(0);
    }
    // Only what takes long shows: a bar that flickers at every step tells nothing.
    const patience = setTimeout(() => this.progress(null), 150);
    try {
      const answer = await ask(this.asker, this.source, task, question, (fraction) => this.progress(fraction));
      if (!answer) return clearTimeout(patience);
      this.last = answer;
      await this.draw();
      this.root.dataset.milliseconds = answer.milliseconds.toFixed(1);
    } catch (error) {
      this.say(`<span class="fts-bad">${error.message}</span>`, "");
    }
    clearTimeout(patience);
    this.progress(1);
    this.root.setAttribute("aria-busy", "false");
  }

  /** What Python answered at the values the explorer opens with: it stands while the page computes the same. */
  firstAnswer() {
    const first = this.model.get("first");
    if (!first || !Object.keys(first).length) return null;
    return this.allControls().every(({ name }) => this.value(name) === this.begin[name]) ? first : null;
  }

  /** Ends when everything is in the page: some views ask for a picture first. */
  async draw() {
    await this.view.draw(this, this.last);
  }

  /** Announce the result; `equation` is its plain text. */
  say(html, equation) {
    this.result.innerHTML = html;
    this.root.dataset.equation = equation;
  }

  /** A fraction of the weak systems; null while the field itself is being prepared. */
  progress(fraction) {
    if (fraction === null) this.bar.removeAttribute("value");
    else this.bar.value = fraction;
    this.bar.style.visibility = fraction === 1 ? "hidden" : "visible";
  }

  build() {
    addStyle(this.el);
    this.root = make("section", {
      class: "fts-explorer",
      "aria-label": this.model.get("heading"),
      "data-view": this.model.get("view"),
      "data-key": this.model.get("key"),
      id: `fts-${this.model.get("key")}`,
    });
    const head = make("div", { class: "fts-head" }, make("strong", {}, this.model.get("heading")));
    if (this.sources.length > 1) head.append(this.chooser());
    this.resetButton = make(
      "button",
      { type: "button", class: "fts-reset" },
      this.view.resetLabel ?? "Reset to the paper's values",
    );
    this.resetButton.onclick = () => this.set(this.paper);
    const grid = make("div", { class: "fts-controls" });
    if (this.controls.length === 1) grid.style.gridTemplateColumns = "1fr";
    this.inputs = new Map();
    for (const control of this.controls)
      grid.append(
        control.options ? this.options(control) : control.button ? this.drawing(control) : this.slider(control),
      );
    this.bar = make("progress", { max: 1, value: 0, "aria-label": "weak systems computed" });
    this.figure = make("div", { class: "fts-figure" });
    this.result = make("div", { class: "fts-result", "aria-live": "polite", role: "status" });
    this.readout = make("div", { class: "fts-readout fts-soft", "aria-hidden": "true" });
    head.append(this.resetButton);
    this.body = make("div", { class: "fts-body" }, head, grid, this.bar, this.result, this.figure, this.readout);
    this.root.append(this.body);
    // What is under the pointer says its value; a mark says it itself, a picture through its view.
    this.figure.addEventListener(
      "pointermove",
      (event) =>
        (this.readout.textContent =
          event.target.closest("[data-tip]")?.dataset.tip ?? this.view.hover?.(this, event) ?? ""),
    );
    this.figure.addEventListener("pointerleave", () => (this.readout.textContent = ""));
    // A notebook would take the arrow keys for itself: JupyterLab listens before any element hears them.
    this.root.setAttribute("data-lm-suppress-shortcuts", "true");
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    this.el.replaceChildren(this.root);
  }

  chooser() {
    const select = make("select", { "aria-label": this.view.choiceLabel ?? "Frozen field" });
    this.sources.forEach((source, i) => select.append(make("option", { value: i }, source.get("info").label)));
    select.onchange = () => {
      // What the paper sets differently for the new field follows it; the rest stays where the reader put it.
      const choice = Number(select.value),
        old = this.paper,
        next = this.model.get("papers")[choice];
      const values = Object.fromEntries(Object.entries(next).filter(([name, value]) => old[name] !== value));
      for (const [name, [low, high]] of Object.entries(this.model.get("limits")[choice]))
        values[name] = Math.min(Math.max(values[name] ?? this.value(name), low), high);
      this.set({ choice, ...values });
    };
    this.select = select;
    return select;
  }

  slider(control) {
    const id = `${this.root.id}-${control.name}`;
    const { to } = steps(control);
    const input = make("input", { type: "range", id, min: to(control.low), max: to(control.high), step: control.step });
    const output = make("output", { for: id });
    input.oninput = () => this.set({ [control.name]: steps(control).from(Number(input.value)) });
    const row = make(
      "div",
      { class: "fts-control", "data-control": control.name },
      make("label", { for: id }, control.label),
      output,
      input,
    );
    if (control.play) row.append(this.player(control, input));
    this.inputs.set(control.name, { input, output, control, row });
    return row;
  }

  /** Two buttons: one moves the slider from step to step by itself, from its beginning where it stands at the end. */
  player(control, input) {
    const play = make("button", { type: "button" }, "▶ Play"),
      next = make("button", { type: "button" }, "Step");
    const high = () => this.range(control)[1],
      last = () => this.value(control.name) >= high();
    const move = () => {
      const value = this.value(control.name) + (control.stride ?? control.step);
      this.set({ [control.name]: Math.min(high(), Number(value.toPrecision(12))) });
    };
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "▶ Play";
    };
    play.onclick = () => {
      if (timer) return stop();
      if (last()) this.set({ [control.name]: this.range(control)[0] });
      play.textContent = "❚❚ Pause";
      timer = setInterval(() => (last() || !this.root.isConnected ? stop() : move()), control.pace ?? PACE);
    };
    next.onclick = () => {
      stop();
      if (!last()) move();
    };
    input.addEventListener("pointerdown", stop);
    return make("div", { class: "fts-player" }, play, next);
  }

  /** A button that takes the next of a fixed row of draws. */
  drawing(control) {
    const output = make("output"),
      input = make("button", { type: "button" }, control.button),
      { low, high } = control;
    input.onclick = () => this.set({ [control.name]: low + ((this.value(control.name) - low + 1) % (high - low + 1)) });
    const row = make(
      "div",
      { class: "fts-control", "data-control": control.name },
      make("span", {}, control.label),
      output,
      input,
    );
    this.inputs.set(control.name, { input, output, control, row });
    return row;
  }

  options(control) {
    const id = `${this.root.id}-${control.name}`;
    const input = make("select", { id });
    control.options.forEach((option) => input.append(make("option", { value: option }, option)));
    input.onchange = () => this.set({ [control.name]: input.value });
    const row = make(
      "div",
      { class: "fts-control", "data-control": control.name },
      make("label", { for: id }, control.label),
      make("output"),
      input,
    );
    this.inputs.set(control.name, { input, output: null, control, row });
    return row;
  }

  showValues() {
    if (this.select) this.select.value = this.model.get("choice");
    for (const { input, output, control, row } of this.inputs.values()) {
      const value = this.value(control.name);
      row.hidden = Boolean(control.dimension) && this.info.dimension < control.dimension;
      if (!output) {
        input.value = value;
        continue;
      }
      if (control.button) {
        output.textContent = `draw ${value - control.low + 1} of ${control.high - control.low + 1}`;
        continue;
      }
      const [low, high] = this.range(control);
      [input.min, input.max] = [steps(control).to(low), steps(control).to(high)];
      input.value = steps(control).to(value);
      output.textContent =
        this.view.shown?.(this, control.name, value) ?? String(control.integer ? value : Number(value.toPrecision(3)));
      input.setAttribute("aria-valuetext", output.textContent);
    }
    this.resetButton.disabled = Object.entries(this.paper).every(([name, value]) => this.value(name) === value);
  }

  readAddress() {
    const given = sharedState(this.model.get("key"));
    for (const control of this.allControls()) {
      const { name, integer, options } = control;
      if (!(name in given)) continue;
      // The field comes first: the others' ranges are its own.
      const value = options ? given[name] : Number(given[name]),
        [low, high] = this.range(control),
        whole = integer || name === "choice";
      const fits = options
        ? options.includes(value)
        : given[name] !== "" &&
          (whole ? Number.isInteger(value) : Number.isFinite(value)) &&
          value >= low &&
          value <= high;
      if (fits)
        this.set(
          name === "choice" && value !== this.begin.choice
            ? { ...this.model.get("papers")[value], choice: value }
            : { [name]: value },
        );
    }
  }

  writeAddress() {
    const changed = {},
      usual = this.value("choice") === this.begin.choice ? this.begin : { ...this.paper, choice: this.begin.choice };
    for (const { name } of this.allControls()) if (this.value(name) !== usual[name]) changed[name] = this.value(name);
    const text = JSON.stringify(changed);
    if (text === (this.written ?? "{}")) return;
    this.written = text;
    // Browsers allow an address to change a few times per second, not at every step of a drag.
    clearTimeout(this.addressing);
    this.addressing = setTimeout(() => shareState(this.model.get("key"), changed), 200);
  }
}

/** Slider position of a value and back: linear, or in powers of the control's base. */
function steps({ base, integer }) {
  if (!base) return { to: (v) => v, from: (p) => (integer ? Math.round(p) : Number(p.toPrecision(12))) };
  return { to: (v) => Math.log(v) / Math.log(base), from: (p) => Number((base ** p).toPrecision(12)) };
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function addStyle(el) {
  const home = el.getRootNode() === document || !el.isConnected ? document.head : el.getRootNode();
  if (home.querySelector("style[data-fts]")) return;
  home.append(make("style", { "data-fts": "" }, STYLE));
}
