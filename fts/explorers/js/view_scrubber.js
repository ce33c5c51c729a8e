// Explorer 5: a joint training and a frozen field beside it, at the same share of both trainings.

import { axes, image, label, line, scale, svg, termSvg } from "./charts.js";
import { readContainer } from "./container.js";
import { bytesOf } from "./engine.js";
import { fieldImage } from "./palette.js";
import { equationHtml, equationText, general } from "./terms.js";

const unpacked = new WeakMap();
const SIDES = { joint: "var(--fts-orange)", frozen: "var(--fts-blue)" };

export function scrubberView() {
  return {
    resetLabel: "To the end of the training",
    choiceLabel: "Training",
    answer: (frame) => ({ arrays: arraysOf(frame.source), k: frame.value("checkpoint") }),
    shown: (frame, _name, value) => {
      const { joint_steps } = arraysOf(frame.source);
      return `step ${joint_steps[value].toLocaleString("en")} of ${joint_steps.at(-1).toLocaleString("en")}`;
    },
    draw(frame, { arrays, k }) {
      const { info } = frame,
        [joint, frozen] = ["joint", "frozen"].map((side) => sideAt(arrays, side, k, info.library.length));
      frame.say(
        scrubbedLine(info, joint, `${info.method}, step ${joint.step.toLocaleString("en")}`) +
          scrubbedLine(info, frozen, `Frozen at update ${frozen.step.toLocaleString("en")}, read by SVWS`),
        equationText(info.library, joint.xi),
      );
      frame.root.dataset.frozen = equationText(info.library, frozen.xi);
      frame.figure.innerHTML =
        trainedFields(frame, arrays, joint, frozen) +
        f1Curves(frame, arrays, k) +
        coefficientRows(frame, arrays, joint, frozen);
    },
  };
}

export function arraysOf(source) {
  if (!unpacked.has(source)) {
    const { arrays } = readContainer(bytesOf(source.get("data")));
    unpacked.set(source, Object.fromEntries(Object.entries(arrays).map(([name, { data }]) => [name, data])));
  }
  return unpacked.get(source);
}

/** One side at checkpoint k: step, F1, coefficients, and the field's value at a flat place. */
function sideAt(arrays, side, k, J) {
  const size = arrays.truth.length,
    values = arrays[`${side}_fields`],
    [low, high] = arrays[`${side}_ranges`].slice(2 * k, 2 * k + 2);
  return {
    step: arrays[`${side}_steps`][k],
    f1: arrays[`${side}_f1`][k],
    xi: Array.from(arrays[`${side}_xi`].slice(J * k, J * (k + 1))),
    at: (place) => low + ((high - low) * values[size * k + place]) / 255,
  };
}

function scrubbedLine(info, { xi, f1 }, what) {
  const found =
    f1 === 1 ? '<span class="fts-good">the true terms</span>' : `<span class="fts-bad">F₁ = ${general(f1)}</span>`;
  return `<div><span class="fts-soft">${what}:</span> ${found}</div><div class="fts-equation-line">${equationHtml(info.library, xi)}</div>`;
}

function trainedFields(frame, arrays, joint, frozen) {
  const { info, width } = frame,
    low = info.lowest,
    high = info.highest,
    each = width >= 560 ? (width - 26) / 3 : (width - 13) / 2;
  const truth = (place) => low + ((high - low) * arrays.truth[place]) / 255;
  const shown = [
    ["the truth", truth],
    [info.method, joint.at],
    ["adapter", frozen.at],
  ];
  return shown
    .map(([name, at]) =>
      info.dimension === 1 ? lineOverTime(info, name, at, each) : planeFrames(info, name, at, each),
    )
    .join("");
}

/** The field over x and t as a picture; `over(x, box)` is drawn on top of it. */
export function lineOverTime(info, name, at, width, over = () => "") {
  const [nx, nt] = info.shape,
    height = Math.round(0.8 * width) + 40,
    box = { left: 34, right: width - 12, top: 20, bottom: height - 36 };
  const x = scale(info.low[0], info.high[0], box.left, box.right, { count: 3 }),
    t = scale(info.low[1], info.high[1], box.bottom, box.top, { count: 3 });
  const url = fieldImage(nx, nt, (i, j) => at(i * nt + j), info.lowest, info.highest);
  const body =
    image(url, box.left, box.top, box.right - box.left, box.bottom - box.top) +
    over(x, box) +
    axes(x, t, box, "x") +
    label(box.left, 13, name) +
    label(2, 13, "t", "start", "name");
  return svg(width, height, body, `The field of ${name} over x and t`);
}

function planeFrames(info, name, at, width) {
  const [nx, ny, nt] = info.shape,
    gap = 6,
    side = (width - gap) / 2,
    rows = Math.ceil(nt / 2),
    height = 20 + rows * (side + 18);
  let body = label(0, 13, name);
  for (let k = 0; k < nt; k++) {
    const left = (k % 2) * (side + gap),
      top = 20 + Math.floor(k / 2) * (side + 18);
    const t = info.low[2] + ((info.high[2] - info.low[2]) * k) / (nt - 1);
    body +=
      image(
        fieldImage(nx, ny, (i, j) => at((i * ny + j) * nt + k), info.lowest, info.highest),
        left,
        top,
        side,
        side,
      ) + label(left, top + side + 12, `t = ${general(t)}`, "start", "soft");
  }
  return svg(width, height, body, `The field of ${name} at ${nt} times`);
}

function f1Curves(frame, arrays, k) {
  const { width } = frame,
    height = 170,
    box = { left: 40, right: width - 12, top: 26, bottom: height - 40 };
  const x = scale(0, 1, box.left, box.right),
    y = scale(0, 1, box.bottom, box.top, { count: 2 });
  let body = axes(x, y, box, "share of the training") + label(4, 12, "support F₁", "start", "name");
  for (const [side, color] of Object.entries(SIDES)) {
    const since = arrays[`${side}_since`],
      f1 = arrays[`${side}_since_f1`],
      end = arrays[`${side}_steps`].at(-1),
      points = [];
    since.forEach((step, i) =>
      points.push([x(step / end), y(f1[i])], [x((i + 1 < since.length ? since[i + 1] : end) / end), y(f1[i])]),
    );
    const now = k / (arrays[`${side}_steps`].length - 1);
    body +=
      line(points, `stroke="${color}" stroke-width="${side === "joint" ? 1.6 : 2.4}"`) +
      `<circle cx="${x(now)}" cy="${y(arrays[`${side}_f1`][k])}" r="5" fill="${color}"/>`;
  }
  const at = x(k / (arrays.joint_steps.length - 1));
  body +=
    `<path d="M${at} ${box.top}V${box.bottom}" stroke="var(--fts-soft)" stroke-dasharray="3 3"/>` +
    sideLegend(frame.info, box.right);
  return svg(
    width,
    height,
    body,
    `Support F1 along both trainings; here ${general(arrays.joint_f1[k])} for ${frame.info.method} and ${general(arrays.frozen_f1[k])} for the frozen field`,
  );
}

function sideLegend(info, right) {
  return label(
    right,
    12,
    `<tspan fill="${SIDES.joint}">● ${info.method}</tspan>  <tspan fill="${SIDES.frozen}">● freeze, then select</tspan>`,
    "end",
  );
}

function coefficientRows(frame, arrays, joint, frozen) {
  const { info, width } = frame,
    { library } = info,
    row = 22,
    height = 8 + row * library.length + 40,
    box = { left: 62, right: width - 12, top: 8, bottom: height - 38 };
  const most = 1.4 * Math.max(...arrays.true_xi.map(Math.abs)),
    x = scale(-most, most, box.left, box.right),
    y = scale(0, library.length, box.top, box.bottom);
  y.ticks = [];
  const inside = (value) => x(Math.max(-most, Math.min(most, value)));
  let body = axes(x, y, box, "coefficient (gray: truth, rings: absent)");
  library.forEach((term, j) => {
    const middle = box.top + row * (j + 0.5);
    body +=
      `<path class="grid" d="M${box.left} ${middle}H${box.right}"/>` +
      label(box.left - 8, middle + 4, termSvg(term.body), "end");
    if (arrays.true_xi[j])
      body += `<rect x="${x(arrays.true_xi[j]) - 3}" y="${middle - 9}" width="6" height="18" fill="var(--fts-soft)" opacity=".6"/>`;
    [
      [joint, SIDES.joint, -4],
      [frozen, SIDES.frozen, 4],
    ].forEach(([{ xi }, color, shift]) => {
      body += `<circle cx="${inside(xi[j])}" cy="${middle + shift}" r="4" fill="${xi[j] ? color : "var(--fts-page)"}" stroke="${color}" stroke-width="1.5"/>`;
    });
  });
  return svg(
    width,
    height,
    body,
    `Coefficients of ${info.method}, ${equationText(library, joint.xi)}, and of the frozen field, ${equationText(library, frozen.xi)}`,
  );
}
