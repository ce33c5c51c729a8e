// Explorer 4: the structured field as features times coefficients, truncated to a chosen rank.

import { axes, image, label, line, scale, svg } from "./charts.js";
import { make } from "./frame.js";
import { fieldImage, signedImage } from "./palette.js";
import { general, signed } from "./terms.js";

const BOX = { left: 46, right: 12, top: 26, bottom: 42 };
const SHAPES = { 1: [240, 161], 2: [49, 49, 61] };

export function adapterView() {
  return {
    resetLabel: "All modes",
    question: (frame) => ({
      task: "modes",
      question: {
        shape: SHAPES[frame.info.dimension],
        basis: frame.value("basis"),
        keep: Math.min(frame.value("rank"), frame.info.rank),
      },
    }),
    shown: (frame, name, value) => {
      if (name === "frame") return `t = ${general(timeOf(frame, value))}`;
      return name === "rank" ? `${Math.min(value, frame.info.rank)} of ${frame.info.rank}` : undefined;
    },
    draw(frame, answer) {
      const keep = Math.min(frame.value("rank"), frame.info.rank),
        truth = trueValues(frame);
      const beside = truth
        ? ` Their error against the truth is <strong>${general(relativeError(truth, answer.u))}</strong>; that of all modes is ${general(relativeError(truth, answer.full))}.`
        : "";
      frame.say(
        `<div>Background and ${keep} of ${frame.info.rank} modes reproduce the frozen field to a relative error of <strong>${answer.error < 1e-12 ? "0" : general(answer.error)}</strong>.${beside}</div>
        <div class="fts-soft">Under each mode: its spatial feature, and below it its coefficient over time. Faint modes are left out.</div>`,
        general(answer.error),
      );
      const pictures = make("div", { style: "display:contents" });
      pictures.innerHTML = frame.info.dimension > 1 ? planes(frame, answer) : line1d(frame, answer);
      frame.figure.replaceChildren(pictures, modes(frame, answer, keep));
    },
    /** Position, time and value under the pointer, on the left picture of a 1D field. */
    hover(frame, event) {
      if (frame.info.dimension > 1 || !frame.figure.querySelector("svg").contains(event.target)) return "";
      const { low, high } = frame.info,
        picture = frame.figure.querySelector("svg").getBoundingClientRect(),
        [nx, nt] = SHAPES[1];
      const a = (event.clientX - picture.left - BOX.left) / (picture.width - BOX.left - BOX.right),
        b = 1 - (event.clientY - picture.top - BOX.top) / (picture.height - BOX.top - BOX.bottom);
      if (a < 0 || a > 1 || b < 0 || b > 1) return "";
      const at = Math.round(a * (nx - 1)) * nt + Math.round(b * (nt - 1)),
        truth = trueValues(frame);
      return `x = ${general(low[0] + a * (high[0] - low[0]))}, t = ${general(low[1] + b * (high[1] - low[1]))}: kept modes ${signed(frame.last.u[at])}, all ${signed(frame.last.full[at])}${truth ? `, truth ${signed(truth[at])}` : ""}`;
    },
  };
}

const truths = new WeakMap();

/** The true values on the explorer's grid, or null. */
function trueValues({ reference }) {
  if (!reference) return null;
  if (!truths.has(reference)) {
    const data = reference.get("data"),
      { low, step } = reference.get("info");
    const view = data instanceof DataView ? data : new DataView(data.buffer, data.byteOffset, data.byteLength);
    truths.set(
      reference,
      Float64Array.from({ length: view.byteLength / 2 }, (_, i) => low + step * view.getUint16(2 * i, true)),
    );
  }
  return truths.get(reference);
}

function relativeError(u, v) {
  let top = 0,
    bottom = 0;
  for (let i = 0; i < u.length; i++) [top, bottom] = [top + (u[i] - v[i]) ** 2, bottom + u[i] ** 2];
  return Math.sqrt(top / bottom);
}

function timeOf(frame, value) {
  const { low, high } = frame.info;
  return low.at(-1) + value * (high.at(-1) - low.at(-1));
}

function frameIndex(frame, answer) {
  return Math.round(frame.value("frame") * (answer.frames - 1));
}

function extent(values) {
  let low = Infinity,
    high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}

function line1d(frame, answer) {
  const [nx, nt] = SHAPES[1],
    { low, high } = frame.info,
    [bottom, top] = extent(answer.full),
    k = frameIndex(frame, answer);
  const wide = frame.width >= 640 ? (frame.width - 13) / 2 : frame.width,
    height = 260;
  const box = { left: BOX.left, right: wide - BOX.right, top: BOX.top, bottom: height - BOX.bottom };
  const x = scale(low[0], high[0], box.left, box.right, { count: 4 }),
    t = scale(low[1], high[1], box.bottom, box.top, { count: 4 });
  const url = fieldImage(nx, nt, (i, j) => answer.u[i * nt + j], bottom, top),
    time = general(timeOf(frame, frame.value("frame")));
  let body =
    image(url, box.left, box.top, box.right - box.left, box.bottom - box.top) +
    axes(x, t, box, "x") +
    label(14, box.top - 8, "t", "start", "name");
  body += `<path d="M${box.left} ${t(timeOf(frame, frame.value("frame")))}H${box.right}" stroke="#fff" stroke-width="3"/><path d="M${box.left} ${t(timeOf(frame, frame.value("frame")))}H${box.right}" stroke="#000" stroke-width="1.2"/>`;
  body += samplesAlong(frame, x, t, box);
  const left = svg(wide, height, body, `The truncated field over x and t; a line marks t = ${time}`);
  const pad = 0.06 * (top - bottom),
    y = scale(bottom - pad, top + pad, box.bottom, box.top, { count: 4 }),
    at = (u) =>
      Array.from(answer.axes[0], (v, i) => [x(v), y(Math.max(bottom - pad, Math.min(top + pad, u[i * nt + k])))]);
  let right = axes(x, y, box, "x") + label(14, box.top - 8, `u at t = ${time}`, "start", "name");
  right +=
    line(at(answer.full), 'stroke="var(--fts-soft)" stroke-width="4" opacity=".55"') +
    line(at(answer.u), 'stroke="var(--fts-blue)" stroke-width="2"');
  const truth = trueValues(frame);
  if (truth) right += line(at(truth), 'stroke="var(--fts-orange)" stroke-width="1.5" stroke-dasharray="4 3"');
  right += label(
    box.right,
    box.top - 8,
    `<tspan fill="var(--fts-soft)">all modes</tspan>  <tspan fill="var(--fts-blue)">kept</tspan>${truth ? '  <tspan fill="var(--fts-orange)">truth</tspan>' : ""}`,
    "end",
  );
  return left + svg(wide, height, right, `Profile at t = ${time}: full field in gray, truncated field in blue`);
}

/** Ticks where the samples lie: along x for sensors that saw every frame, along t for frames that were seen whole. */
function samplesAlong(frame, x, t, box) {
  const { sensors, frames } = frame.reference?.get("info") ?? {};
  if (!sensors) return "";
  if (sensors.length < 2 * frames.length)
    return sensors
      .map(([place]) => `<path d="M${x(place).toFixed(1)} ${box.top}v-5" stroke="var(--fts-ink)"/>`)
      .join("");
  return frames.map((time) => `<path d="M${box.right} ${t(time).toFixed(1)}h5" stroke="var(--fts-ink)"/>`).join("");
}

function planes(frame, answer) {
  const [nx, ny, nt] = SHAPES[2],
    { low, high } = frame.info,
    [bottom, top] = extent(answer.full),
    k = frameIndex(frame, answer);
  const side = Math.min(300, frame.width >= 560 ? (frame.width - 13) / 2 : frame.width),
    time = general(timeOf(frame, frame.value("frame")));
  const panel = (u, title) => {
    const box = { left: 40, right: side - 10, top: 26, bottom: side - 30 };
    const x = scale(low[0], high[0], box.left, box.right, { count: 4 }),
      y = scale(low[1], high[1], box.bottom, box.top, { count: 4 });
    const url = fieldImage(nx, ny, (i, j) => u[(i * ny + j) * nt + k], bottom, top);
    const body =
      image(url, box.left, box.top, box.right - box.left, box.bottom - box.top) +
      axes(x, y, box, "") +
      label(box.left, box.top - 8, title, "start", "name");
    return svg(side, side, body, `${title} over x and y at t = ${time}`);
  };
  return panel(answer.full, `all modes, t = ${time}`) + panel(answer.u, "kept modes");
}

function modes(frame, answer, keep) {
  const holder = make("div", { class: "fts-tiles" }),
    total = Math.hypot(...answer.sizes);
  for (let r = 0; r < answer.rank; r++) {
    const element = make("div", { class: `fts-tile ${r < keep ? "" : "fts-off"}` });
    const share = (100 * answer.sizes[r] ** 2) / total ** 2;
    element.innerHTML = `${r + 1}: ${share >= 0.1 ? share.toFixed(1) + " %" : "< 0.1 %"}<svg viewBox="0 0 96 ${frame.info.dimension > 1 ? 142 : 92}" aria-hidden="true">${feature(frame, answer, r)}${coefficient(frame, answer, r)}</svg>`;
    holder.append(element);
  }
  holder.setAttribute("role", "img");
  holder.setAttribute(
    "aria-label",
    `${answer.rank} modes, the first ${keep} kept; the first carries ${((100 * answer.sizes[0] ** 2) / total ** 2).toFixed(1)} percent of the squared size`,
  );
  return holder;
}

function feature(frame, answer, r) {
  const values = answer.features.subarray(r * answer.n, (r + 1) * answer.n),
    [low, high] = extent(values),
    largest = Math.max(-low, high);
  if (frame.info.dimension > 1) {
    const [nx, ny] = SHAPES[2];
    return image(
      signedImage(nx, ny, (i, j) => values[i * ny + j], largest),
      0,
      0,
      96,
      96,
    );
  }
  return line(
    Array.from(values, (v, i) => [(96 * i) / (answer.n - 1), 25 - (22 * v) / largest]),
    'stroke="var(--fts-blue)" stroke-width="1.2"',
  );
}

function coefficient(frame, answer, r) {
  const values = answer.coefficients.subarray(r * answer.frames, (r + 1) * answer.frames),
    [low, high] = extent(values),
    largest = Math.max(-low, high) || 1;
  const middle = frame.info.dimension > 1 ? 120 : 71;
  return (
    `<path d="M0 ${middle - 22}H96" class="grid"/>` +
    line(
      Array.from(values, (v, i) => [(96 * i) / (answer.frames - 1), middle - (18 * v) / largest]),
      'stroke="var(--fts-orange)" stroke-width="1.2"',
    )
  );
}
