// The page's one worker: questions out, answers back, fields sent once.

// One worker for all explorers of a page, whichever copy of this module they came with.
const shared = (globalThis[Symbol.for("fts explorers")] ??= {
  worker: null,
  waiting: new Map(),
  fields: new Set(),
  next: 1,
});

/** The answer to a question of `asker`, or null when a newer one of the same asker has overtaken it. */
export async function ask(asker, source, task, question, onProgress) {
  const info = source.get("info");
  // Samples come with the question.
  if (!info.samples && !shared.fields.has(info.key)) {
    shared.fields.add(info.key);
    await send(`load ${info.key}`, "load", { field: info.key, bytes: bytesOf(source.get("data")) });
  }
  return send(asker, task, { field: info.key, ...question }, onProgress);
}

async function send(asker, task, question, onProgress) {
  const worker = (shared.worker ??= await startWorker());
  const id = shared.next++;
  return new Promise((resolve, reject) => {
    shared.waiting.set(id, { resolve, reject, onProgress });
    worker.post({ id, asker, task, question });
  });
}

function receive(message) {
  const one = shared.waiting.get(message.id);
  if (!one) return;
  if ("progress" in message) return one.onProgress?.(message.progress);
  shared.waiting.delete(message.id);
  if (message.error) one.reject(new Error(message.error));
  else one.resolve(message.overtaken ? null : { ...message.result, milliseconds: message.milliseconds });
}

async function startWorker() {
  const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    const worker = new Worker(url(NUMERICS));
    worker.onmessage = ({ data }) => receive(data);
    return { post: (message) => worker.postMessage(message) };
  } catch {
    // A host that forbids workers still computes, on the page's own thread.
    const { answer } = await import(url(`${NUMERICS}\nexport { answer };`));
    return { post: (message) => answer(message, receive) };
  }
}

/** The bytes of a model's trait, whichever view of them the host keeps. */
export function bytesOf(data) {
  return data instanceof Uint8Array ? data : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
