// A bump slides over a noisy field: the second derivative taken from the field, and moved onto the bump.

import { axes, label, line, scale, svg } from "./charts.js";
import { general } from "./terms.js";
import { arraysOf } from "./view_scrubber.js";

export function bumpView() {
  return {
    resetLabel: "Back to the beginning",
    shown: ({ info }, _name, value) => `row ${value + 1} of ${info.rows}`,
    answer: (frame) => ({ arrays: arraysOf(frame.source), k: frame.value("place") }),
    draw(frame, { arrays, k }) {
      const of = (name) => arrays[name].slice(0, k + 1);
      frame.say(
        `<div><span style="color:var(--fts-orange)">u<sub>xx</sub> at the point</span>, a row of the strong form: off by ${share(of("pointwise"), of("pointwise_exact"))} so far</div>` +
          `<div><span style="color:var(--fts-blue)">∫ ψ<sub>xx</sub> u</span>, a row of the weak form: off by ${share(of("weak"), of("weak_exact"))}</div>`,
        "",
      );
      frame.figure.innerHTML =
        pictureOf(frame, arrays, k, "u", "bump", "u with noise, and the bump ψ") +
        pictureOf(frame, arrays, k, "u_xx", null, "u_xx by differentiating it") +
        rowsOf(frame, arrays, k, "pointwise", "u_xx at the point, row after row", "var(--fts-orange)") +
        rowsOf(frame, arrays, k, "weak", "∫ ψ_xx u, row after row", "var(--fts-blue)");
    },
  };
}

function share(values, exact) {
  let off = 0,
    size = 0;
  for (let i = 0; i < values.length; i++) {
    off += (values[i] - exact[i]) ** 2;
    size += exact[i] ** 2;
  }
  const value = Math.sqrt(off / size);
  return value >= 10 ? `${general(value)} times` : `${general(100 * value)} %`;
}

/** A function of x, with the bump where it stands now. */
function pictureOf({ info, width }, arrays, k, name, bump, title) {
  const height = 150,
    box = { left: 56, right: width - 12, top: 22, bottom: height - 34 },
    values = arrays[name],
    most = Math.max(...values.map(Math.abs));
  const x = scale(arrays.x[0], arrays.x.at(-1), box.left, box.right),
    y = scale(-most, most, box.bottom, box.top, { count: 3 });
  const place = (i) => arrays.x[i],
    center = arrays.centers[k],
    inside = Array.from(values.keys()).filter((i) => Math.abs(place(i) - center) <= info.half_width);
  let body = axes(x, y, box, "x") + label(4, 12, title, "start", "name");
  const band = [x(center - info.half_width), x(center + info.half_width)];
  body += `<rect x="${band[0]}" y="${box.top}" width="${band[1] - band[0]}" height="${box.bottom - box.top}" fill="var(--fts-green)" opacity=".12"/>`;
  body += line(
    inside.map((i) => [x(place(i)), y(0.9 * most * (1 - ((place(i) - center) / info.half_width) ** 2) ** info.power)]),
    'stroke="var(--fts-green)" stroke-width="2"',
  );
  body += line(
    Array.from(values, (value, i) => [x(place(i)), y(value)]),
    `stroke="${bump ? "var(--fts-ink)" : "var(--fts-orange)"}" stroke-width="1.2"`,
  );
  return svg(width, height, body, `${title}; the bump stands at x = ${general(center)}`);
}

/** One entry of the column per position of the bump: filled up to the present one. */
function rowsOf({ info, width: whole }, arrays, k, name, title, color) {
  const width = whole >= 560 ? (whole - 13) / 2 : whole,
    height = 170,
    box = { left: 56, right: width - 12, top: 22, bottom: height - 34 },
    exact = arrays[`${name}_exact`],
    most = 1.8 * Math.max(...exact.map(Math.abs));
  const x = scale(arrays.x[0], arrays.x.at(-1), box.left, box.right),
    y = scale(-most, most, box.bottom, box.top, { count: 3 });
  let body = axes(x, y, box, "center of the bump") + label(4, 12, title, "start", "name");
  body += line(
    Array.from(exact, (value, i) => [x(arrays.centers[i]), y(value)]),
    'stroke="var(--fts-soft)" stroke-width="1.4" stroke-dasharray="4 3"',
  );
  for (let i = 0; i <= k; i++) {
    const value = Math.max(-most, Math.min(most, arrays[name][i]));
    body += `<circle cx="${x(arrays.centers[i])}" cy="${y(value)}" r="${i === k ? 5 : 3}" fill="${color}" data-tip="${title.split(",")[0]} = ${general(arrays[name][i])}, ${general(exact[i])} without noise"/>`;
  }
  return svg(width, height, body, `${title}: ${k + 1} of ${info.rows}; dashed without noise`);
}
