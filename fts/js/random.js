// NumPy's default_rng(seed).random(), bit for bit, so that a phase seed means the same systems in both languages.
// SeedSequence spreads the seed over a pool of four words; PCG64 (XSL-RR 128/64) draws from it.

const WORD = 0xffffffffn;
const LONG = (1n << 64n) - 1n;
const WIDE = (1n << 128n) - 1n;
const STEP = (2549297995355413924n << 64n) + 4865540595714422341n;

/** n uniform doubles in [0, 1), the first n of numpy.random.default_rng(seed).random(n). */
export function uniforms(seed, n) {
  const [high, low, streamHigh, streamLow] = seedWords(BigInt(seed));
  const increment = ((((streamHigh << 64n) | streamLow) << 1n) | 1n) & WIDE;
  const next = (state) => (state * STEP + increment) & WIDE;
  let state = next((next(0n) + ((high << 64n) | low)) & WIDE);
  const values = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    state = next(state);
    const mixed = (state >> 64n) ^ (state & LONG);
    const turn = state >> 122n;
    const rotated = ((mixed >> turn) | (mixed << ((64n - turn) & 63n))) & LONG;
    values[i] = Number(rotated >> 11n) / 9007199254740992;
  }
  return values;
}

/** One phase per row: n systems on d spatial axes and time. */
export function drawPhases(seed, n, d) {
  const flat = uniforms(seed, n * (d + 1));
  return Array.from({ length: n }, (_, i) => Array.from(flat.subarray(i * (d + 1), (i + 1) * (d + 1))));
}

function seedWords(seed) {
  const entropy = [];
  for (let rest = seed; rest > 0n; rest >>= 32n) entropy.push(rest & WORD);
  let constant = 0x43b0d7e5n;
  const hash = (value) => {
    value ^= constant;
    constant = (constant * 0x931e8875n) & WORD;
    value = (value * constant) & WORD;
    return value ^ (value >> 16n);
  };
  const mix = (x, y) => {
    const value = (0xca01f9ddn * x - 0x4973f715n * y) & WORD;
    return value ^ (value >> 16n);
  };
  const pool = [0, 1, 2, 3].map((i) => hash(entropy[i] ?? 0n));
  for (let from = 0; from < 4; from++)
    for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mix(pool[to], hash(pool[from]));
  for (let from = 4; from < entropy.length; from++)
    for (let to = 0; to < 4; to++) pool[to] = mix(pool[to], hash(entropy[from]));
  return stateWords(pool);
}

function stateWords(pool) {
  let constant = 0x8b51f9ddn;
  const words = Array.from({ length: 8 }, (_, i) => {
    let value = pool[i % 4] ^ constant;
    constant = (constant * 0x58f38dedn) & WORD;
    value = (value * constant) & WORD;
    return value ^ (value >> 16n);
  });
  return [0, 2, 4, 6].map((i) => words[i] | (words[i + 1] << 32n));
}
