// Python for a page: loaded once per visit, on a click, from files beside the page, into a worker that can be stopped.
// Every file is a script that hands itself over, because a page on disk may load scripts but not fetch.
const ftsLive = (() => {
  "use strict";
  const home = new URL("../../_live/", document.currentScript.src).href;
  const waiting = new Map();
  let worker = null;
  let started = null;
  const more = new Map();
  let latest = 0;
  let listener = () => {};
  let turn = 0; // what began before a stop must not go on after it
  let contents;

  /** Called by the scripts under _live: what there is, or one file. */
  const manifest = (given) => {
    contents = given;
  };
  const take = (name, base64) => {
    document.currentScript.file = { name, base64 };
  };

  /** A script under _live, run; the file it hands over, as base64. */
  function load(path) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = home + path;
      script.onload = () => {
        script.remove();
        resolve(script.file);
      };
      script.onerror = () => reject(new Error(`${path} cannot be loaded: it is not beside this page`));
      document.head.append(script);
    });
  }

  /** What the book carries: files with their sizes, samples, whether chapters need figures; null without assets. */
  let asked = null;
  const available = () => {
    asked ??= load("manifest.js").then(
      () => contents,
      () => null,
    );
    return asked;
  };

  function send(message, transfer = []) {
    const id = ++latest;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, ...message }, transfer);
    });
  }

  async function hand(entries) {
    const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
    const began = turn;
    let done = 0;
    for (const { path, bytes } of entries) {
      listener({ stage: "load", fraction: done / total, megabytes: total / 1e6 });
      const given = await load(path);
      if (began !== turn) throw new Stopped("cancelled");
      await send({ file: given });
      done += bytes;
    }
  }

  class Stopped extends Error {}

  async function begin() {
    const began = turn;
    const all = await available();
    if (!all) throw new Error("this copy of the book was built without Python");
    const source = await load(all.worker);
    if (began !== turn) throw new Stopped("cancelled");
    const text = new TextDecoder().decode(Uint8Array.from(atob(source.base64), (c) => c.charCodeAt(0)));
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    worker = new Worker(address);
    URL.revokeObjectURL(address);
    worker.onmessage = ({ data: { id, result, failed, progress } }) => {
      if (progress) return listener(progress);
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (failed === undefined) resolve(result);
      else reject(new Error(failed));
    };
    worker.onerror = (event) => stop(new Error(event.message || "Python has ended: its memory may be full"));
    await hand(all.core);
    await send({ start: true });
  }

  /** Python is there when this ends; loading is shared by whoever asks for it. */
  function start() {
    if (started) return started;
    const mine = begin().catch((error) => {
      // Stopped meanwhile, another may have been started.
      if (started === mine) stop(error);
      throw error;
    });
    started = mine;
    return mine;
  }

  /** Files beyond the core, loaded when they are first wanted. */
  async function add(part, entries) {
    await start();
    if (!more.has(part))
      more.set(
        part,
        hand(entries).then(() => send({ unpack: true })),
      );
    return more.get(part);
  }

  /** What draws figures. */
  const withPlots = async () => add("plots", (await available()).plots);

  /** What a chapter's cells compute with: figures, the book's own modules, frozen fields. */
  async function withChapter(name) {
    const contents = await available();
    await withPlots();
    return add("chapter", contents.chapters[name]);
  }

  /** The answer of book/_ext/worker.py to a task. */
  async function ask(task, question) {
    await start();
    return send({ ask: { task, question } });
  }

  /** Put the reader's file where Python finds it, in place of the one before. */
  async function write(name, bytes) {
    await start();
    return send({ write: { name, bytes } });
  }

  /** End whatever is running; Python is loaded anew when it is asked for again. */
  function stop(reason = new Stopped("cancelled")) {
    turn++;
    worker?.terminate();
    worker = started = null;
    more.clear();
    for (const { reject } of waiting.values()) reject(reason);
    waiting.clear();
  }

  function listen(to) {
    listener = to;
  }

  return { manifest, take, available, load, withPlots, withChapter, ask, write, stop, listen, Stopped };
})();
window.ftsLive = ftsLive;
