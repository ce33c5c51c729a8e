// Phases of the offered seeds as NumPy drew them: the same systems in both languages, without its generator here.
// DRAWN, base64 of float64 numbers by seed, stands before this text (fts/explorers/explorer.py).

/** One phase per row: n systems on d spatial axes and time. */
export function drawnPhases(seed, n, d) {
  if (!(seed in DRAWN)) throw new Error(`no phases were sent for the seed ${seed}`);
  const flat = new Float64Array(Uint8Array.from(atob(DRAWN[seed]), (c) => c.charCodeAt(0)).buffer),
    axes = d + 1;
  if (n * axes > flat.length) throw new Error(`${n} systems on ${axes} axes need more phases than were sent`);
  return Array.from({ length: n }, (_, i) => Array.from(flat.subarray(i * axes, (i + 1) * axes)));
}
