// Small dense linear algebra on row-major Float64Arrays.
// Plain JavaScript is enough: a weak system of the shipped KdV, KS and AD fields takes 28, 40 and 22 ms in Node, and
// WebAssembly's vector instructions would save 11, 14 and 7 of them.

/** C = A B for A [n, k], B [k, m]. */
export function multiply(A, B, n, k, m) {
  const C = new Float64Array(n * m);
  for (let i = 0; i < n; i++) accumulateRow(C, i * m, A, i * k, B, k, m);
  return C;
}

/** C[at : at + m] += A[from : from + k] B; eight rows of B at a time keep the inner loop busy. */
export function accumulateRow(C, at, A, from, B, k, m) {
  let r = 0;
  for (; r + 7 < k; r += 8) {
    const a0 = A[from + r],
      a1 = A[from + r + 1],
      a2 = A[from + r + 2],
      a3 = A[from + r + 3];
    const a4 = A[from + r + 4],
      a5 = A[from + r + 5],
      a6 = A[from + r + 6],
      a7 = A[from + r + 7];
    const b0 = r * m,
      b1 = b0 + m,
      b2 = b1 + m,
      b3 = b2 + m,
      b4 = b3 + m,
      b5 = b4 + m,
      b6 = b5 + m,
      b7 = b6 + m;
    for (let j = 0; j < m; j++)
      C[at + j] +=
        a0 * B[b0 + j] +
        a1 * B[b1 + j] +
        a2 * B[b2 + j] +
        a3 * B[b3 + j] +
        a4 * B[b4 + j] +
        a5 * B[b5 + j] +
        a6 * B[b6 + j] +
        a7 * B[b7 + j];
  }
  for (; r < k; r++) {
    const a = A[from + r],
      b = r * m;
    for (let j = 0; j < m; j++) C[at + j] += a * B[b + j];
  }
}

/** x with M x = y for symmetric positive definite M [n, n], or null when M is not. */
export function choleskySolve(M, y) {
  const n = y.length;
  const L = Float64Array.from(M);
  for (let j = 0; j < n; j++) {
    for (let i = j; i < n; i++) {
      let s = L[i * n + j];
      for (let k = 0; k < j; k++) s -= L[i * n + k] * L[j * n + k];
      if (i === j && !(s > 0)) return null;
      L[i * n + j] = i === j ? Math.sqrt(s) : s / L[j * n + j];
    }
  }
  const x = Float64Array.from(y);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= L[i * n + k] * x[k];
    x[i] /= L[i * n + i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= L[k * n + i] * x[k];
    x[i] /= L[i * n + i];
  }
  return x;
}

/** A^T for A [n, m]. */
export function transpose(A, n, m) {
  const B = new Float64Array(n * m);
  for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) B[j * n + i] = A[i * m + j];
  return B;
}

/** Eigenvalues, largest first, and eigenvectors in the columns of `vectors`, of symmetric M [n, n]. */
export function eigenSymmetric(M, n) {
  const { d, e, Q } = tridiagonal(Float64Array.from(M), n);
  diagonalize(d, e, Q, n);
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => d[j] - d[i]);
  const vectors = new Float64Array(n * n);
  order.forEach((from, to) => {
    for (let i = 0; i < n; i++) vectors[i * n + to] = Q[from * n + i];
  });
  return { values: order.map((i) => d[i]), vectors };
}

/** M = Q^T T Q by Householder's reflections: the diagonal d of T, what stands beside it in e, and rows of Q. */
function tridiagonal(A, n) {
  const e = new Float64Array(n),
    Q = new Float64Array(n * n),
    p = new Float64Array(n),
    mirrors = [];
  for (let i = 0; i < n; i++) Q[i * n + i] = 1;
  for (let k = 0; k < n - 2; k++) {
    let norm = 0;
    for (let i = k + 1; i < n; i++) norm += A[i * n + k] ** 2;
    norm = Math.sqrt(norm);
    if (norm === 0) continue;
    const alpha = A[(k + 1) * n + k] > 0 ? -norm : norm,
      v = new Float64Array(n);
    for (let i = k + 1; i < n; i++) v[i] = A[i * n + k];
    v[k + 1] -= alpha;
    let square = 0;
    for (let i = k + 1; i < n; i++) square += v[i] * v[i];
    for (let i = k; i < n; i++) {
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += A[i * n + j] * v[j];
      p[i] = (2 * sum) / square;
    }
    let inner = 0;
    for (let i = k + 1; i < n; i++) inner += p[i] * v[i];
    for (let i = k; i < n; i++) p[i] -= (inner / square) * v[i];
    for (let i = k; i < n; i++) for (let j = k; j < n; j++) A[i * n + j] -= v[i] * p[j] + p[i] * v[j];
    mirrors.push([v, square, k + 1]);
  }
  for (const [v, square, first] of mirrors.reverse()) reflectRows(Q, v, square, first, n);
  for (let i = 1; i < n; i++) e[i - 1] = A[i * n + i - 1];
  return { d: Float64Array.from({ length: n }, (_, i) => A[i * n + i]), e, Q };
}

/** Q (1 - 2 v v^T / |v|^2), whose entries before `first` in v are zero. */
function reflectRows(Q, v, square, first, n) {
  for (let i = 0; i < n; i++) {
    let sum = 0;
    for (let j = first; j < n; j++) sum += Q[i * n + j] * v[j];
    const factor = (2 * sum) / square;
    for (let j = first; j < n; j++) Q[i * n + j] -= factor * v[j];
  }
}

/** Implicit QL with Wilkinson's shifts: d becomes the eigenvalues, the rows of Q the eigenvectors. */
function diagonalize(d, e, Q, n) {
  for (let l = 0; l < n; l++) {
    for (let sweep = 0; sweep < 60; sweep++) {
      let m = l;
      while (m < n - 1 && Math.abs(e[m]) > Number.EPSILON * (Math.abs(d[m]) + Math.abs(d[m + 1]))) m++;
      if (m === l) break;
      let g = (d[l + 1] - d[l]) / (2 * e[l]),
        r = Math.hypot(g, 1);
      g = d[m] - d[l] + e[l] / (g + (g >= 0 ? r : -r));
      let s = 1,
        c = 1,
        p = 0,
        i = m - 1;
      for (; i >= l; i--) {
        const f = s * e[i],
          b = c * e[i];
        r = Math.hypot(f, g);
        e[i + 1] = r;
        if (r === 0) {
          d[i + 1] -= p;
          e[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        rotateRows(Q, i, c, s, n);
      }
      if (r === 0 && i >= l) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
}

function rotateRows(Q, i, c, s, n) {
  const a = i * n,
    b = a + n;
  for (let k = 0; k < n; k++) {
    const f = Q[b + k];
    Q[b + k] = s * Q[a + k] + c * f;
    Q[a + k] = c * Q[a + k] - s * f;
  }
}
