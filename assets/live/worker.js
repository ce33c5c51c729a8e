// The worker in which Python runs. It gets every file from the page and fetches nothing: what the runtime asks for is
// looked up among them, so that pages work from disk, under any address and without a network.
(() => {
  "use strict";
  const files = new Map();
  const wheels = [];
  const FIELDS = "/home/pyodide/fields";
  let python = null;
  let answer = null;

  // A worker from a blob on disk may import modules only by their blobs; told so, the runtime takes that way.
  self.importScripts = () => {
    throw new TypeError("this worker loads modules");
  };
  self.fetch = async (address) => {
    const name = String(address.url ?? address)
      .split("/")
      .pop();
    if (!files.has(name)) throw new TypeError(`${name} is not in this book`);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(files.get(name), { headers: { "Content-Type": type } });
  };

  const asText = (name) => new TextDecoder().decode(files.get(name));
  const post = (message) => self.postMessage(message);
  const module = (name) => import(URL.createObjectURL(new Blob([files.get(name)], { type: "text/javascript" })));

  function decoded(base64) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  function unpack(names) {
    const extractDir = python.pyimport("sysconfig").get_path("purelib");
    for (const name of names) {
      python.unpackArchive(files.get(name), "wheel", { extractDir });
      files.delete(name);
    }
    // The interpreter has looked into the folder before, and would not look again.
    python.pyimport("importlib").invalidate_caches();
  }

  async function start() {
    post({ progress: { stage: "runtime" } });
    const { loadPyodide } = await module("pyodide.mjs");
    const { default: createPyodideModule } = await module("pyodide.asm.mjs");
    python = await loadPyodide({
      indexURL: "https://book.invalid/",
      createPyodideModule,
      lockFileContents: asText("pyodide-lock.json"),
      stdLibURL: "https://book.invalid/python_stdlib.zip",
    });
    post({ progress: { stage: "packages" } });
    unpack(wheels.splice(0));
    // What the runtime has taken is not kept twice.
    for (const name of ["pyodide.asm.wasm", "pyodide.asm.mjs", "python_stdlib.zip"]) files.delete(name);
    post({ progress: { stage: "import" } });
    python.FS.mkdirTree(FIELDS);
    python.FS.mkdirTree("/home/pyodide/samples");
    python.FS.chdir("/home/pyodide/samples");
    const worker = python.pyimport("types").ModuleType("worker");
    python.runPython(asText("worker.py"), { globals: worker.__dict__, filename: "worker.py" });
    worker.listen((text) => post({ progress: JSON.parse(text) }));
    answer = worker.answer;
  }

  async function take({ file, start: begin, unpack: more, write, ask }) {
    if (file) {
      files.set(file.name, decoded(file.base64));
      if (file.name.endsWith(".whl")) wheels.push(file.name);
      if (file.name.endsWith(".fts")) python.FS.writeFile(`${FIELDS}/${file.name}`, files.get(file.name));
    }
    if (begin) await start();
    if (more) unpack(wheels.splice(0));
    if (write) {
      for (const old of python.FS.readdir(".")) if (!old.startsWith(".")) python.FS.unlink(old);
      python.FS.writeFile(write.name, new Uint8Array(write.bytes));
    }
    return ask ? JSON.parse(answer(ask.task, JSON.stringify(ask.question))) : null;
  }

  // One message after the other: the next is not begun while Python is loading.
  let before = Promise.resolve();
  self.onmessage = ({ data }) => {
    before = before.then(async () => {
      try {
        post({ id: data.id, result: await take(data) });
      } catch (error) {
        post({ id: data.id, failed: String(error.message ?? error).slice(-2000) });
      }
    });
  };
})();
