// The worker's loop: one answer per question; a question that was overtaken by a newer one of its asker is dropped.

import { TASKS } from "./tasks.js";

const newest = new Map();

/** Answer {id, asker, task, question} through `reply`; progress and errors go the same way. */
export async function answer({ id, asker, task, question }, reply) {
  newest.set(asker, id);
  const overtaken = () => newest.get(asker) !== id;
  const step = async (fraction) => {
    reply({ id, progress: fraction });
    // A macrotask lets the next message in.
    await new Promise((resume) => setTimeout(resume));
    if (overtaken()) throw new Overtaken();
  };
  try {
    const begun = performance.now();
    const result = await TASKS[task](question, step);
    reply({ id, result, milliseconds: performance.now() - begun });
  } catch (error) {
    reply(error instanceof Overtaken ? { id, overtaken: true } : { id, error: error.message });
  }
}

class Overtaken extends Error {}

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope)
  self.onmessage = ({ data }) => answer(data, (message) => self.postMessage(message));
