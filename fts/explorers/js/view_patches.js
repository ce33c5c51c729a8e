// Explorer 2: the patch grid over the field, the weak columns it gives, and STLSQ on them.

import { axes, image, label, scale, svg } from "./charts.js";
import { ask } from "./engine.js";
import { make } from "./frame.js";
import { fieldImage, paintSigned } from "./palette.js";
import { equationText, general, powerOfTen, termHtml } from "./terms.js";
import { errors, sentence, shownRule } from "./view_selection.js";

const NAMES = ["x", "y", "z"];

export function patchesView() {
  const pictures = new Map();
  let drawn = null;
  return {
    question: (frame) => ({ task: "system", question: systemQuestion(frame) }),
    shown(frame, name, value) {
      const { weak, dimension } = frame.info;
      if (name === "width_x")
        return `${weak.half_widths
          .slice(0, dimension)
          .map((h) => general(h * value))
          .join(", ")} (×${general(value)})`;
      if (name === "width_t") return `${general(weak.half_widths.at(-1) * value)} (×${general(value)})`;
      if (name === "power") return String(value);
      return name.startsWith("phase") ? value.toFixed(2) : shownRule(frame, name, value);
    },
    async draw(frame, answer) {
      const { info } = frame;
      frame.say(
        sentence(info, answer.xi, "STLSQ on this system") +
          emptyBecause(frame, answer) +
          errors(info, answer.pooled, "Least squares on its terms") +
          `<div class="fts-soft">Relative residual ‖Aξ − b‖²/‖b‖² = ${powerOfTen(general(answer.risk))} on ${answer.b.length} patches. Under each column below: its coefficient on unit columns, which λ is compared with.</div>`,
        equationText(info.library, answer.xi),
      );
      const picture = await background(frame, pictures),
        key = `${info.key} ${frame.width}`;
      if (frame.last !== answer) return;
      if (drawn?.key !== key) {
        drawn = {
          key,
          map: fieldMap(
            frame,
            picture,
            frame.width,
            "The field with the centers of the patches and two of the patches; drag to move the grid, or use the phase sliders",
          ),
          tiles: tiles(frame),
        };
        drag(frame, drawn.map.holder, drawn.map.scales);
        frame.figure.replaceChildren(drawn.map.holder, drawn.tiles.holder);
      }
      moveGrid(drawn.map, answer.centers, systemQuestion(frame).weak.half_widths);
      paintTiles(frame, drawn.tiles, answer);
    },
  };
}

/** Why no term is left, where none is: the threshold is absolute, and smaller patches make shorter columns. */
function emptyBecause(frame, { xi, largest }) {
  if (xi.some((each) => each)) return "";
  const lam = frame.info.svws.lam0 * frame.value("lam0_factor");
  return `<div>With all terms the largest coefficient on unit columns is ${general(largest)}, and λ = ${general(lam)} drops it. λ is an absolute threshold: smaller patches make shorter columns, so their coefficients on unit columns are smaller, whatever the noise. Lower λ with them.</div>`;
}

function systemQuestion(frame) {
  const { info } = frame,
    { weak, svws, dimension } = info;
  const phase = [...NAMES.slice(0, dimension), "t"].map((axis) => frame.value(`phase_${axis}`) ?? 0.5);
  const half_widths = weak.half_widths.map((h, a) => h * frame.value(a < dimension ? "width_x" : "width_t"));
  return {
    library: info.library,
    weak: { ...weak, half_widths, power: frame.value("power") },
    phase,
    lam: svws.lam0 * frame.value("lam0_factor"),
    params: svws,
  };
}

/** The field's picture: x across and t up in 1D; in 2D x and y at the time of the middle patches. */
export async function background(frame, pictures) {
  const { info } = frame,
    two = info.dimension > 1;
  if (!pictures.has(info.key)) {
    const shape = two ? [81, 81, 3] : [240, 160];
    const { u } = await ask(`${frame.asker} picture`, frame.source, "grid", { shape });
    const value = two ? (i, j) => u[(i * 81 + j) * 3 + 1] : (i, j) => u[i * 160 + j];
    let low = Infinity,
      high = -Infinity;
    for (let i = 0; i < shape[0]; i++)
      for (let j = 0; j < shape[1]; j++) [low, high] = [Math.min(low, value(i, j)), Math.max(high, value(i, j))];
    pictures.set(info.key, fieldImage(shape[0], shape[1], value, low, high));
  }
  return pictures.get(info.key);
}

/** The field and its axes, drawn once per width; what moves is a group above it. */
export function fieldMap(frame, picture, room, said) {
  const { info } = frame,
    { low, high } = info,
    two = info.dimension > 1,
    width = two ? Math.min(room, 440) : room;
  const height = Math.round(two ? Math.min(width, 420) : Math.min(340, Math.max(240, width * 0.5)));
  const box = { left: 46, right: width - 12, top: 26, bottom: height - 42 };
  const scales = [scale(low[0], high[0], box.left, box.right), scale(low[1], high[1], box.bottom, box.top)];
  const body =
    image(picture, box.left, box.top, box.right - box.left, box.bottom - box.top) +
    axes(...scales, box, "x") +
    label(12, box.top - 8, two ? "y" : "t", "start", "name");
  const holder = make("div");
  holder.innerHTML = svg(width, height, body + "<g></g>", said);
  return { holder, scales, moving: holder.querySelector("g") };
}

/** Centers as dots and two patches as boxes; each twice, dark under light, to be seen on any color. */
export function moveGrid({ scales: [x, y], moving }, [cx, cy], half_widths) {
  let dots = "";
  for (const a of cx) for (const b of cy) dots += `M${x(a).toFixed(1)} ${y(b).toFixed(1)}h0`;
  let body = `<path d="${dots}" stroke="#000" stroke-width="5" stroke-linecap="round"/><path d="${dots}" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/>`;
  for (const [a, b] of [
    [cx[0], cy[0]],
    [cx[cx.length >> 1], cy[cy.length >> 1]],
  ]) {
    const [left, top] = [x(a - half_widths[0]), y(b + half_widths[1])];
    const rectangle = `x="${left}" y="${top}" width="${x(a + half_widths[0]) - left}" height="${y(b - half_widths[1]) - top}"`;
    body += `<rect ${rectangle} fill="#fff" fill-opacity=".28" stroke="#000" stroke-width="3"/><rect ${rectangle} fill="none" stroke="#fff" stroke-width="1.5"/>`;
  }
  moving.innerHTML = body;
}

/** Dragging by one spacing is one period of the phase. */
function drag(frame, holder, scales) {
  holder.className = "fts-drag";
  const names = frame.info.dimension > 1 ? ["phase_x", "phase_y"] : ["phase_x", "phase_t"];
  holder.onpointerdown = (event) => {
    const begin = { x: event.clientX, y: event.clientY, values: names.map((name) => frame.value(name)) };
    const spacing = [0, 1].map((k) => {
      const [first, second] = frame.last.centers[k];
      return Math.abs(scales[k](second ?? first + 1) - scales[k](first));
    });
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

/** One small picture per column, made once: the patches where they lie, blue below zero and orange above. */
function tiles(frame) {
  const { library, dimension } = frame.info,
    holder = make("div", { class: dimension > 1 ? "fts-tiles fts-wide" : "fts-tiles" });
  const titles = [
    ["b", "<i>b</i>"],
    ...library.map((term) => [term.name, termHtml(term.body)]),
    ["residual", "residual"],
  ];
  holder.innerHTML = titles
    .map(
      ([name, title]) =>
        `<div class="fts-tile" data-name="${name}">${title}<canvas aria-hidden="true"></canvas><span></span></div>`,
    )
    .join("");
  return { holder, all: [...holder.children] };
}

function paintTiles(frame, { all }, answer) {
  const { library } = frame.info,
    { A, b, x, xi, residual, norms } = answer,
    J = library.length;
  const size = Math.max(...b.map(Math.abs));
  paintTile(frame, all[0], (l) => b[l], size, "right-hand side", "");
  library.forEach((_, j) => {
    let largest = 0;
    for (let l = 0; l < b.length; l++) largest = Math.max(largest, Math.abs(A[l * J + j]));
    const caption = xi[j] ? (x[j] < 0 ? "−" : "") + general(Math.abs(x[j])) : "dropped";
    paintTile(frame, all[j + 1], (l) => A[l * J + j], norms[j] ? largest : 1, caption, xi[j] ? "fts-kept" : "fts-off");
  });
  paintTile(frame, all[J + 1], (l) => residual[l], size, "scale of b", "");
}

function paintTile(frame, element, value, largest, caption, kind) {
  const { patches } = frame.info.weak,
    [canvas, text] = [element.querySelector("canvas"), element.lastElementChild];
  element.className = `fts-tile ${kind}`;
  element.dataset.tip = `${element.dataset.name}: largest entry ${general(largest)}, ${caption}`;
  text.textContent = caption;
  // Patches run in C order; in 2D the times stand side by side.
  if (patches.length > 2) {
    const [m, n, k] = patches;
    paintSigned(canvas, m * k, n, (i, j) => value(((i % m) * n + j) * k + Math.floor(i / m)), largest);
  } else paintSigned(canvas, patches[0], patches[1], (i, j) => value(i * patches[1] + j), largest);
}
