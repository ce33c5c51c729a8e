// Explorer 3: STLSQ on one system along its threshold, beside SVWS on all of them.

import { axes, label, line, scale, svg, termSvg } from "./charts.js";
import { COLORS } from "./palette.js";
import { equationText, general } from "./terms.js";
import { errors, sentence, shownRule, svwsQuestion } from "./view_selection.js";

const DASHES = ["", "6 3", "2 3"];
const LEFT = 52,
  RIGHT = 70;
const FACTORS = Array.from({ length: 97 }, (_, k) => 2 ** (k / 12 - 5));

export function pathView() {
  return {
    question(frame) {
      const question = svwsQuestion(frame),
        lam0 = frame.info.svws.lam0;
      question.params = { ...question.params, lam0 };
      const index = Math.min(frame.value("system"), question.params.generation + question.params.validation + 1) - 1;
      return {
        task: "path",
        question: { ...question, index, lam: lam0 * frame.value("lam0_factor"), lams: FACTORS.map((f) => f * lam0) },
      };
    },
    shown: (frame, name, value) =>
      name === "lam0_factor"
        ? `${general(frame.info.svws.lam0 * value)} (×${general(value)} λ₀)`
        : shownRule(frame, name, value),
    draw(frame, answer) {
      const { info } = frame,
        lam = general(info.svws.lam0 * frame.value("lam0_factor"));
      const open = frame.result.querySelector(".fts-more")?.open ? " open" : "";
      frame.say(
        sentence(info, answer.xi, `STLSQ, one system, λ = ${lam}`) +
          `<details class="fts-more"${open}><summary>Beside it, SVWS on all systems</summary>` +
          sentence(info, answer.selection.xi, "SVWS") +
          errors(info, answer.selection.pooled, "Its terms on the rows of all systems") +
          "</details>",
        equationText(info.library, answer.xi),
      );
      frame.root.dataset.svws = equationText(info.library, answer.selection.xi);
      frame.figure.innerHTML = path(frame, answer, frame.width);
    },
    /** The coefficients at the threshold under the pointer. */
    hover(frame, event) {
      const picture = frame.figure.firstElementChild.getBoundingClientRect(),
        lam0 = frame.info.svws.lam0;
      const share = (event.clientX - picture.left - LEFT) / (picture.width - LEFT - RIGHT);
      if (share < 0 || share > 1) return "";
      const at = Math.round(share * (FACTORS.length - 1)),
        row = frame.last.along[at];
      const kept = frame.info.library.flatMap((term, j) =>
        row[j] ? [`${term.name} ${general(Math.abs(row[j]))}`] : [],
      );
      return `λ = ${general(lam0 * FACTORS[at])}: ${kept.join(", ") || "no term"}`;
    },
  };
}

function path(frame, answer, width) {
  const { library, svws } = frame.info,
    lams = FACTORS.map((f) => f * svws.lam0),
    height = Math.round(Math.min(380, Math.max(300, width * 0.55)));
  const sizes = answer.along
    .flat()
    .map(Math.abs)
    .filter((v) => v > 0);
  const box = { left: LEFT, right: width - RIGHT, top: 44, bottom: height - 42 };
  const x = scale(lams[0], lams.at(-1), box.left, box.right, { log: true });
  const y = scale(Math.min(...sizes, lams[0]) * 0.8, Math.max(...sizes, lams.at(-1)) * 1.25, box.bottom, box.top, {
    log: true,
  });
  const [m0, m1] = [svws.multipliers[0], svws.multipliers.at(-1)].map((m) => x(m * svws.lam0));
  let body = `<rect x="${m0}" y="${box.top}" width="${m1 - m0}" height="${box.bottom - box.top}" fill="var(--fts-soft)" opacity=".12"/>`;
  body += label((m0 + m1) / 2, box.top - 8, "SVWS thresholds", "middle", "soft");
  body += axes(x, y, box, "threshold λ") + label(4, 12, "size on unit columns", "start", "name");
  body +=
    line(
      [
        [x(lams[0]), y(lams[0])],
        [x(lams.at(-1)), y(lams.at(-1))],
      ],
      'stroke="var(--fts-soft)" stroke-dasharray="3 3"',
    ) + label(x(lams[62]) + 8, y(lams[62]) + 16, "dropped below", "start", "soft");
  body += terms(library, answer, lams, x, y, box);
  const now = x(svws.lam0 * frame.value("lam0_factor"));
  body += `<path d="M${now} ${box.top}V${box.bottom}" stroke="var(--fts-orange)" stroke-width="2"/>`;
  const kept =
    library
      .filter((_, j) => answer.xi[j] !== 0)
      .map((term) => term.name)
      .join(", ") || "no term";
  return svg(
    width,
    height,
    body,
    `Normalized coefficients along the threshold; at the chosen threshold STLSQ keeps ${kept}`,
  );
}

function terms(library, answer, lams, x, y, box) {
  let body = "";
  const ends = [];
  library.forEach((term, j) => {
    const values = answer.along.map((row) => Math.abs(row[j])),
      last = values.findLastIndex((v) => v > 0);
    if (last < 0) return;
    const color = COLORS[j % COLORS.length],
      dash = DASHES[Math.floor(j / COLORS.length)],
      thick = answer.selection.support.includes(j);
    const points = lams.slice(0, last + 1).map((lam, k) => [x(lam), y(values[k])]);
    body += line(points, `stroke="${color}" stroke-width="${thick ? 3 : 1.5}" stroke-dasharray="${dash}"`);
    body += `<circle cx="${points.at(-1)[0]}" cy="${points.at(-1)[1]}" r="${thick ? 4.5 : 3}" fill="${color}"/>`;
    ends.push({ at: points.at(-1), text: termSvg(term.body) });
  });
  // Labels beside the last points, pushed apart where they would overlap.
  ends.sort((a, b) => a.at[1] - b.at[1]);
  const placed = [];
  for (const { at, text } of ends) {
    let [px, py] = [at[0] + 7, at[1] + 4];
    while (placed.some(([qx, qy]) => Math.abs(qx - px) < 44 && Math.abs(qy - py) < 13)) py += 13;
    placed.push([px, py]);
    body += label(Math.min(px, box.right + 8), Math.min(py, box.bottom - 2), text);
  }
  return body;
}
