// Mounts the book's explorers in a page without a kernel: reads the widget state that the page carries, and gives each
// explorer a model with the same methods it has in JupyterLab. Nothing is decoded before an explorer nears the screen.
(() => {
  "use strict";
  const STATE = "application/vnd.jupyter.widget-state+json";
  const VIEW = "application/vnd.jupyter.widget-view+json";
  // The folder of this script, where the build has put the explorers' code.
  const HERE = document.currentScript.src;
  let models = null;

  /** All models of the page by id, made from the state on first use. */
  function allModels() {
    if (models) return models;
    models = new Map();
    const manager = { get_model: async (id) => models.get(id) };
    for (const script of document.querySelectorAll(`script[type="${STATE}"]`))
      for (const [id, entry] of Object.entries(JSON.parse(script.textContent).state))
        models.set(id, new Model(entry, manager));
    return models;
  }

  class Model {
    constructor({ state, buffers = [] }, manager) {
      this.values = state;
      this.widget_manager = manager;
      this.listeners = new Map();
      for (const { path, data } of buffers) this.values[path[0]] = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    }
    get(name) {
      return this.values[name];
    }
    set(name, value) {
      if (this.values[name] === value) return;
      this.values[name] = value;
      for (const listener of this.listeners.get(`change:${name}`) ?? []) listener();
    }
    on(event, listener) {
      this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
    }
    off(event) {
      this.listeners.delete(event);
    }
    save_changes() {}
    send() {}
  }

  const loading = new Map();

  /** What the script of this name defines; each is loaded once. */
  function load(name) {
    if (!loading.has(name))
      loading.set(
        name,
        new Promise((resolve, reject) => {
          const script = document.createElement("script");
          script.src = new URL(name, HERE).href;
          script.onload = () => resolve(globalThis[Symbol.for("fts pages")].get(name));
          script.onerror = () => reject(new Error(`${name} cannot be loaded`));
          document.head.append(script);
        }),
      );
    return loading.get(name);
  }

  async function mount(holder, id) {
    const model = allModels().get(id);
    const script = allModels().get(model?.get("code"))?.get("script");
    if (!script) return;
    const { render } = await load(script);
    await render({ model, el: holder, inPage: true });
    if (location.hash.startsWith(`#fts:${model.get("key")}?`)) holder.scrollIntoView();
  }

  function start() {
    const waiting = new Map();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          observer.unobserve(target);
          mount(waiting.get(target).holder, waiting.get(target).id);
        }
      },
      { rootMargin: "400px" },
    );
    for (const script of document.querySelectorAll(`script[type="${VIEW}"]`)) {
      const holder = document.createElement("div"),
        id = JSON.parse(script.textContent).model_id;
      script.after(holder);
      // The still figure stands where the explorer will; an empty holder has no box to be seen.
      const still = script.closest(".cell_output")?.querySelector(".fts-still") ?? holder;
      // The room kept free for the explorer (heights.css) is the holder's from the moment it takes the still's place.
      holder.className = "fts-holder";
      holder.dataset.key = still.dataset.key ?? "";
      if (location.hash.startsWith(`#fts:`)) mountShared(holder, id, still);
      waiting.set(still, { holder, id });
      observer.observe(still);
    }

    /** An explorer that the address names is mounted at once, wherever it stands. */
    function mountShared(holder, id, still) {
      const key = allModels().get(id)?.get("key");
      if (!location.hash.startsWith(`#fts:${key}?`)) return;
      queueMicrotask(() => observer.unobserve(still));
      mount(holder, id);
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
