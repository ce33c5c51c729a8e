// Explorer 7: sensors taken away, and what a separable and a travelling kernel make of those that stay.

import { axes, label, line, scale, svg } from "./charts.js";
import { equationHtml, equationText, general } from "./terms.js";
import { arraysOf, lineOverTime } from "./view_scrubber.js";

const KERNELS = { separable: "var(--fts-orange)", travelling: "var(--fts-blue)" };

export function sensorsView() {
  return {
    resetLabel: "All sensors back",
    choiceLabel: "Layout",
    answer: (frame) => ({ arrays: arraysOf(frame.source), k: frame.value("taken") }),
    shown: (frame, _name, value) => `${frame.info.counts[value]} sensors`,
    draw(frame, { arrays, k }) {
      const { info } = frame,
        sides = Object.keys(KERNELS).map((kernel) => [kernel, kernelAt(arrays, kernel, k, info.library.length)]);
      frame.say(
        sides.map(([kernel, side]) => kernelLine(info, kernel, side)).join(""),
        equationText(info.library, sides[1][1].xi),
      );
      frame.root.dataset.separable = equationText(info.library, sides[0][1].xi);
      frame.figure.innerHTML = sensorFields(frame, arrays, sides, k) + errorCurves(frame, arrays, k);
    },
  };
}

/** One kernel's field of the k-th number of sensors: error, terms, and the value at a flat place. */
function kernelAt(arrays, kernel, k, J) {
  const size = arrays.truth.length,
    values = arrays[`${kernel}_fields`],
    [low, high] = arrays[`${kernel}_ranges`].slice(2 * k, 2 * k + 2);
  return {
    error: arrays[`${kernel}_error`][k],
    exact: Boolean(arrays[`${kernel}_exact`][k]),
    xi: Array.from(arrays[`${kernel}_xi`].slice(J * k, J * (k + 1))),
    at: (place) => low + ((high - low) * values[size * k + place]) / 255,
  };
}

function kernelLine(info, kernel, { error, exact, xi }) {
  const found = exact ? '<span class="fts-good">the true terms</span>' : '<span class="fts-bad">other terms</span>';
  return `<div><span class="fts-soft">${kernel} kernel:</span> field error ${general(error)}, ${found}</div><div class="fts-equation-line">${equationHtml(info.library, xi)}</div>`;
}

function sensorFields(frame, arrays, sides, k) {
  const { info, width } = frame,
    each = width >= 560 ? (width - 26) / 3 : (width - 13) / 2;
  const truth = (place) => info.lowest + ((info.highest - info.lowest) * arrays.truth[place]) / 255;
  const marks = (x, box) =>
    info.sensors[k]
      .map((place) => `<path d="M${x(place).toFixed(1)} ${box.bottom}V${box.top}" stroke="#fff" stroke-opacity=".4"/>`)
      .join("");
  const shown = [["truth, sensors", truth, marks], ...sides.map(([kernel, { at }]) => [kernel, at])];
  return shown.map(([name, at, over]) => lineOverTime(info, name, at, each, over)).join("");
}

function errorCurves(frame, arrays, k) {
  const { info, width } = frame,
    { counts } = info,
    height = 210,
    box = { left: 52, right: width - 12, top: 26, bottom: height - 40 };
  const every = Object.keys(KERNELS).flatMap((kernel) => Array.from(arrays[`${kernel}_error`]));
  const x = scale(0.9 * Math.min(...counts), 1.1 * Math.max(...counts), box.left, box.right, { log: true }),
    y = scale(0.7 * Math.min(...every), 1.4 * Math.max(...every), box.bottom, box.top, { log: true });
  let body = axes(x, y, box, "sensors (filled: the true terms)") + label(4, 12, "field error", "start", "name");
  for (const [kernel, color] of Object.entries(KERNELS)) {
    const errors = arrays[`${kernel}_error`],
      exact = arrays[`${kernel}_exact`];
    body += line(
      counts.map((n, i) => [x(n), y(errors[i])]),
      `stroke="${color}" stroke-width="1.6"`,
    );
    counts.forEach((n, i) => {
      body += `<circle cx="${x(n)}" cy="${y(errors[i])}" r="${i === k ? 6 : 4}" fill="${exact[i] ? color : "var(--fts-page)"}" stroke="${color}" stroke-width="1.6" data-tip="${kernel}, ${n} sensors: field error ${general(errors[i])}"/>`;
    });
  }
  body += `<path d="M${x(counts[k])} ${box.top}V${box.bottom}" stroke="var(--fts-soft)" stroke-dasharray="3 3"/>`;
  body += label(
    box.right,
    12,
    Object.entries(KERNELS)
      .map(([kernel, color]) => `<tspan fill="${color}">● ${kernel}</tspan>`)
      .join("  "),
    "end",
  );
  return svg(
    width,
    height,
    body,
    `Field error against the number of sensors; with ${counts[k]} it is ${general(arrays.separable_error[k])} for the separable and ${general(arrays.travelling_error[k])} for the travelling kernel`,
  );
}
