// Explorer 2: the patch grid over the field, the weak columns it gives, and STLSQ on them.

import { axes, image, label, scale, svg } from "./charts.js";
import { make } from "./frame.js";
import { fieldImage, signedImage } from "./palette.js";
import { ask } from "./engine.js";
import { equationText, general, termHtml } from "./terms.js";
import { sentence, shownRule } from "./view_selection.js";

const NAMES = ["x", "y", "z"];

export function patchesView() {
  const pictures = new Map();
  return {
    question: (frame) => ({ task: "system", question: systemQuestion(frame) }),
    shown(frame, name, value) {
      const { weak, dimension } = frame.info;
      if (name === "width_x") return `${weak.half_widths.slice(0, dimension).map((h) => general(h * value)).join(", ")} (×${general(value)})`;
      if (name === "width_t") return `${general(weak.half_widths.at(-1) * value)} (×${general(value)})`;
      if (name === "power") return String(value);
      return name.startsWith("phase") ? value.toFixed(2) : shownRule(frame, name, value);
    },
    async draw(frame, answer) {
      const { info } = frame;
      frame.say(sentence(info, answer.xi, "STLSQ on this system") + `<div class="fts-soft">Relative residual ‖Aξ − b‖²/‖b‖² = ${general(answer.risk)} on ${answer.b.length} patches. Under each column below: its coefficient on unit columns, which λ is compared with.</div>`, equationText(info.library, answer.xi));
      const picture = await background(frame, pictures);
      if (frame.last !== answer) return;
      frame.figure.replaceChildren(map(frame, answer, picture), tiles(frame, answer));
    },
  };
}

function systemQuestion(frame) {
  const { info } = frame, { weak, svws, dimension } = info;
  const phase = [...NAMES.slice(0, dimension), "t"].map((axis) => frame.value(`phase_${axis}`) ?? 0.5);
  const half_widths = weak.half_widths.map((h, a) => h * frame.value(a < dimension ? "width_x" : "width_t"));
  const params = { ...svws, ridge: frame.value("ridge") ?? svws.ridge };
  return { library: info.library, weak: { ...weak, half_widths, power: frame.value("power") }, phase, lam: svws.lam0 * frame.value("lam0_factor"), params };
}

/** The field's picture: x across and t up in 1D; in 2D x and y at the time of the middle patches. */
async function background(frame, pictures) {
  const { info } = frame, two = info.dimension > 1;
  if (!pictures.has(info.key)) {
    const shape = two ? [81, 81, 3] : [240, 160];
    const { u } = await ask(`${frame.asker} picture`, frame.source, "grid", { shape });
    const value = two ? (i, j) => u[(i * 81 + j) * 3 + 1] : (i, j) => u[i * 160 + j];
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < shape[0]; i++) for (let j = 0; j < shape[1]; j++) [low, high] = [Math.min(low, value(i, j)), Math.max(high, value(i, j))];
    pictures.set(info.key, fieldImage(shape[0], shape[1], value, low, high));
  }
  return pictures.get(info.key);
}

function map(frame, answer, picture) {
  const { info } = frame, { low, high } = info, across = 0, up = 1;
  const width = frame.width, height = Math.round(info.dimension > 1 ? Math.min(width, 420) : Math.min(340, Math.max(240, width * 0.5)));
  const wide = info.dimension > 1 ? Math.min(width, 440) : width;
  const box = { left: 46, right: wide - 12, top: 26, bottom: height - 42 };
  const x = scale(low[across], high[across], box.left, box.right), y = scale(low[up], high[up], box.bottom, box.top);
  let body = image(picture, box.left, box.top, box.right - box.left, box.bottom - box.top);
  body += axes(x, y, box, { x: "x", y: info.dimension > 1 ? "" : "" }) + label(12, box.top - 8, info.dimension > 1 ? "y" : "t", "start", "name");
  const [cx, cy] = [answer.centers[across], answer.centers[up]], { half_widths } = systemQuestion(frame).weak;
  const span = (s, c, h) => [Math.min(s(c - h), s(c + h)), Math.abs(s(c + h) - s(c - h))];
  for (const a of cx) for (const b of cy) body += `<circle cx="${x(a).toFixed(1)}" cy="${y(b).toFixed(1)}" r="1.8" fill="#fff" stroke="#000" stroke-width=".7"/>`;
  for (const [a, b] of [[cx[0], cy[0]], [cx[cx.length >> 1], cy[cy.length >> 1]]]) {
    const [px, w] = span(x, a, half_widths[across]), [py, h] = span(y, b, half_widths[up]);
    body += `<rect x="${px}" y="${py}" width="${w}" height="${h}" fill="#fff" fill-opacity=".28" stroke="#fff" stroke-width="1.6"/><rect x="${px - 1}" y="${py - 1}" width="${w + 2}" height="${h + 2}" fill="none" stroke="#000" stroke-width=".8"/>`;
  }
  const holder = make("div", { class: "fts-drag" });
  holder.innerHTML = svg(wide, height, body, `The field with the centers of ${answer.b.length} patches and two of the patches; drag to move the grid, or use the phase sliders`);
  drag(frame, holder, box, [cx, cy], [x, y]);
  return holder;
}

/** Dragging by one spacing is one period of the phase. */
function drag(frame, holder, box, centers, scales) {
  const names = frame.info.dimension > 1 ? ["phase_x", "phase_y"] : ["phase_x", "phase_t"];
  holder.onpointerdown = (event) => {
    const begin = { x: event.clientX, y: event.clientY, values: names.map((name) => frame.value(name)) };
    const spacing = centers.map((c, k) => Math.abs(scales[k](c[1] ?? c[0] + 1) - scales[k](c[0])));
    const move = (e) => {
      const shift = [(e.clientX - begin.x) / spacing[0], (begin.y - e.clientY) / spacing[1]];
      frame.set(Object.fromEntries(names.map((name, k) => [name, wrap(begin.values[k] + shift[k])])));
    };
    const stop = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
    event.preventDefault();
  };
}

function wrap(value) {
  const inside = Number((value - Math.floor(value)).toFixed(3));
  return inside >= 0.999 ? 0 : inside;
}

/** One small picture per column: the patches where they lie, blue below zero and orange above. */
function tiles(frame, answer) {
  const { library } = frame.info, { A, b, x, xi, residual, norms } = answer, J = library.length;
  const size = Math.max(...b.map(Math.abs)), holder = make("div", { class: frame.info.dimension > 1 ? "fts-tiles fts-wide" : "fts-tiles" });
  holder.append(tile(frame, "<i>b</i>", (l) => b[l], size, "left-hand side", ""));
  library.forEach((term, j) => {
    const column = (l) => A[l * J + j] / (norms[j] || 1);
    let largest = 0;
    for (let l = 0; l < b.length; l++) largest = Math.max(largest, Math.abs(column(l)));
    holder.append(tile(frame, termHtml(term.body), column, largest, xi[j] ? (x[j] < 0 ? "−" : "") + general(Math.abs(x[j])) : "dropped", xi[j] ? "fts-kept" : "fts-off"));
  });
  holder.append(tile(frame, "residual", (l) => residual[l], size, "scale of b", ""));
  return holder;
}

function tile(frame, title, value, largest, caption, kind) {
  const { patches } = frame.info.weak, two = patches.length > 2;
  // Patches run in C order; in 2D the times stand side by side.
  const [m, n, k] = two ? patches : [patches[0], 1, patches[1]];
  const url = two
    ? signedImage(m * k, n, (i, j) => value(((i % m) * n + j) * k + Math.floor(i / m)), largest)
    : signedImage(m, k, (i, j) => value(i * k + j), largest);
  const [w, h] = two ? [m * k * 5, n * 5] : [m * 6, k * 6], element = make("div", { class: `fts-tile ${kind}` });
  element.innerHTML = `${title}<svg viewBox="0 0 ${w} ${h}" aria-hidden="true">${image(url, 0, 0, w, h, false)}</svg>${caption}`;
  return element;
}
