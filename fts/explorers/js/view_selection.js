// Explorer 1: stability-validated weak selection, every intermediate of the rule.

import { axes, label, line, scale, svg, termSvg } from "./charts.js";
import { ask } from "./engine.js";
import { equationHtml, equationText, general, powerOfTen, signed, termHtml } from "./terms.js";

const ROWS = 10;
// Coefficients below this share of the true ones are called attenuated.
const ATTENUATED = 0.9;
// Milliseconds of rest before the page looks at other draws.
const PATIENCE = 400;

export function selectionView() {
  const draws = new Map();
  let waiting = null;
  return {
    question: (frame) => ({ task: "svws", question: svwsQuestion(frame) }),
    shown: shownRule,
    draw(frame, answer) {
      frame.say(
        sentence(frame.info, answer.xi, "SVWS") +
          errors(frame.info, answer.pooled, "Refitted on the rows of all systems") +
          why(answer),
        equationText(frame.info.library, answer.xi),
      );
      const width = frame.width,
        half = width >= 640 ? (width - 13) / 2 : width;
      const above = recurrence(frame, answer, half) + risks(frame, answer, half);
      const question = redrawnQuestion(frame, answer),
        key = JSON.stringify([frame.info.key, question]);
      // Python's first answer brings its draws along.
      if (answer.redrawn) draws.set(key, answer.redrawn);
      const show = () => {
        frame.figure.innerHTML = above + scatter(frame, answer, draws.get(key) ?? [], frame.width);
        frame.root.dataset.draws = draws.get(key)?.length ?? 0;
      };
      show();
      // A hand on a slider comes before the draws.
      if (draws.has(key) || !answer.support.length) return;
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const drawn = await ask(`${frame.asker} redrawn`, frame.source, "redrawn", question);
        if (!drawn) return;
        draws.set(key, drawn.coefficients);
        if (frame.last === answer) show();
      }, PATIENCE);
    },
  };
}

/** Library, geometry and rule for the reader's values. */
export function svwsQuestion(frame) {
  const { info } = frame,
    params = { ...info.svws, lam0: info.svws.lam0 * frame.value("lam0_factor") };
  for (const name of ["tau", "generation", "phase_seed", "ridge"]) params[name] = frame.value(name) ?? params[name];
  // The systems that fit and validate stay while the number of those that propose changes.
  params.usual = info.svws.generation;
  return { library: info.library, weak: info.weak, params };
}

export function shownRule(frame, name, value) {
  if (name === "lam0_factor") return `${general(frame.info.svws.lam0 * value)} (×${general(value)})`;
  if (name === "ridge") return powerOfTen(value.toExponential(0));
  if (name === "tau") return value.toFixed(2);
  return undefined;
}

/** The equation, and whether it has the true terms when the truth is known. */
export function sentence(info, xi, who) {
  return `<div><span class="fts-soft">${who}:</span> <span class="fts-equation-line">${equationHtml(info.library, xi)}</span> ${verdict(info, xi)}</div>`;
}

/** Coefficients with their standard errors, by term. */
export function errors(info, pooled, what) {
  if (!pooled) return "";
  const shown = info.library.flatMap((term, j) =>
    pooled.xi[j]
      ? [
          `<span data-term="${term.name}">${termHtml(term.body)} ${spread(pooled.xi[j] * term.factor, Math.abs(pooled.se[j] * term.factor))}</span>`,
        ]
      : [],
  );
  return shown.length
    ? `<div class="fts-soft fts-errors">${what}: ${shown.join(", ")}; ± is the standard error when regions of space-time are left out in turn.</div>`
    : "";
}

function spread(value, error) {
  const size = signed(value),
    two = error && error < 1e-4 ? powerOfTen(error.toExponential(1)) : Number(error.toPrecision(2));
  return `${Math.abs(Number(size.replace("−", "-"))) === 1 ? size + ".00" : size}&#8239;±&#8239;${two}`;
}

function verdict(info, xi) {
  if (!info.truth) return "";
  const extra = [],
    missing = [],
    { truth } = info;
  info.library.forEach((term, j) => {
    if (xi[j] !== 0 && truth[j] === 0) extra.push(termHtml(term.body));
    if (xi[j] === 0 && truth[j] !== 0) missing.push(termHtml(term.body));
  });
  const off = Math.hypot(...truth.map((value, j) => value - xi[j])) / Math.hypot(...truth);
  if (!extra.length && !missing.length)
    return `<span class="fts-good">✓ exact terms</span> <span class="fts-soft">coefficients off by <i>E</i><sub>ξ</sub> = ${Number(off.toPrecision(2))}</span>`;
  const parts = [
    ...(extra.length ? [`extra: ${extra.join(", ")}`] : []),
    ...(missing.length ? [`missing: ${missing.join(", ")}`] : []),
  ];
  return `<span class="fts-bad">✗ ${parts.join("; ")}</span>`;
}

function why(answer) {
  const admitted = answer.rows.filter((row) => row.admissible).length;
  const first = answer.fallback ? "No support was stable, so all were compared. " : "";
  return `<div class="fts-soft">${first}${answer.proposals} proposals, ${many(answer.supports.length, "distinct support")}; ${answer.rows.length} within the stable terms, ${admitted} within one standard error of the lowest risk. The smallest of these wins.</div>`;
}

/** The support's coefficients where the patches of the fit system lie elsewhere: seeds of the draws offered. */
function redrawnQuestion(frame, { support }) {
  const { library, weak, params } = svwsQuestion(frame),
    { low, high } = frame.controls.find(({ name }) => name === "phase_seed");
  const { usual, ridge } = params;
  const seeds = Array.from({ length: high - low + 1 }, (_, i) => low + i);
  return { library, weak, params: { usual, ridge }, seeds, support };
}

/** Every selected coefficient over the draws: as a share of the true one where it is known, else of the present one. */
function scatter(frame, answer, drawn, width) {
  const { info } = frame,
    { support, xi } = answer;
  if (!support.length) return "";
  const step = 24,
    top = 40,
    height = top + step * support.length + 40,
    unit = (j) => info.truth?.[j] || xi[j];
  const shares = support.map((j) => drawn.map((row) => row[j] / unit(j))),
    now = support.map((j) => xi[j] / unit(j)),
    all = [0, 1.1, ...now, ...shares.flat()];
  const box = { left: 74, right: width - 14, top: top - 8, bottom: height - 40 },
    x = scale(Math.min(...all), Math.max(...all), box.left, box.right, { count: 6 });
  const known = Boolean(info.truth),
    unitName = known ? "coefficient / true coefficient" : "coefficient / the present one";
  let body = axes(
    x,
    Object.assign((v) => v, { ticks: [] }),
    box,
    unitName,
  );
  body += label(
    4,
    12,
    `refitted on the fit systems of ${drawn.length || "all"} draws (dot: this draw)`,
    "start",
    "name",
  );
  body += `<path d="M${x(1)} ${box.top}V${box.bottom}" stroke="var(--fts-soft)" stroke-dasharray="4 3"/>`;
  support.forEach((j, i) => {
    const y = top + step * i + 6;
    body += label(box.left - 8, y + 4, termSvg(info.library[j].body), "end");
    for (const share of shares[i])
      body += `<path d="M${x(share)} ${y - 7}v14" stroke="var(--fts-ink)" stroke-width="1.5" opacity=".55" data-tip="${info.library[j].name}: ${general(share * unit(j))} on the fit system of one draw"/>`;
    body += `<circle cx="${x(now[i])}" cy="${y}" r="5" fill="var(--fts-blue)" data-tip="${info.library[j].name}: ${general(xi[j])}, ${general(now[i])} of ${known ? "the true one" : "itself"}"/>`;
  });
  const said = spreadOf(shares.flat(), known);
  return `<div class="fts-scatter">${svg(width, height, body, `Coefficients of the selected terms over draws of the patch grids. ${said}`)}<div class="fts-soft">${said}</div></div>`;
}

function spreadOf(shares, known) {
  if (!shares.length) return "";
  const [low, high] = [Math.min(...shares), Math.max(...shares)].map(general);
  const middle = [...shares].sort((a, b) => a - b)[shares.length >> 1];
  const range = `Over the draws: ${low} to ${high} of ${known ? "the true coefficients" : "the present ones"}.`;
  return known && middle < ATTENUATED
    ? `${range} <strong>Attenuation</strong>: errors of the field shrink them; the median is ${general(middle)}.`
    : range;
}

function many(n, what) {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

function recurrence(frame, answer, width) {
  const { library } = frame.info,
    step = 24,
    top = 34,
    left = 74,
    height = top + step * library.length + 40;
  const x = scale(0, 1, left, width - 14, { count: 4 }),
    tau = frame.value("tau");
  const box = { left, right: width - 14, top: top - 8, bottom: height - 40 };
  let body = axes(
    x,
    Object.assign((v) => v, { ticks: [] }),
    box,
    "recurrence π",
  );
  library.forEach((term, j) => {
    const y = top + step * j,
      stable = answer.stable.includes(j),
      won = answer.support.includes(j);
    body += `<rect x="${left}" y="${y}" width="${Math.max(0, x(answer.pi[j]) - left)}" height="${step - 8}" fill="${stable ? "var(--fts-blue)" : "var(--fts-soft)"}" opacity="${stable ? 1 : 0.45}" data-tip="${term.name}: proposed in ${answer.pi[j].toFixed(3)} of ${answer.proposals}"/>`;
    body += label(left - 8, y + 13, termSvg(term.body) + (won ? " ✓" : ""), "end");
  });
  body +=
    `<path d="M${x(tau)} ${top - 10}V${height - 40}" stroke="var(--fts-orange)" stroke-width="2" stroke-dasharray="5 3"/>` +
    label(x(tau), top - 14, `τ = ${tau.toFixed(2)}`, "middle");
  const said = library.map((term, j) => `${term.name} ${answer.pi[j].toFixed(2)}`).join(", ");
  return svg(width, height, body, `Recurrence of each term against the stability threshold ${tau.toFixed(2)}: ${said}`);
}

function risks(frame, answer, width) {
  const { library } = frame.info,
    byRisk = [...answer.rows].sort((a, b) => a.mu - b.mu),
    kept = byRisk.slice(0, ROWS);
  const winner = answer.rows[answer.winner];
  if (!kept.includes(winner)) kept[kept.length - 1] = winner;
  const column = Math.min(20, (width * 0.45) / library.length),
    matrix = column * library.length,
    left = matrix + 46;
  const step = 24,
    top = 64,
    height = top + step * kept.length + 40;
  const low = Math.min(...kept.map((row) => Math.max(row.mu - row.se, row.mu / 3))),
    high = Math.max(...kept.map((row) => row.mu + row.se), answer.bound);
  const x = scale(low * 0.9, high * 1.1, left, width - 12, { log: true });
  let body =
    axes(
      x,
      Object.assign((v) => v, { ticks: [] }),
      { left, right: width - 12, top: top - 12, bottom: height - 40 },
      "",
    ) + label(width - 12, height - 8, "validation risk ± standard error", "end", "name");
  library.forEach(
    (term, j) =>
      (body += `<g transform="translate(${column * (j + 0.5) + 4} ${top - 18}) rotate(-50)">${label(0, 0, termSvg(term.body))}</g>`),
  );
  body += `<g transform="translate(${matrix + 24} ${top - 18}) rotate(-50)">${label(0, 0, "count", "start", "soft")}</g>`;
  kept.forEach(
    (row, i) => (body += supportRow(row, row === winner, top + step * i + 6, { library, column, matrix, x, left })),
  );
  body += `<path d="M${x(answer.bound)} ${top - 12}V${height - 40}" stroke="var(--fts-orange)" stroke-width="2" stroke-dasharray="5 3"/>`;
  if (answer.rows.length > kept.length)
    body += label(4, height - 24, `and ${answer.rows.length - kept.length} of higher risk`, "start", "soft");
  const said = kept
    .map(
      (row) =>
        `${row.support.map((j) => library[j].name).join(" + ") || "no term"}: count ${row.count}, risk ${general(row.mu)}${row === winner ? ", chosen" : ""}`,
    )
    .join("; ");
  return svg(
    width,
    height,
    body,
    `Supports with generation counts and validation risks; one-standard-error line at ${general(answer.bound)}. ${said}`,
  );
}

function supportRow(row, won, y, { library, column, matrix, x, left }) {
  const color = won ? "var(--fts-blue)" : row.admissible ? "var(--fts-ink)" : "var(--fts-soft)";
  let body = won
    ? `<rect x="0" y="${y - 11}" width="${left - 4}" height="22" fill="var(--fts-blue)" opacity=".14" rx="3"/>`
    : "";
  library.forEach((_, j) => {
    const inside = row.support.includes(j);
    body += `<circle cx="${column * (j + 0.5) + 4}" cy="${y}" r="${inside ? 5 : 1.5}" fill="${inside ? color : "var(--fts-line)"}"/>`;
  });
  body += label(matrix + 24, y + 4, String(row.count), "middle");
  const from = Math.max(row.mu - row.se, row.mu / 3);
  const tip = `${row.support.map((j) => library[j].name).join(" + ") || "no term"}: proposed ${row.count} times, risk ${general(row.mu)} ± ${general(row.se)}`;
  return `<g data-tip="${tip}">${body}${line(
    [
      [x(from), y],
      [x(row.mu + row.se), y],
    ],
    `stroke="${color}" stroke-width="2"`,
  )}<circle cx="${x(row.mu)}" cy="${y}" r="4.5" fill="${color}"/><rect x="0" y="${y - 11}" width="${x(row.mu + row.se) + 8}" height="22" fill="transparent"/></g>`;
}
