// The first page: sensors and noise as the reader sets them, the field fitted to what is left, its equation, and the
// equation run forward.

import { ask, bytesOf } from "./engine.js";
import { equationHtml, equationText, general, termHtml } from "./terms.js";
import { lineOverTime } from "./view_scrubber.js";

const records = new WeakMap();
const SECONDS = 1.6; // for the whole record, run forward
// A solution is called right up to where it is off by half of the field.
const HALF = 0.5;

export function frontView() {
  return {
    resetLabel: "Reset",
    shown: ({ info }, name, value) =>
      name === "sensors"
        ? `${info.counts[value]} of ${info.points}, ${Math.round((100 * info.counts[value]) / info.points)} %`
        : `${Math.round(100 * info.levels[value])} %`,
    question: (frame) => ({ task: "fitted", question: questionOf(frame) }),
    draw(frame, answer) {
      if (frame.forward?.answer !== answer) frame.forward = null;
      const { info } = frame,
        xi = coefficientsOf(answer);
      frame.say(
        `<div class="fts-equation-line">${equationHtml(info.library, xi)}</div>${termChips(info, xi)}<div class="fts-soft">The field is off by ${general(100 * errorOf(frame, answer.u))} %. <button type="button" class="fts-run">Run it forward</button> ${frame.forward ? followed(frame) : ""}</div>`,
        equationText(info.library, xi),
      );
      frame.result.querySelector(".fts-run").onclick = () => runForward(frame, answer);
      drawMaps(frame, answer);
    },
  };
}

/** True values [n, frames], noise of deviation one, and the places of both. */
function recordOf({ source, info }) {
  if (!records.has(source)) {
    const bytes = bytesOf(source.get("data")).slice().buffer,
      size = info.points * info.frames;
    const levels = new Int16Array(bytes, 0, size),
      noise = new Int8Array(bytes, 2 * size, size);
    records.set(source, {
      truth: Float64Array.from(levels, (level) => info.step * level),
      noise: Float64Array.from(noise, (value) => value / info.noise_steps),
      x: places(info.low[0], info.high[0], info.points, info.points),
      t: places(info.low[1], info.high[1], info.frames, info.frames - 1),
    });
  }
  return records.get(source);
}

function places(low, high, count, parts) {
  return Float64Array.from({ length: count }, (_, i) => low + ((high - low) * i) / parts);
}

/** Rows of the sensors that are left, in order. */
function sensorsOf({ info, value }, count = info.counts[value("sensors")]) {
  return info.order.slice(0, count).sort((a, b) => a - b);
}

function questionOf(frame) {
  const { info } = frame,
    { x, t } = recordOf(frame),
    sensors = sensorsOf({ info, value: (name) => frame.value(name) });
  const setting = info.settings[frame.value("sensors")][frame.value("noise")];
  return {
    field: `${info.key} ${frame.value("sensors")} ${frame.value("noise")}`,
    samples: {
      low: info.low,
      high: info.high,
      sensors: Float64Array.from(sensors, (i) => x[i]),
      frames: t,
      values: samplesOf(frame, sensors),
      ...setting,
    },
    axes: [x, t],
    library: info.library,
    weak: info.weak,
    params: info.svws,
  };
}

function samplesOf(frame, sensors) {
  const { info } = frame,
    { truth, noise } = recordOf(frame),
    level = info.levels[frame.value("noise")] * info.deviation,
    values = new Float64Array(sensors.length * info.frames);
  sensors.forEach((row, i) => {
    for (let j = 0; j < info.frames; j++) {
      const at = row * info.frames + j;
      values[i * info.frames + j] = truth[at] + level * noise[at];
    }
  });
  return values;
}

function errorOf(frame, u) {
  const { truth } = recordOf(frame);
  let off = 0,
    size = 0;
  for (let i = 0; i < truth.length; i++) {
    off += (u[i] - truth[i]) ** 2;
    size += truth[i] ** 2;
  }
  return Math.sqrt(off / size);
}

/** Refitted on the rows of all systems, where these tell the terms apart. */
function coefficientsOf({ selection }) {
  return selection.pooled?.xi ?? selection.xi;
}

/** Every term of the library: green where it is selected and true, orange where selected only, gray elsewhere. */
function termChips(info, xi) {
  const chips = info.library.map(({ body }, j) => {
    const [kind, what] = xi[j]
      ? info.truth[j]
        ? ["fts-on", "selected, in the true equation"]
        : ["fts-wrong", "selected, not in the true equation"]
      : ["fts-off", info.truth[j] ? "not selected, in the true equation" : "not selected"];
    return `<span role="listitem" class="fts-term ${kind}" title="${what}">${termHtml(body)}<span class="fts-unseen">: ${what}</span></span>`;
  });
  return `<div class="fts-terms" role="list" aria-label="terms offered">${chips.join("")}</div>`;
}

async function runForward(frame, answer) {
  const { info } = frame,
    { t } = recordOf(frame);
  const every = info.points / info.shape[0],
    start = Float64Array.from({ length: info.shape[0] }, (_, i) => answer.u[i * every * info.frames]);
  const question = { library: info.library, xi: coefficientsOf(answer), start, times: t, step: info.time_step };
  const solution = await ask(`${frame.asker} forward`, frame.source, "forward", {
    ...question,
    length: info.high[0] - info.low[0],
  });
  if (!solution || frame.last !== answer) return;
  frame.forward = { ...solution, answer, until: 0 };
  const began = performance.now(),
    calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const show = () => {
    if (frame.forward?.answer !== answer) return;
    const share = calm ? 1 : Math.min(1, (performance.now() - began) / (1000 * SECONDS));
    frame.forward.until = Math.round(share * info.frames);
    drawMaps(frame, answer);
    if (share < 1) return requestAnimationFrame(show);
    frame.draw();
    frame.root.dataset.forward = frame.forward.reached;
  };
  show();
}

/** In words, how long the equation stays with the record. */
function followed(frame) {
  const { info, forward } = frame,
    { truth, t } = recordOf(frame),
    every = info.points / info.shape[0];
  for (let j = 0; j < info.frames; j++) {
    let off = 0;
    for (let i = 0; i < info.shape[0]; i++)
      off += (forward.u[j * info.shape[0] + i] - truth[i * every * info.frames + j]) ** 2;
    if (j >= forward.reached || Math.sqrt(off / info.shape[0]) > HALF * info.deviation)
      return `It stays with the record until t = ${general(t[j])}${j >= forward.reached ? ", where it grows without bound" : ""}.`;
  }
  return "It stays with the record to its end.";
}

function drawMaps(frame, answer) {
  const { info, width, forward } = frame,
    each = width >= 560 ? (width - 26) / 3 : (width - 13) / 2,
    { truth } = recordOf(frame);
  const every = info.points / info.shape[0],
    place = (at) => [Math.floor(at / info.frames) * every, at % info.frames];
  const sensors = sensorsOf({ info, value: (name) => frame.value(name) }),
    rowOf = new Map(sensors.map((row, i) => [Math.floor(row / every), i])),
    values = samplesOf(frame, sensors);
  const measured = (at) => {
    const i = rowOf.get(Math.floor(at / info.frames));
    return i === undefined ? Number.NaN : values[i * info.frames + (at % info.frames)];
  };
  const of = (u) => (at) => {
    const [i, j] = place(at);
    return u[i * info.frames + j];
  };
  const ahead = (at) => {
    const [i, j] = [Math.floor(at / info.frames), at % info.frames];
    return j < Math.min(forward.until, forward.reached) ? forward.u[j * info.shape[0] + i] : Number.NaN;
  };
  const last = forward ? ["the equation, run forward", ahead] : ["the truth, kept aside", of(truth)];
  frame.figure.innerHTML = [["what the sensors read", measured], ["the field fitted to it", of(answer.u)], last]
    .map(([name, at]) => lineOverTime(info, name, at, each))
    .join("");
}
