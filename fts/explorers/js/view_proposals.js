// Explorer 5: every proposal of the generation systems as one square; a click shows its patches, support and risk.

import { axes, label, line, scale, svg, termSvg } from "./charts.js";
import { COLORS } from "./palette.js";
import { equationText, general } from "./terms.js";
import { background, fieldMap, moveGrid } from "./view_patches.js";
import { sentence } from "./view_selection.js";

const STEP = 24;

export function proposalsView() {
  const pictures = new Map();
  return {
    question(frame) {
      const { info } = frame,
        params = info.svws;
      return {
        task: "proposals",
        question: {
          library: info.library,
          weak: info.weak,
          params,
          index: frame.value("system") - 1,
          lam: multiple(frame) * params.lam0,
        },
      };
    },
    shown: (frame, name, value) =>
      name === "threshold"
        ? `${general(multiple(frame) * frame.info.svws.lam0)} (×${general(multiple(frame))} λ₀)`
        : `${value} of ${frame.info.svws.generation}`,
    async draw(frame, answer) {
      const { info } = frame,
        half = frame.width >= 640 ? (frame.width - 13) / 2 : frame.width;
      frame.say(
        sentence(info, answer.xi, `Proposal of system ${frame.value("system")}`) + fate(frame, answer),
        equationText(info.library, answer.xi),
      );
      const picture = await background(frame, pictures);
      if (frame.last !== answer) return;
      frame.figure.innerHTML = squares(frame, answer, half);
      const map = fieldMap(frame, picture, half, `The field with the patches of system ${frame.value("system")}`);
      moveGrid(map, answer.centers, info.weak.half_widths);
      frame.figure.append(map.holder);
      frame.figure.insertAdjacentHTML("beforeend", riskRow(frame, answer, frame.width));
      for (const cell of frame.figure.querySelectorAll("[data-cell]"))
        cell.onclick = () =>
          frame.set({
            system: Number(cell.dataset.cell.split(" ")[0]),
            threshold: Number(cell.dataset.cell.split(" ")[1]),
          });
    },
  };
}

function multiple(frame) {
  const { multipliers } = frame.info.svws;
  return multipliers[Math.min(frame.value("threshold"), multipliers.length) - 1];
}

function names(library, support) {
  return support.map((j) => library[j].name).join(" + ") || "no term";
}

/** The place of the chosen proposal's support in the list of supports. */
function supportOf(frame, answer) {
  return answer.every.places[
    (frame.value("system") - 1) * frame.info.svws.multipliers.length + frame.value("threshold") - 1
  ];
}

function fate(frame, answer) {
  const { every, chosen } = answer,
    index = supportOf(frame, answer),
    unstable = every.supports[index].filter((j) => !chosen.stable.includes(j));
  const said = unstable.length
    ? `not eligible, because ${names(frame.info.library, unstable)} recurs in less than τ = ${frame.info.svws.tau} of all proposals`
    : index === chosen.rows[chosen.winner].index
      ? "the support that SVWS selects"
      : "eligible, and not the smallest within one standard error of the lowest risk";
  return `<div class="fts-soft">Proposed ${every.counts[index]} of ${every.proposals} times; ${said}.</div>`;
}

/** One square per system and threshold, colored by its support; the most frequent supports have colors of their own. */
function squares(frame, answer, width) {
  const { library, svws } = frame.info,
    { every } = answer,
    columns = svws.multipliers.length,
    rows = svws.generation;
  const order = every.counts.map((_, i) => i).sort((a, b) => every.counts[b] - every.counts[a] || a - b),
    shown = order.slice(0, COLORS.length);
  const color = (index) => (shown.includes(index) ? COLORS[shown.indexOf(index)] : "var(--fts-soft)");
  const left = 34,
    wide = Math.min(44, (width - left - 8) / columns),
    top = 22,
    height = top + STEP * rows + 40 + 18 * (shown.length + (order.length > shown.length));
  let body = label(2, 12, "system", "start", "name");
  for (let r = 0; r < rows; r++) {
    body += label(left - 8, top + STEP * (rows - 1 - r) + 16, String(r + 1), "end");
    for (let c = 0; c < columns; c++) {
      const index = every.places[r * columns + c],
        here = r + 1 === frame.value("system") && c + 1 === frame.value("threshold");
      const place = `x="${left + wide * c + 1}" y="${top + STEP * (rows - 1 - r) + 1}" width="${wide - 2}" height="${STEP - 2}"`;
      body += `<rect ${place} class="fts-cell" data-cell="${r + 1} ${c + 1}" fill="${color(index)}" data-tip="system ${r + 1}, λ = ${general(svws.multipliers[c] * svws.lam0)}: ${names(library, every.supports[index])}"/>`;
      if (here) body += `<rect ${place} fill="none" stroke="var(--fts-ink)" stroke-width="3" pointer-events="none"/>`;
    }
  }
  const foot = top + STEP * rows;
  svws.multipliers.forEach(
    (m, c) => (body += label(left + wide * (c + 0.5), foot + 14, general(m * svws.lam0), "middle")),
  );
  body += label(left + (wide * columns) / 2, foot + 30, "threshold λ", "middle", "name");
  shown.forEach(
    (index, i) =>
      (body += key(
        i,
        foot,
        color(index),
        `${every.counts[index]}: ` + every.supports[index].map((j) => termSvg(library[j].body)).join(", "),
      )),
  );
  if (order.length > shown.length) body += key(shown.length, foot, "var(--fts-soft)", "other supports");
  return svg(
    width,
    height,
    body,
    `Proposals of ${rows} systems at ${columns} thresholds: ${shown.map((i) => `${names(library, every.supports[i])} ${every.counts[i]} times`).join("; ")}`,
  );
}

function key(i, foot, color, text) {
  const y = foot + 46 + 18 * i;
  return `<rect x="34" y="${y - 10}" width="12" height="12" fill="${color}"/>` + label(52, y, text);
}

/** Risks of the chosen support on every validation system, its mean with one standard error, and the rule's line. */
function riskRow(frame, answer, width) {
  const { every, chosen } = answer,
    row = every.rows.find((one) => one.index === supportOf(frame, answer));
  const values = every.rows.flatMap((one) => one.risks),
    height = 92,
    box = { left: 14, right: width - 14, top: 26, bottom: 52 };
  const x = scale(
    Math.min(...values, chosen.bound) * 0.95,
    Math.max(...values, chosen.bound) * 1.05,
    box.left,
    box.right,
    { log: true },
  );
  let body = axes(
    x,
    Object.assign((v) => v, { ticks: [] }),
    { ...box, top: box.bottom },
    "validation risk of this support",
  );
  for (const risk of row.risks)
    body += `<path d="M${x(risk)} 32v12" stroke="var(--fts-ink)" stroke-width="1.5" data-tip="risk ${general(risk)} on one validation system"/>`;
  body +=
    line(
      [
        [x(row.mu - row.se), 38],
        [x(row.mu + row.se), 38],
      ],
      'stroke="var(--fts-blue)" stroke-width="2"',
    ) +
    `<circle cx="${x(row.mu)}" cy="38" r="5" fill="var(--fts-blue)" data-tip="mean ${general(row.mu)}, standard error ${general(row.se)}"/>`;
  body +=
    `<path d="M${x(chosen.bound)} 20V52" stroke="var(--fts-orange)" stroke-width="2" stroke-dasharray="5 3"/>` +
    label(x(chosen.bound), 14, "one standard error above the lowest", x(chosen.bound) > width / 2 ? "end" : "start");
  return svg(
    width,
    height,
    body,
    `Risk of this support: mean ${general(row.mu)}, standard error ${general(row.se)}; the rule's line stands at ${general(chosen.bound)}`,
  );
}
