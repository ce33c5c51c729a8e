// Explorer 8: several runs of one experiment; the reader takes runs away, and the equation is chosen from the others.

import { axes, label, line, scale, svg } from "./charts.js";
import { bytesOf } from "./engine.js";
import { proposeSupports, supportCoefficients } from "./supports.js";
import { equationHtml, equationText } from "./terms.js";

const KEPT_COLOR = "var(--fts-blue)",
  AWAY_COLOR = "var(--fts-orange)";

export function experimentsView() {
  const unpacked = new Map();
  return {
    resetLabel: "All runs",
    shown: (_, name, value) => (name.startsWith("run") ? (value ? "in" : "taken away") : undefined),
    answer(frame) {
      const { info } = frame;
      if (!unpacked.has(info.key)) unpacked.set(info.key, momentsOfRuns(frame));
      return chooseFromRuns(
        unpacked.get(info.key),
        unpacked.get(info.key).map((_, run) => frame.value(`run_${run + 1}`) === 1),
        info,
        frame.value("factor"),
      );
    },
    draw(frame, { sizes, chosen, kept }) {
      const { info } = frame,
        right = info.truth.every((value, j) => (value !== 0) === (chosen.xi[j] !== 0)),
        text = (of) => of(info.library, chosen.xi).replace(/t(?=<\/sub> =| =)/, info.target.slice(2));
      const rows = [`<div>${text(equationHtml)}${right ? ", the true terms" : ""}</div>`];
      rows.push(`<div class="fts-soft">from ${kept} of ${info.runs} runs; unexplained there ${percent(chosen.risk)}`);
      rows.push(chosen.away === null ? "</div>" : `, in those taken away ${percent(chosen.away)}</div>`);
      frame.say(rows.join(""), text(equationText));
      Object.assign(frame.root.dataset, { right, kept, away: chosen.away ?? "" });
      frame.figure.innerHTML = runCurves(frame, sizes, chosen);
    },
  };
}

/** Products of [b, A] run by run, from upper triangles. */
function momentsOfRuns({ info, source }) {
  const values = new Float64Array(bytesOf(source.get("data")).slice().buffer),
    n = info.size;
  let at = 0;
  return Array.from({ length: info.runs }, () => {
    const M = new Float64Array(n * n);
    for (let i = 0; i < n; i++) for (let j = i; j < n; j++, at++) M[i * n + j] = M[j * n + i] = values[at];
    return M;
  });
}

/** The best support of every size on the runs kept, what it leaves there and in the others, and the one chosen. */
export function chooseFromRuns(runs, inside, { size, search, norms }, factor) {
  const sum = (wanted) => {
    const total = new Float64Array(size * size);
    runs.forEach((M, run) => {
      if (inside[run] === wanted) for (let i = 0; i < total.length; i++) total[i] += M[i];
    });
    return total;
  };
  const kept = inside.filter(Boolean).length,
    own = sum(true),
    others = sum(false);
  const sizes = (kept ? proposeSupports(own, own, size, search) : []).flatMap(({ support }) => {
    const x = supportCoefficients(own, size, support);
    if (!x) return [];
    const away = kept < runs.length ? leftOver(others, size, support, x) : null;
    return [{ support, x, risk: leftOver(own, size, support, x), away }];
  });
  const least = Math.min(...sizes.map(({ risk }) => risk)),
    empty = { support: [], x: [], risk: 1, away: kept < runs.length ? 1 : null };
  const chosen = sizes.find(({ risk }) => risk <= factor * least) ?? empty,
    xi = new Float64Array(size - 1);
  chosen.support.forEach((j, a) => (xi[j] = chosen.x[a] / norms[j]));
  return { sizes, kept, chosen: { ...chosen, xi } };
}

/** What coefficients leave of b, as a share of its square. */
function leftOver(M, size, support, x) {
  let total = M[0];
  support.forEach((j, a) => {
    total -= 2 * x[a] * M[j + 1];
    support.forEach((k, b) => (total += x[a] * x[b] * M[(j + 1) * size + k + 1]));
  });
  return Math.max(total / M[0], 1e-12);
}

function percent(share) {
  return `${Number((100 * share).toPrecision(2))} %`;
}

function runCurves(frame, sizes, chosen) {
  const { width, info } = frame,
    height = 260,
    box = { left: 62, right: width - 12, top: 40, bottom: height - 40 };
  const curves = [
    [KEPT_COLOR, "runs kept", ({ risk }) => risk],
    [AWAY_COLOR, "runs taken away", ({ away }) => away],
  ].filter(([, , of]) => sizes.length && of(sizes[0]) !== null);
  const all = curves.flatMap(([, , of]) => sizes.map((each) => Math.min(of(each), 10))),
    x = scale(1, info.search.most, box.left, box.right, { count: info.search.most }),
    y = scale(Math.min(0.5, ...all) / 1.5, Math.max(1, ...all) * 1.5, box.bottom, box.top, { log: true });
  let body =
    axes(x, y, box, "terms in the best equation of that size") +
    label(4, 12, "share of the acceleration left unexplained", "start", "name");
  curves.forEach(([color, name, of], i) => {
    const points = sizes.map((each) => [x(each.support.length), y(Math.min(of(each), 10))]);
    body += line(points, `stroke="${color}" stroke-width="2.2"`);
    body += `<circle cx="${box.left + 12 + 130 * i}" cy="28" r="4" fill="${color}"/>`;
    body += label(box.left + 20 + 130 * i, 32, name, "start", "soft");
    sizes.forEach((each, k) => {
      const names = each.support.map((j) => info.library[j].name).join(", "),
        taken = each.support === chosen.support;
      body += `<circle cx="${points[k][0]}" cy="${points[k][1]}" r="${taken ? 7 : 3}" fill="${color}" data-tip="${names}: ${percent(of(each))} of ${name} unexplained"/>`;
    });
  });
  return svg(width, height, body, `Unexplained share by number of terms; chosen are ${chosen.support.length} terms`);
}
