// Small SVG charts, drawn at the width they are shown at, so that text keeps its size on a phone.

import { powerOfTen } from "./terms.js";

/** An SVG of the given size; `label` is what a screen reader says. */
export function svg(width, height, body, label) {
  return `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeText(label)}">${body}</svg>`;
}

/** A linear or logarithmic map from values to pixels, with its ticks. */
export function scale(low, high, from, to, { log = false, count = 5 } = {}) {
  const f = log ? Math.log10 : (v) => v;
  const map = (value) => from + ((f(value) - f(low)) / (f(high) - f(low) || 1)) * (to - from);
  map.ticks = log ? decades(low, high) : roundTicks(low, high, count);
  return map;
}

/** Axes with ticks, and the name of the lower one; `x` and `y` are scales, the box is {left, right, top, bottom}. */
export function axes(x, y, box, name) {
  let body = `<path class="axis" d="M${box.left} ${box.top}V${box.bottom}H${box.right}"/>`;
  for (const tick of x.ticks)
    body +=
      `<path class="axis" d="M${r(x(tick))} ${box.bottom}v4"/>` +
      label(x(tick), box.bottom + 16, shortNumber(tick), "middle");
  for (const tick of y.ticks)
    body +=
      `<path class="axis" d="M${box.left} ${r(y(tick))}h-4"/>` +
      label(box.left - 7, y(tick) + 4, shortNumber(tick), "end");
  return body + label((box.left + box.right) / 2, box.bottom + 32, name, "middle", "name");
}

export function label(x, y, text, anchor = "start", kind = "") {
  return `<text x="${r(x)}" y="${r(y)}" text-anchor="${anchor}" class="${kind}">${text}</text>`;
}

/** A polyline through points [[x, y], ...], broken where y is null. */
export function line(points, attributes) {
  let d = "",
    pen = false;
  for (const [x, y] of points) {
    if (y === null) pen = false;
    else {
      d += `${pen ? "L" : "M"}${r(x)} ${r(y)}`;
      pen = true;
    }
  }
  return `<path fill="none" d="${d}" ${attributes}/>`;
}

export function image(url, x, y, width, height) {
  return `<image href="${url}" x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}" preserveAspectRatio="none"/>`;
}

/** A term's text for SVG, with sub- and superscripts as small shifted spans. */
export function termSvg(body) {
  const small = (text, shift) => `<tspan dy="${shift}" font-size="80%">${text}</tspan><tspan dy="${-shift}">​</tspan>`;
  return body
    .replace(/D_([xyz]+)/g, (_, s) => "∂" + small(s, 3))
    .replace(/\bu_([xyzt]+)/g, (_, s) => "<tspan font-style='italic'>u</tspan>" + small(s, 3))
    .replace(/\bu(?=$|[\^*)\s])/g, "<tspan font-style='italic'>u</tspan>")
    .replace(/\^(-?[\d.]+)/g, (_, s) => small(s, -4))
    .replaceAll("*", " ");
}

function shortNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e4 || size < 1e-3) return (value < 0 ? "−" : "") + powerOfTen(size.toExponential(0));
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

function roundTicks(low, high, count) {
  const raw = (high - low) / count,
    ten = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

function decades(low, high) {
  if (high / low < 4) return roundTicks(low, high, 3);
  const ticks = [],
    all = Math.log10(high / low) < 1.5;
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const m of all ? [1, 2, 5] : [1]) {
      const tick = m * 10 ** e;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  const skip = Math.ceil(ticks.length / 5);
  return ticks.filter((_, i) => i % skip === 0);
}

function escapeText(text) {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

function r(value) {
  return Math.round(value * 100) / 100;
}
