// The ES module of every explorer: anywidget calls `render`, and so does the book's page.

import { Frame } from "./frame.js";
import { adapterView } from "./view_adapter.js";
import { bumpView } from "./view_bump.js";
import { experimentsView } from "./view_experiments.js";
import { frontView } from "./view_front.js";
import { noiseView } from "./view_noise.js";
import { patchesView } from "./view_patches.js";
import { pathView } from "./view_path.js";
import { poolView } from "./view_pool.js";
import { proposalsView } from "./view_proposals.js";
import { scrubberView } from "./view_scrubber.js";
import { selectionView } from "./view_selection.js";
import { sensorsView } from "./view_sensors.js";
import { variationView } from "./view_variation.js";

const VIEWS = {
  selection: selectionView,
  patches: patchesView,
  path: pathView,
  proposals: proposalsView,
  adapter: adapterView,
  scrubber: scrubberView,
  pool: poolView,
  sensors: sensorsView,
  noise: noiseView,
  front: frontView,
  bump: bumpView,
  variation: variationView,
  experiments: experimentsView,
};

/** Mount one explorer; `inPage` is set where there is no kernel and the address is ours to write. */
async function render({ model, el, inPage = false }) {
  const all = (ids) => Promise.all(ids.map((id) => (id ? model.widget_manager.get_model(id) : null)));
  const [sources, references] = [await all(model.get("sources")), await all(model.get("references"))];
  const frame = new Frame(model, el, { sources, references }, VIEWS[model.get("view")](), inPage);
  hideStill(model.get("key"), el);
  return () => frame.observer.disconnect();
}

/** The figure that stood here for readers without JavaScript; it comes back in print. */
function hideStill(key, el) {
  const scope = el.closest?.(".cell_output, .jp-OutputArea") ?? document;
  for (const still of scope.querySelectorAll(`.fts-still[data-key="${key}"]`)) still.classList.add("fts-still-hidden");
}

export default { render };
