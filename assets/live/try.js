// "Try your data": a file, what it means, and what the package finds in it. Everything is computed by Python in the
// worker (book/_ext/worker.py); this script asks and shows. A command line is what it asks with, and what it prints.
(() => {
  "use strict";
  const LARGEST = 16e6; // bytes; about as many samples as the worker takes
  const STAGES = {
    load: "Loading Python",
    runtime: "Starting Python",
    packages: "Unpacking packages",
    import: "Importing fts",
    read: "Reading the samples",
    fit: "Fitting the field: kernels and length scales that predict left-out samples",
    select: "Selecting terms: weak systems, drawn fields, rivals",
    integrate: "Integrating candidates and fitting them to the samples",
    draw: "Drawing",
    forward: "Carrying the equation forward",
    report: "Writing the report",
  };
  const ROLES = ["x", "y", "t", "u"];

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const megabytes = (bytes) => (bytes < 1e5 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const floats = (base64) => new Float32Array(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
  const quoted = (word) => (/^[\w.,:=+@%/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  /** An equation or a term as Python prints it, with subscripts and superscripts. */
  const written = (text) =>
    ftsParts
      .termHtml(escaped(text))
      .replace(/\b([A-Za-z][A-Za-z0-9]*)_([xyzt]+)\b/g, "<i>$1</i><sub>$2</sub>")
      .replaceAll(" - ", " − ")
      .replace("= -", "= −");

  class Page {
    constructor(root, contents) {
      this.root = root;
      this.contents = contents;
      this.file = null;
      this.run = 0;
      document.head.append(make("style", { "data-fts": "" }, ftsParts.STYLE));
      root.replaceChildren();
      root.className = "fts-explorer fts-live";
      this.build();
      ftsLive.listen((progress) => this.progress(progress));
    }

    build() {
      this.picker = make("input", { type: "file", accept: ".csv,.tsv,.txt,.dat,.gz,.npz,.mat,.nc,.fts" });
      this.drop = make(
        "label",
        { class: "fts-drop" },
        make("strong", {}, "Drop a file of samples here, or choose one"),
        make("br"),
        make(
          "span",
          { class: "fts-soft" },
          "columns x, [y,] t, u: .csv .tsv .txt .npz .mat .nc .fts; it stays on this machine",
        ),
        this.picker,
      );
      const samples = make("div", { class: "fts-samples" });
      for (const sample of this.contents.samples) {
        const button = make("button", { type: "button", "data-sample": sample.name }, sample.title);
        button.append(make("small", {}, sample.about));
        button.onclick = () => this.takeSample(sample);
        samples.append(button);
      }
      this.pasted = make("textarea", { "aria-label": "A table of samples", placeholder: "x,t,u\n0,0,0.93\n…" });
      const use = make("button", { type: "button" }, "Take this table");
      const paste = make("details", {}, make("summary", {}, "Or paste a table"), this.pasted, use);
      this.choices = make("div", { hidden: "" });
      this.command = make("p", { class: "fts-soft", hidden: "" });
      this.go = make("button", { type: "button", class: "fts-go", disabled: "" }, "Discover");
      this.cancel = make("button", { type: "button", hidden: "" }, "Cancel");
      this.bar = make("progress", { max: "1", "aria-label": "Progress" });
      this.status = make("p", { role: "status" });
      this.result = make("div", { class: "fts-live", hidden: "" });
      this.busyBox = make("div", {}, this.status, this.bar);
      this.root.append(
        make("h3", {}, "Samples"),
        this.drop,
        samples,
        paste,
        this.choices,
        make("div", { class: "fts-row" }, this.go, this.cancel),
        this.command,
        this.busyBox,
        this.result,
      );
      this.picker.onchange = () => this.picker.files[0] && this.takeFile(this.picker.files[0]);
      use.onclick = () => this.takeTable();
      this.go.onclick = () => this.discover();
      this.cancel.onclick = () => this.end();
      for (const name of ["dragover", "dragleave", "drop"])
        this.drop.addEventListener(name, (event) => {
          event.preventDefault();
          this.drop.classList.toggle("fts-over", name === "dragover");
          if (name === "drop" && event.dataTransfer.files[0]) this.takeFile(event.dataTransfer.files[0]);
        });
    }

    // What is asked -----------------------------------------------------------------------------------------------

    async takeSample(sample) {
      const run = this.begin();
      try {
        const { base64 } = await ftsLive.load(sample.path);
        if (run !== this.run) return;
        const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
        await this.takeBytes(sample.name, bytes, sample.options, true);
      } catch (error) {
        this.fail(error, run);
      }
    }

    async takeFile(file) {
      if (this.fits(file.name, file.size))
        await this.takeBytes(file.name, new Uint8Array(await file.arrayBuffer()), []);
    }

    takeTable() {
      const bytes = new TextEncoder().encode(this.pasted.value);
      return this.fits("pasted.csv", bytes.length) && this.takeBytes("pasted.csv", bytes, []);
    }

    /** Whether a file of this size is taken; otherwise the page says what takes it. */
    fits(name, size) {
      if (size <= LARGEST) return true;
      this.begin();
      this.finish();
      this.refuse(
        `fts: ${name} has ${megabytes(size)}: a page takes ${megabytes(LARGEST)}. ` +
          `In a shell there is no such bound: fts discover ${quoted(name)}`,
      );
      return false;
    }

    /** A file's bytes: looked at, and answered at once where it is a sample with its options. */
    async takeBytes(name, bytes, options, atOnce = false) {
      const run = this.begin();
      this.file = { name, bytes, options };
      try {
        await ftsLive.write(name, bytes.slice().buffer);
        const looked = await ftsLive.ask("look", { arguments: [name, ...options] });
        if (run !== this.run) return;
        this.showChoices(looked);
        this.finish();
        if (looked.refused) return this.refuse(looked.refused);
        if (atOnce) await this.discover();
      } catch (error) {
        this.fail(error, run);
      }
    }

    showChoices({ headings, samples, grid, axes, time, values, warnings }) {
      const { name, bytes, options } = this.file;
      const closed = options.find((option) => option.startsWith("x="));
      const list = make("datalist", { id: "fts-headings" });
      for (const heading of headings) list.append(make("option", { value: heading }));
      this.columns = Object.fromEntries(
        ROLES.map((role) => [role, make("input", { type: "text", placeholder: role, list: "fts-headings" })]),
      );
      this.axes = (axes ?? [{ name: "x" }, { name: "y" }]).map((axis) => {
        const [low, high] =
          closed && axis.name === "x" ? closed.slice(2).split(":") : [axis.low ?? "", axis.high ?? ""];
        const field = (value, label) =>
          make("input", { type: "text", inputmode: "decimal", value, "aria-label": label });
        const tick = make("input", { type: "checkbox" });
        tick.checked = Boolean(closed && axis.name === "x");
        return {
          name: axis.name,
          span: [String(low), String(high)],
          low: field(String(low), `${axis.name} from`),
          high: field(String(high), `${axis.name} to`),
          tick,
          closedBefore: tick.checked,
        };
      });
      this.terms = make("input", { type: "text", placeholder: "the general library, or terms: u*u_x u_xx u_xxx" });
      this.decimal = make(
        "select",
        {},
        make("option", { value: "." }, "point"),
        make("option", { value: "," }, "comma"),
      );
      this.missing = make("input", { type: "text", placeholder: "none" });
      this.others = make("input", { type: "text", placeholder: "none, or components: v=HEADING w=HEADING" });
      this.inputs = make("input", { type: "text", placeholder: "none, or headings" });
      this.target = make(
        "select",
        {},
        make("option", { value: "" }, "first derivative in time, u_t"),
        make("option", { value: "u_tt" }, "second, as of waves: u_tt"),
      );
      const labelled = (text, input, kind = "") => make("label", kind ? { class: kind } : {}, text, input);
      const known = samples
        ? `${samples.toLocaleString("en")} samples${grid ? " on a sensor × frame grid" : ", scattered"}; t from ${short(time[0])} to ${short(time[1])}, u from ${short(values[0])} to ${short(values[1])}.`
        : "";
      const again = make("button", { type: "button" }, "Look again");
      again.onclick = () => this.lookAgain();
      const columns = make("div", { class: "fts-choices" });
      for (const role of ROLES) columns.append(labelled(`column of ${role}`, this.columns[role]));
      columns.append(
        labelled("decimal sign", this.decimal),
        labelled("marks no value", this.missing),
        labelled("further components, each with an equation", this.others, "fts-long"),
        labelled("measured inputs, without one", this.inputs, "fts-long"),
        again,
      );
      const extents = make("div", { class: "fts-choices" });
      for (const axis of this.axes) {
        const periodic = make("label", { class: "fts-tick" }, axis.tick, `${axis.name} is periodic`);
        extents.append(labelled(`${axis.name} from`, axis.low), labelled("to", axis.high), periodic);
      }
      extents.append(labelled("candidate terms", this.terms, "fts-long"));
      extents.append(labelled("left-hand side", this.target, "fts-long"));
      const unusual = make("details", {}, make("summary", {}, "Which column is which"), columns, list);
      unusual.open = !samples;
      this.choices.replaceChildren(
        make("h3", {}, name),
        make("p", {}, `${megabytes(bytes.length)}. ${known}`),
        ...warnings.map((text) => make("p", { class: "fts-bad" }, text)),
        unusual,
        extents,
        make(
          "p",
          { class: "fts-soft" },
          "A period is not in the samples: where an axis closes on itself, say from where to where.",
        ),
      );
      this.choices.hidden = false;
      this.choices.oninput = () => this.showCommand();
      this.go.disabled = !samples;
      this.showCommand();
    }

    /** The options of `fts discover` that the choices stand for. */
    arguments() {
      const all = [this.file.name];
      const words = (input) => input.value.split(/[\s,]+(?![^(]*\))/).filter(Boolean);
      const columns = ROLES.filter((role) => this.columns[role].value.trim());
      const axes = this.axes.filter(
        ({ low, high, tick, span }) => tick.checked || low.value !== span[0] || high.value !== span[1],
      );
      for (const { name, low, high, tick } of axes)
        all.push("--axis", `${name}=${low.value.trim()}:${high.value.trim()}${tick.checked ? ":periodic" : ""}`);
      const named = columns.map((role) => `${role}=${this.columns[role].value.trim()}`);
      const others = words(this.others);
      if (others.length && !columns.includes("u")) named.push("u=u");
      if (named.length || others.length) all.push("--columns", ...named, ...others);
      if (words(this.inputs).length) all.push("--inputs", ...words(this.inputs));
      if (this.target.value) all.push("--target", this.target.value);
      if (this.decimal.value !== ".") all.push("--decimal", this.decimal.value);
      if (this.missing.value.trim()) all.push("--missing", ...words(this.missing));
      if (this.terms.value.trim()) all.push("--library", ...words(this.terms));
      return all;
    }

    showCommand() {
      this.command.replaceChildren(
        "The same in a shell: ",
        make("code", {}, ["fts", "discover", ...this.arguments()].map(quoted).join(" ")),
      );
      this.command.hidden = false;
    }

    /** Read the file anew with other columns, and say what it holds. */
    async lookAgain() {
      const run = this.begin();
      const inputs = () => [
        ...ROLES.map((role) => this.columns[role]),
        ...[this.decimal, this.missing, this.others, this.inputs, this.target, this.terms],
      ];
      const kept = inputs().map(({ value }) => value);
      try {
        const looked = await ftsLive.ask("look", {
          arguments: this.arguments().filter((_, i, all) => !isAxis(all, i)),
        });
        if (run !== this.run) return;
        this.showChoices(looked);
        inputs().forEach((input, i) => {
          input.value = kept[i];
        });
        this.showCommand();
        this.finish();
        if (looked.refused) this.refuse(looked.refused);
      } catch (error) {
        this.fail(error, run);
      }
    }

    async discover() {
      const run = this.begin();
      const began = performance.now();
      try {
        // After a cancelled run Python is new and has no file.
        await ftsLive.write(this.file.name, this.file.bytes.slice().buffer);
        const answer = await ftsLive.ask("discover", { arguments: this.arguments() });
        if (run !== this.run) return;
        this.finish();
        if (answer.refused) return this.refuse(answer.refused);
        this.show(answer);
        this.status.textContent = `Answered in ${((performance.now() - began) / 1000).toFixed(1)} s.`;
        this.root.dataset.seconds = ((performance.now() - began) / 1000).toFixed(2);
      } catch (error) {
        this.fail(error, run);
      }
    }

    // What is shown -----------------------------------------------------------------------------------------------

    begin() {
      this.result.hidden = true;
      this.result.replaceChildren();
      delete this.root.dataset.status;
      this.root.setAttribute("aria-busy", "true");
      this.busyBox.className = "fts-busy";
      this.bar.removeAttribute("value");
      this.cancel.hidden = false;
      this.go.disabled = true;
      this.since = performance.now();
      this.status.className = "";
      this.progress({ stage: "load", fraction: null });
      clearInterval(this.clock);
      this.clock = setInterval(() => this.showStage(), 1000);
      return ++this.run;
    }

    finish() {
      clearInterval(this.clock);
      this.root.setAttribute("aria-busy", "false");
      this.busyBox.className = "";
      this.cancel.hidden = true;
      this.go.disabled = !this.file;
      this.status.textContent = "";
    }

    progress(progress) {
      if (progress.stage !== this.stage?.stage) this.since = performance.now();
      this.stage = progress;
      if (progress.fraction === null || progress.fraction === undefined) this.bar.removeAttribute("value");
      else this.bar.value = progress.fraction;
      this.showStage();
    }

    showStage() {
      if (this.root.getAttribute("aria-busy") !== "true") return;
      const { stage, steps, megabytes: size } = this.stage;
      const more =
        stage === "load" && size ? ` (${size.toFixed(0)} MB, once per visit)` : steps ? `, step ${steps}` : "";
      const seconds = Math.round((performance.now() - this.since) / 1000);
      this.status.textContent = `${STAGES[stage] ?? stage}${more}${seconds > 1 ? ` – ${seconds} s` : ""}`;
    }

    refuse(sentence) {
      this.root.dataset.status = "refused";
      this.result.replaceChildren(make("p", { class: "fts-bad", role: "alert" }, sentence));
      this.result.hidden = false;
    }

    fail(error, run) {
      if (run !== this.run) return;
      this.finish();
      if (error instanceof ftsLive.Stopped) this.status.textContent = "Cancelled.";
      else this.refuse(error.message);
    }

    end() {
      this.run++;
      ftsLive.stop();
      this.finish();
      this.status.textContent = "Cancelled. Python is loaded anew for the next question.";
    }

    show(answer) {
      this.root.dataset.status = answer.status;
      this.root.dataset.answer = answer.json;
      this.plots = make("div", { class: "fts-plots" });
      for (const { name, picture } of answer.parts) {
        const of = answer.parts.length > 1 ? ` of ${name}` : "";
        if (picture) this.plots.append(figure(picture, `The field${of} that was fitted; dots are samples.`, name));
      }
      this.more = make("div");
      this.result.replaceChildren(...answer.parts.map(equation), this.plots, this.more, this.downloads(answer));
      this.result.hidden = false;
    }

    downloads(answer) {
      const row = make("div", { class: "fts-row" });
      const button = (text, action) => {
        const made = make("button", { type: "button" }, text);
        made.onclick = action;
        row.append(made);
        return made;
      };
      const stem = this.file.name.replace(/\.[^.]*$/, "");
      if (answer.forward === null) button("Run it forward", () => this.forward());
      else if (answer.parts[0].equation) row.append(make("span", { class: "fts-soft" }, answer.forward));
      if (answer.parts[0].picture) button("Report", () => this.save("report", `${stem}.html`, "text/html"));
      button("JSON", () => download(`${stem}.json`, answer.json + "\n", "application/json"));
      button("Notebook", () => this.save("notebook", `${stem}.ipynb`, "application/x-ipynb+json"));
      return row;
    }

    /** A question about the answer that is shown; the answer stays. */
    async after(stage, action) {
      this.root.setAttribute("aria-busy", "true");
      this.busyBox.className = "fts-busy";
      this.cancel.hidden = false;
      this.progress({ stage, fraction: null });
      this.clock = setInterval(() => this.showStage(), 1000);
      const run = ++this.run;
      try {
        await action();
        if (run === this.run) this.finish();
      } catch (error) {
        if (run !== this.run) return;
        this.finish();
        this.status.className = "fts-bad";
        this.status.textContent = error.message;
      }
    }

    save(task, name, type) {
      return this.after(task, async () => {
        if (task === "report") await ftsLive.withPlots();
        const { text, refused } = await ftsLive.ask(task, {});
        if (refused) throw new Error(refused);
        download(name, text, type);
      });
    }

    forward() {
      return this.after("forward", async () => {
        const { text, bounded, away, picture, refused } = await ftsLive.ask("forward", {});
        if (refused) throw new Error(refused);
        this.plots.querySelector("[data-forward]")?.remove();
        if (bounded) {
          const drawn = figure(
            picture,
            `The equation carried forward from the field's first state: ${away} of the field's deviation away from it.`,
          );
          drawn.dataset.forward = "";
          this.plots.append(drawn);
        }
        this.more.replaceChildren(
          make(
            "p",
            {},
            bounded
              ? "Fitted to the samples by integrating it:"
              : "Carried forward, this equation leaves every bound. Fitted to the samples:",
          ),
          make("pre", {}, text),
        );
      });
    }
  }

  const isAxis = (all, i) => all[i] === "--axis" || all[i - 1] === "--axis";
  const short = (value) => Number(value.toPrecision(4)).toString().replace("-", "−");

  function download(name, text, type) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  /** An equation with its terms and verdict. */
  function equation({ status, identified, equation, terms, reasons, rivals, leaves }) {
    const line = make("p", { class: "fts-equation-line" });
    line.innerHTML = equation ? written(equation) : "";
    const list = make("dl", { class: "fts-terms" });
    for (const { name, text } of terms) {
      const term = make("dt");
      term.innerHTML = written(name);
      list.append(term, make("dd", {}, text.replace(/^-/, "−")));
    }
    const verdict = make(
      "p",
      {},
      make("strong", { class: identified ? "fts-good" : "fts-bad" }, status[0].toUpperCase() + status.slice(1)),
      identified ? ": nothing speaks against this equation." : ": the equation is not to be trusted as it stands.",
    );
    const why = make("ul");
    for (const reason of reasons) why.append(make("li", {}, reason));
    const others = make("ul");
    for (const rival of rivals) {
      const item = make("li");
      item.innerHTML = `rival: ${written(rival.equation)} leaves ${escaped(rival.leaves)} of ${escaped(leaves)}`;
      others.append(item);
    }
    const box = make("div", { class: "fts-result" }, line, list, verdict);
    if (reasons.length) box.append(why);
    if (rivals.length) box.append(others);
    return box;
  }

  /** A field over two axes, with dots where it was measured. */
  function figure({ x, y, names, at, shape, values, dots }, caption, symbol = "u") {
    const { svg, scale, axes, label, image, fieldImage } = ftsParts;
    const u = floats(values);
    const [across, along] = shape;
    const measured = dots?.map(floats);
    let [low, high] = [Infinity, -Infinity];
    for (const v of u) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
    const [width, height] = [360, 260];
    const box = { left: 48, right: width - 12, top: 12, bottom: height - 42 };
    const [toX, toY] = [scale(...x, box.left, box.right), scale(...y, box.bottom, box.top, { count: 4 })];
    const url = fieldImage(across, along, (i, j) => u[i * along + j], low, high);
    let body =
      image(url, box.left, box.top, box.right - box.left, box.bottom - box.top) + axes(toX, toY, box, names[0]);
    body += label(10, (box.top + box.bottom) / 2, names[1], "start", "name");
    if (measured) {
      const every = Math.ceil(measured[0].length / 1500);
      for (let i = 0; i < measured[0].length; i += every)
        body += `<circle cx="${toX(measured[0][i]).toFixed(1)}" cy="${toY(measured[1][i]).toFixed(1)}" r="1.1" fill="#fff" stroke="#0006" stroke-width=".4"/>`;
    }
    const name = `Field over ${names[0]} and ${names[1]}, from ${short(low)} to ${short(high)}`;
    const holder = make("div", { class: "fts-figure" });
    holder.innerHTML = svg(width, height, body, name);
    return make(
      "figure",
      {},
      holder,
      make("figcaption", {}, `${caption} ${at ? `${at}. ` : ""}${symbol} from ${short(low)} to ${short(high)}.`),
    );
  }

  async function start() {
    const root = document.getElementById("fts-try");
    if (!root) return;
    const contents = await ftsLive.available();
    root.setAttribute("aria-busy", "false");
    if (contents) new Page(root, contents);
    else root.dataset.status = "without";
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
