// Explorer 7: one field and two under the noise a reader chooses; proposals and coefficients from cross moments.

import { axes, label, line, scale, svg } from "./charts.js";
import { bytesOf } from "./engine.js";
import { proposeSupports, supportCoefficients } from "./supports.js";
import { equationHtml, equationText } from "./terms.js";

const FIELDS_OF = ["two fields", "one field"],
  COLORS_OF = ["var(--fts-blue)", "var(--fts-orange)"];

export function noiseView() {
  const kept = new Map();
  return {
    choiceLabel: "Problem",
    resetLabel: "Reset",
    shown: (frame, name, value) => (name === "level" ? `${Math.round(100 * frame.info.levels[value])} %` : undefined),
    answer(frame) {
      if (!kept.has(frame.info.key)) kept.set(frame.info.key, { moments: unpack(frame), searched: new Map() });
      const { moments, searched } = kept.get(frame.info.key),
        level = frame.value("level");
      if (!searched.has(level))
        searched.set(
          level,
          both(moments[level]).map(([cross, own]) => proposeSupports(cross, own, frame.info.size, frame.info.search)),
        );
      const found = searched.get(level),
        tolerance = frame.value("tolerance");
      return {
        moments,
        found,
        chosen: found.map((best, i) =>
          chosenOf(frame.info, both(moments[level])[i][0], moments[level].norms, best, tolerance),
        ),
      };
    },
    draw(frame, { moments, found, chosen }) {
      const texts = chosen.map(({ xi }) => equationText(frame.info.library, xi));
      const rows = chosen.map(
        ({ xi }, i) =>
          `<div><span style="color:${COLORS_OF[i]}">${FIELDS_OF[i]}</span>${right(frame, xi) ? ", the true terms" : ""}: ${equationHtml(frame.info.library, xi)}</div>`,
      );
      frame.say(rows.join(""), texts[0]);
      Object.assign(frame.root.dataset, { one: texts[1], right: chosen.map(({ xi }) => right(frame, xi)).join() });
      frame.figure.innerHTML = riskCurves(frame, found, chosen) + slopeCurves(frame, moments);
    },
  };
}

/** Moments of every level: norms, then the upper triangles of cross and own products. */
function unpack({ info, source }) {
  const bytes = bytesOf(source.get("data")),
    values = new Float32Array(bytes.slice().buffer),
    n = info.size,
    half = (n * (n + 1)) / 2;
  const square = (from) => {
    const M = new Float64Array(n * n);
    for (let i = 0, at = from; i < n; i++) for (let j = i; j < n; j++, at++) M[i * n + j] = M[j * n + i] = values[at];
    return M;
  };
  return info.levels.map((_, level) => {
    const from = level * (n + 2 * half);
    return { norms: values.slice(from, from + n), cross: square(from + n), own: square(from + n + half) };
  });
}

/** What two fields see, and one: products within a field are its own instruments. */
function both({ cross, own }) {
  return [
    [cross, own],
    [own, own],
  ];
}

/** The smallest support whose risk is within the tolerance of the lowest, with coefficients. */
function chosenOf(info, cross, norms, best, tolerance) {
  const limit = Math.min(cross[0], ...best.map((one) => one.risk)) + tolerance * cross[0];
  const support = cross[0] <= limit ? [] : best.find((one) => one.risk <= limit).support,
    xi = new Float64Array(info.size - 1);
  const values = supportCoefficients(cross, info.size, support) ?? [];
  support.forEach((j, a) => (xi[j] = (values[a] * norms[0]) / norms[j + 1]));
  return { support, xi };
}

function right({ info }, xi) {
  return info.truth.every((value, j) => (value !== 0) === (xi[j] !== 0));
}

function riskCurves(frame, found, chosen) {
  const { width } = frame,
    height = 220,
    box = { left: 56, right: width - 12, top: 26, bottom: height - 40 };
  const most = frame.info.search.most,
    all = found.flatMap((best) => best.map((one) => one.risk));
  const x = scale(1, most, box.left, box.right, { count: most }),
    y = scale(Math.min(0, ...all), Math.max(...all), box.bottom, box.top, { count: 4 });
  let body =
    axes(x, y, box, "terms in the best equation of that size") +
    label(4, 12, "share of the change left unexplained", "start", "name");
  body += line(
    [
      [box.left, y(0)],
      [box.right, y(0)],
    ],
    'stroke="var(--fts-soft)" stroke-dasharray="3 4"',
  );
  found.forEach((best, i) => {
    body += line(
      best.map((one, k) => [x(k + 1), y(one.risk)]),
      `stroke="${COLORS_OF[i]}" stroke-width="2.2"`,
    );
    best.forEach((one, k) => {
      const taken = chosen[i].support.length === k + 1,
        names = one.support.map((j) => frame.info.library[j].name).join(", ");
      body += `<circle cx="${x(k + 1)}" cy="${y(one.risk)}" r="${taken ? 7 : 3}" fill="${COLORS_OF[i]}" data-tip="${FIELDS_OF[i]}: ${names}, ${one.risk.toPrecision(3)}"/>`;
    });
  });
  return svg(
    width,
    height,
    body,
    `Unexplained share by number of terms; two fields choose ${chosen[0].support.length}, one field ${chosen[1].support.length}`,
  );
}

function slopeCurves(frame, moments) {
  const { info, width } = frame,
    height = 220,
    box = { left: 56, right: width - 12, top: 26, bottom: height - 40 };
  const true_ = info.truth.flatMap((value, j) => (value ? [j] : [])),
    last = info.levels.length - 1;
  const slopes = [0, 1].map((i) =>
    moments.map((one) =>
      (supportCoefficients(both(one)[i][0], info.size, true_) ?? []).map(
        (value, a) => (value * one.norms[0]) / one.norms[true_[a] + 1] / info.truth[true_[a]],
      ),
    ),
  );
  const all = slopes.flat(2),
    x = scale(info.levels[0], info.levels[last], box.left, box.right),
    y = scale(Math.min(0.9, ...all), Math.max(1.05, ...all), box.bottom, box.top, { count: 4 });
  const here = x(info.levels[frame.value("level")]);
  let body =
    axes(x, y, box, "noise, in deviations of the field") +
    label(4, 12, "coefficients of the true terms / true", "start", "name");
  body +=
    line(
      [
        [box.left, y(1)],
        [box.right, y(1)],
      ],
      'stroke="var(--fts-soft)" stroke-dasharray="3 4"',
    ) +
    line(
      [
        [here, box.top],
        [here, box.bottom],
      ],
      'stroke="var(--fts-soft)"',
    );
  slopes.forEach((rows, i) =>
    true_.forEach(
      (_, a) =>
        (body += line(
          rows.map((row, level) => [x(info.levels[level]), y(row[a])]),
          `stroke="${COLORS_OF[i]}" stroke-width="1.8"`,
        )),
    ),
  );
  return svg(
    width,
    height,
    body,
    "Coefficients over their true values against the noise: one field loses them, two fields keep them",
  );
}
