// Supports from cross moments (fts/selection/support_search.py): a beam search that also removes terms, on matrices of J + 1 rows.

/** Cross risk of the support with each term, by Schur complements; Infinity where a term adds nothing reliable. */
export function extendedRisks(cross, own, n, support, reliability) {
  const J = n - 1,
    k = support.length,
    G = (i, j) => cross[(i + 1) * n + j + 1],
    W = (i, j) => own[(i + 1) * n + j + 1],
    c = (i) => cross[(i + 1) * n];
  const solved = solveRows(
    support.map((s) => [...support.map((t) => G(s, t)), ...Array.from({ length: J }, (_, j) => G(s, j)), c(s)]),
    k,
  );
  const risks = new Array(J).fill(Infinity);
  if (!solved) return risks;
  const base = cross[0] - support.reduce((total, s, a) => total + solved[a][J] * c(s), 0);
  for (let j = 0; j < J; j++) {
    if (support.includes(j)) continue;
    let schur = G(j, j),
      power = W(j, j),
      gain = c(j);
    support.forEach((s, a) => {
      const share = solved[a][j];
      schur -= G(s, j) * share;
      power -= 2 * W(s, j) * share;
      gain -= share * c(s);
      support.forEach((t, b) => (power += share * W(s, t) * solved[b][j]));
    });
    if (schur > 0 && schur > reliability * power) risks[j] = base - gain ** 2 / schur;
  }
  return risks;
}

/** Coefficients of a support, in units of the norms; nothing where its matrix is not positive. */
export function supportCoefficients(cross, n, support) {
  const solved = solveRows(
    support.map((s) => [...support.map((t) => cross[(s + 1) * n + t + 1]), cross[(s + 1) * n]]),
    support.length,
  );
  return solved?.map((row) => row[0]);
}

/** The best support found of one, two, ... terms, with its risk. */
export function proposeSupports(cross, own, n, { most, reliability, width }) {
  const usable = Array.from(
      { length: n - 1 },
      (_, j) => cross[(j + 1) * n + j + 1] > reliability * own[(j + 1) * n + j + 1],
    ),
    levels = [];
  let beam = [[]];
  for (let size = 1; size <= most && beam.length; size++) {
    const found = new Map();
    for (const support of beam)
      extendedRisks(cross, own, n, support, reliability).forEach((risk, j) => {
        const grown = [...support, j].sort((a, b) => a - b);
        if (usable[j] && risk < (found.get(grown.join())?.risk ?? Infinity))
          found.set(grown.join(), { support: grown, risk });
      });
    const level = [...found.values()].sort((a, b) => a.risk - b.risk).slice(0, width);
    if (level.length) levels.push(level);
    beam = level.map((one) => one.support);
  }
  return levels.map((level, i) => {
    const shorter = (levels[i + 1] ?? []).flatMap(({ support }) =>
      support.map((_, drop) => support.filter((_, at) => at !== drop)),
    );
    const tried = shorter.map((support) => ({
      support,
      risk: extendedRisks(cross, own, n, support.slice(0, -1), reliability)[support.at(-1)],
    }));
    return [...level, ...tried].reduce((best, one) => (one.risk < best.risk ? one : best));
  });
}

/** Rows [M | R] -> M^-1 R by elimination without pivots, or null when a pivot says that M is not positive. */
function solveRows(rows, k) {
  const A = rows.map((row) => Float64Array.from(row));
  for (let p = 0; p < k; p++) {
    if (!(A[p][p] > 0)) return null;
    for (let i = 0; i < k; i++) {
      const factor = A[i][p] / A[p][p];
      if (i !== p && factor !== 0) for (let j = p; j < A[i].length; j++) A[i][j] -= factor * A[p][j];
    }
  }
  return A.map((row, p) => row.slice(k).map((value) => value / row[p]));
}
