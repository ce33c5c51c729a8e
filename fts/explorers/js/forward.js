// An equation integrated on a ring: Fourier modes, the linear part exact, Runge and Kutta's fourth order for the rest.

import { evaluate, naturalPower } from "./terms.js";

// A solution that has grown by this much is lost.
const LOST = 1e3;

/** u [times, n] from `u0` [n] on a ring of the given length, and how many of the times were reached. */
export function integrate(terms, xi, u0, length, times, step) {
  const n = u0.length,
    wave = Float64Array.from({ length: n }, (_, k) => ((2 * Math.PI) / length) * (k <= n / 2 ? k : k - n));
  const kept = wave.map((_, k) => (Math.min(k, n - k) < n / 3 ? 1 : 0));
  const chosen = terms.map((term, j) => ({ ...term, xi: xi[j] })).filter((term) => term.xi),
    linear = chosen.filter((term) => naturalPower(term.q) === 1),
    rest = chosen.filter((term) => naturalPower(term.q) !== 1);
  const symbol = complex(n);
  for (const term of linear) addDerivative(symbol, term, wave, constantOne(n), kept);
  const bound = LOST * Math.max(1e-9, ...u0.map(Math.abs));
  const out = new Float64Array(times.length * n);
  let state = forwardTransform(u0),
    t = times[0];
  for (let k = 0; k < times.length; k++) {
    const gap = times[k] - t,
      count = Math.max(1, Math.ceil(gap / step - 1e-9));
    for (let s = 0; s < count && gap > 0; s++) state = advance(state, gap / count, symbol, rest, wave, kept);
    t = times[k];
    const u = inverseTransform(state);
    if (!u.every((value) => Math.abs(value) < bound)) return { u: out, reached: k };
    out.set(u, k * n);
  }
  return { u: out, reached: times.length };
}

/** One step of the classical scheme for v = exp(-L t) u. */
function advance(state, h, symbol, rest, wave, kept) {
  const half = exponential(symbol, h / 2),
    whole = exponential(symbol, h);
  const rate = (v) => nonlinear(v, rest, wave, kept);
  const at = product(half, state),
    k1 = rate(state),
    k1h = product(half, k1);
  const k2 = rate(combine(at, k1h, h / 2)),
    k3 = rate(combine(at, k2, h / 2)),
    k4 = rate(combine(product(whole, state), product(half, k3), h));
  const sum = product(whole, combine(state, k1, h / 6));
  for (const middle of [k2, k3]) add(sum, product(half, middle), h / 3);
  return add(sum, k4, h / 6);
}

function nonlinear(state, rest, wave, kept) {
  const n = wave.length,
    u = inverseTransform(state),
    out = complex(n),
    values = new Float64Array(n);
  for (const term of rest) addDerivative(out, term, wave, forwardTransform(evaluate(term.q, u, values)), kept);
  return out;
}

/** out += xi scale (i k)^order of the transform. */
function addDerivative(out, term, wave, transform, kept) {
  const order = term.alpha[0],
    factor = term.xi * term.scale * (order % 4 > 1 ? -1 : 1);
  for (let k = 0; k < wave.length; k++) {
    const size = kept[k] * factor * wave[k] ** order,
      odd = order % 2;
    out.re[k] += size * (odd ? -transform.im[k] : transform.re[k]);
    out.im[k] += size * (odd ? transform.re[k] : transform.im[k]);
  }
}

const complex = (n) => ({ re: new Float64Array(n), im: new Float64Array(n) });
const constantOne = (n) => ({ re: new Float64Array(n).fill(1), im: new Float64Array(n) });

function exponential(symbol, h) {
  const size = symbol.re.map((value) => Math.exp(value * h));
  return {
    re: size.map((value, k) => value * Math.cos(symbol.im[k] * h)),
    im: size.map((value, k) => value * Math.sin(symbol.im[k] * h)),
  };
}

function product(a, b) {
  return {
    re: a.re.map((value, k) => value * b.re[k] - a.im[k] * b.im[k]),
    im: a.re.map((value, k) => value * b.im[k] + a.im[k] * b.re[k]),
  };
}

function combine(a, b, h) {
  return { re: a.re.map((value, k) => value + h * b.re[k]), im: a.im.map((value, k) => value + h * b.im[k]) };
}

function add(a, b, h) {
  for (let k = 0; k < a.re.length; k++) {
    a.re[k] += h * b.re[k];
    a.im[k] += h * b.im[k];
  }
  return a;
}

function forwardTransform(u) {
  return transformed({ re: Float64Array.from(u), im: new Float64Array(u.length) }, -1);
}

function inverseTransform({ re, im }) {
  const n = re.length;
  return transformed({ re: re.slice(), im: im.slice() }, 1).re.map((value) => value / n);
}

/** The fast Fourier transform in place; the length is a power of two. */
function transformed(z, sign) {
  const n = z.re.length,
    { re, im } = z;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) for (const part of [re, im]) [part[i], part[j]] = [part[j], part[i]];
  }
  for (let size = 2; size <= n; size *= 2) {
    const half = size / 2;
    for (let k = 0; k < half; k++) {
      const c = Math.cos((2 * Math.PI * k) / size),
        s = sign * Math.sin((2 * Math.PI * k) / size);
      for (let a = k, b = k + half; a < n; a += size, b += size) {
        const x = c * re[b] - s * im[b],
          y = c * im[b] + s * re[b];
        re[b] = re[a] - x;
        im[b] = im[a] - y;
        re[a] += x;
        im[a] += y;
      }
    }
  }
  return z;
}
