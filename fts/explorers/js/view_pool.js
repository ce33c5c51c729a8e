// Explorer 6: the frozen pool of a symbolic run, chosen from again as the penalty of complexity changes.

import { axes, label, line, scale, svg } from "./charts.js";
import { general } from "./terms.js";

export function poolView() {
  return {
    choiceLabel: "Noise and field",
    shown: (frame, name, value) => (name === "run" ? `seed ${frame.info.seeds[placeOf(frame, value)]}` : undefined),
    answer: (frame) => ({
      order: ordered(frame.info.pools[placeOf(frame, frame.value("run"))], frame.value("penalty")),
    }),
    draw(frame, { order }) {
      const chosen = order[0],
        text = functionText(chosen);
      frame.say(
        `<div><span class="fts-soft">Chosen of ${order.length} families:</span> q(u) = ${text.replace(/\^(-?[\d.e-]+)/g, "<sup>$1</sup>")}</div>`,
        text,
      );
      frame.root.dataset.family = chosen.family;
      frame.figure.innerHTML = scoreBars(frame, order) + functionCurves(frame, chosen);
    },
  };
}

function placeOf(frame, run) {
  return Math.min(run, frame.info.pools.length) - 1;
}

/** The pool by risk + penalty * complexity. */
function ordered(pool, penalty) {
  return pool.map((one) => ({ ...one, score: one.risk + penalty * one.complexity })).sort((a, b) => a.score - b.score);
}

function sumOf(powers, u) {
  return powers.reduce((total, [exponent, coefficient]) => total + coefficient * u ** exponent, 0);
}

function functionAt({ numerator, denominator }, u) {
  return sumOf(numerator, u) / (1 + sumOf(denominator, u));
}

function functionText({ numerator, denominator }) {
  const sum = (powers) =>
    powers
      .map(([e, c]) => `${general(c)}${e === 0 ? "" : ` u^${Number(e.toPrecision(4))}`}`)
      .join(" + ")
      .replaceAll("+ −", "− ")
      .replaceAll("+ -", "- ");
  return denominator.length ? `(${sum(numerator)}) / (1 + ${sum(denominator)})` : sum(numerator);
}

function scoreBars(frame, order) {
  const { width } = frame,
    row = 34,
    height = 12 + row * order.length + 40,
    box = { left: 8, right: width - 12, top: 6, bottom: height - 38 };
  const most = Math.max(...order.slice(0, 4).map((one) => one.score)) * 1.15,
    x = scale(0, most, box.left, box.right),
    y = scale(0, 1, box.bottom, box.top);
  y.ticks = [];
  let body = axes(x, y, box, "held-out risk (blue, gray) + penalty (orange)");
  order.forEach((one, j) => {
    const top = box.top + row * j,
      inside = (value) => Math.min(x(value), box.right),
      split = inside(one.risk);
    body += label(box.left + 4, top + 13, one.family.replaceAll("*", " "), "start", j ? "soft" : "name");
    body += `<rect x="${box.left}" y="${top + 17}" width="${split - box.left}" height="10" fill="${j ? "var(--fts-soft)" : "var(--fts-blue)"}"/>`;
    body += `<rect x="${split}" y="${top + 17}" width="${Math.max(0, inside(one.score) - split)}" height="10" fill="var(--fts-orange)"/>`;
  });
  return svg(
    width,
    height,
    body,
    `Scores of ${order.length} families; the lowest is ${order[0].family} with ${general(order[0].score)}`,
  );
}

function functionCurves(frame, chosen) {
  const { info, width } = frame,
    height = 230,
    box = { left: 52, right: width - 12, top: 26, bottom: height - 40 };
  const states = Array.from({ length: 81 }, (_, i) => info.low + ((info.high - info.low) * i) / 80);
  const centered = (one) => {
    const values = states.map((u) => functionAt(one, u)),
      mean = values.reduce((a, b) => a + b) / values.length;
    return values.map((value) => value - mean);
  };
  const [truth, found] = [info.truth, chosen].map(centered),
    all = [...truth, ...found];
  const x = scale(info.low, info.high, box.left, box.right),
    y = scale(Math.min(...all), Math.max(...all), box.bottom, box.top, { count: 4 });
  const curve = (values, attributes) =>
    line(
      values.map((value, i) => [x(states[i]), y(value)]),
      attributes,
    );
  const body =
    axes(x, y, box, "u") +
    label(4, 12, "q(u) up to a constant: chosen (blue), true (dashed)", "start", "name") +
    curve(found, 'stroke="var(--fts-blue)" stroke-width="2.4"') +
    curve(truth, 'stroke="var(--fts-soft)" stroke-width="1.6" stroke-dasharray="5 4"');
  return svg(width, height, body, `The chosen function ${functionText(chosen)} beside the true one`);
}
