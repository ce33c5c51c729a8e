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

/** Eigenvalues, largest first, and eigenvectors in the columns of `vectors`, of symmetric M [n, n], by Jacobi. */
export function eigenSymmetric(M, n) {
  const A = Float64Array.from(M);
  const V = new Float64Array(n * n);
  for (let i = 0; i < n; i++) V[i * n + i] = 1;
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0,
      diagonal = 0;
    for (let i = 0; i < n; i++) {
      diagonal += A[i * n + i] ** 2;
      for (let j = 0; j < i; j++) off += A[i * n + j] ** 2;
    }
    if (off <= 1e-30 * diagonal) break;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) rotate(A, V, n, p, q);
  }
  const order = Array.from({ length: n }, (_, i) => i).sort((i, j) => A[j * n + j] - A[i * n + i]);
  const vectors = new Float64Array(n * n);
  order.forEach((from, to) => {
    for (let i = 0; i < n; i++) vectors[i * n + to] = V[i * n + from];
  });
  return { values: order.map((i) => A[i * n + i]), vectors };
}

function rotate(A, V, n, p, q) {
  const apq = A[p * n + q];
  if (apq === 0) return;
  const theta = (A[q * n + q] - A[p * n + p]) / (2 * apq);
  const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const c = 1 / Math.hypot(t, 1),
    s = t * c;
  for (let k = 0; k < n; k++) {
    const kp = A[k * n + p],
      kq = A[k * n + q];
    A[k * n + p] = c * kp - s * kq;
    A[k * n + q] = s * kp + c * kq;
  }
  for (let k = 0; k < n; k++) {
    const pk = A[p * n + k],
      qk = A[q * n + k];
    A[p * n + k] = c * pk - s * qk;
    A[q * n + k] = s * pk + c * qk;
    const vp = V[k * n + p],
      vq = V[k * n + q];
    V[k * n + p] = c * vp - s * vq;
    V[k * n + q] = s * vp + c * vq;
  }
}
