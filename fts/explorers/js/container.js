// Bytes of an fts container -> header and typed arrays (the format of fts/containers.py).

const ARRAYS = { "<f8": Float64Array, "<f4": Float32Array, "<i8": BigInt64Array, "<i4": Int32Array, "|u1": Uint8Array };

/** Header and arrays by name, each {shape, data}; the checksum was verified in Python when the field was loaded. */
export function readContainer(bytes) {
  const first = bytes.indexOf(10);
  const second = bytes.indexOf(10, first + 1);
  const words = new TextDecoder().decode(bytes.subarray(0, first)).split(" ");
  if (words[0] !== "fts1" || second < 0) throw new Error("these bytes are not an fts file");
  const { header, arrays } = JSON.parse(new TextDecoder().decode(bytes.subarray(first + 1, second)));
  const named = {};
  for (const entry of arrays) {
    const type = ARRAYS[entry.dtype];
    const count = entry.shape.reduce((a, b) => a * b, 1);
    const start = second + 1 + entry.offset;
    // slice copies: a view would need an aligned address, which an embedding buffer does not promise.
    const raw = bytes.slice(start, start + count * type.BYTES_PER_ELEMENT);
    named[entry.name] = { shape: entry.shape, data: new type(raw.buffer) };
  }
  return { kind: words[1], header, arrays: named };
}

/** float64 copy of a stored array: everything after the file is computed in double precision. */
export function doubles(array) {
  return Float64Array.from(array.data, Number);
}
