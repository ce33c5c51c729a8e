// C = A B in double precision, two numbers at a time: fifty WebAssembly instructions that JavaScript cannot express.
// The field on the nodes of a weak system is such a product, of up to fifty million multiplications.

const LANES = 8;
/** For every row, blocks of eight columns: sums += A[r] * B[r, block], then stored. */
function program() {
  const GET = 0x20, SET = 0x21, CONST = 0x41, ADD = 0x6a, SUB = 0x6b, LESS = 0x49, SHIFT = 0x74, LOOP = [0x03, 0x40], AGAIN = [0x0d, 0], END = 0x0b;
  const LOAD = (offset) => [0xfd, 0x00, 3, offset], SPLAT = [0xfd, 0x0a, 3, 0], STORE = (offset) => [0xfd, 0x0b, 3, offset];
  const TIMES = [0xfd, 0xf2, 0x01], PLUS = [0xfd, 0xf0, 0x01], ZERO = [0xfd, 0x0c, ...Array(16).fill(0)];
  // Parameters: addresses of A, B, C, the rows n, the inner length k, bytes per row of B and C. Then locals.
  const [A, B, C, ROWS, INNER, STRIDE, J, PA, PB, R, S, SUMS] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, [11, 12, 13, 14]];
  const step = (local, ...amount) => [GET, local, ...amount, ADD, SET, local];
  const inner = [GET, PA, ...SPLAT, SET, S, ...SUMS.flatMap((sum, q) => [GET, sum, GET, S, GET, PB, ...LOAD(16 * q), ...TIMES, ...PLUS, SET, sum]),
    ...step(PA, CONST, 8), ...step(PB, GET, STRIDE), GET, R, CONST, 1, SUB, 0x22, R, ...AGAIN];
  const block = [...SUMS.flatMap((sum) => [...ZERO, SET, sum]), GET, A, SET, PA, GET, B, GET, J, ADD, SET, PB, GET, INNER, SET, R, ...LOOP, ...inner, END,
    ...SUMS.flatMap((sum, q) => [GET, C, GET, J, ADD, GET, sum, ...STORE(16 * q)]), ...step(J, CONST, 0xc0, 0x00), GET, J, GET, STRIDE, LESS, ...AGAIN];
  const row = [CONST, 0, SET, J, ...LOOP, ...block, END, ...step(A, GET, INNER, CONST, 3, SHIFT), ...step(C, GET, STRIDE), GET, ROWS, CONST, 1, SUB, 0x22, ROWS, ...AGAIN];
  return [2, 4, 0x7f, 5, 0x7b, ...LOOP, ...row, END, END];
}

function moduleBytes() {
  const size = (n) => (n < 128 ? [n] : [(n & 127) | 128, n >> 7]);
  const section = (id, ...body) => [id, ...size(body.length), ...body];
  const code = program();
  return Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, 1, 0x60, 6, ...Array(6).fill(0x7f), 0), ...section(3, 1, 0), ...section(5, 1, 0, 1),
    ...section(7, 2, 1, 0x66, 0, 0, 1, 0x6d, 2, 0), ...section(10, 1, ...size(code.length), ...code)]);
}

let machine;
// Whose B the memory holds: products share it, the last one placed is ready.
let tenant = null;

/** The compiled product and its memory, or null where the browser has no vector instructions. */
function vectors() {
  if (machine === undefined) {
    const bytes = typeof WebAssembly === "object" ? moduleBytes() : new Uint8Array();
    machine = typeof WebAssembly === "object" && WebAssembly.validate(bytes) ? new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports : null;
  }
  return machine;
}

/** B [k, m] kept for products with many A: `times(A, from, n)` is A[from : from + n] B in rows of `stride` numbers.
 *
 * The answer is a window on shared memory, good until the next product.
 */
export function product(right, k, m) {
  const exports = vectors(), stride = Math.ceil(m / LANES) * LANES;
  if (!exports || !k || !m) return { stride: m, times: (left, from, n) => plainProduct(left, from, right, n, k, m) };
  const self = { stride, rows: 0, memory: null };
  const place = (n) => {
    const needed = 8 * (k * stride + n * k + n * stride), held = exports.m.buffer.byteLength;
    if (needed > held) exports.m.grow(Math.ceil((needed - held) / 65536));
    const memory = new Float64Array(exports.m.buffer);
    for (let r = 0; r < k; r++) {
      memory.set(right.subarray(r * m, (r + 1) * m), r * stride);
      memory.fill(0, r * stride + m, (r + 1) * stride);
    }
    Object.assign(self, { memory, rows: n });
    tenant = self;
  };
  self.times = (left, from, n) => {
    if (tenant !== self || n > self.rows) place(n);
    const a = k * stride, c = a + self.rows * k;
    self.memory.set(left.subarray(from * k, (from + n) * k), a);
    exports.f(8 * a, 0, 8 * c, n, k, 8 * stride);
    return self.memory.subarray(c, c + n * stride);
  };
  return self;
}

function plainProduct(left, from, right, n, k, m) {
  const result = new Float64Array(n * m);
  for (let i = 0; i < n; i++)
    for (let r = 0; r < k; r++) {
      const a = left[(from + i) * k + r], b = r * m;
      for (let j = 0; j < m; j++) result[i * m + j] += a * right[b + j];
    }
  return result;
}
