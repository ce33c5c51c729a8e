// Trees of functions: two parents, a child by crossover and its mutant; nodes move from scene to scene.

import { svg, termSvg } from "./charts.js";

const LEAF_STEP = 52, // between two leaves
  NODE_ROW = 52,
  NODE_SIZE = 34; // of a node

export function variationView() {
  return {
    resetLabel: "Back to the beginning",
    shown: ({ info }, _name, value) => `${value + 1} of ${info.scenes.length}`,
    answer: (frame) => frame.info.scenes[frame.value("scene")],
    draw(frame, scene) {
      frame.say(`<div>${scene.title}</div>`, scene.title);
      const { width, info } = frame,
        rows = 1 + Math.max(...info.scenes.flatMap(({ nodes }) => nodes.map(({ depth }) => depth))),
        key = `${width}`;
      if (frame.figure.dataset.width !== key) {
        frame.figure.dataset.width = key;
        frame.figure.innerHTML = svg(width, NODE_ROW * rows + 24, "<g></g><g></g>", "");
      }
      const picture = frame.figure.querySelector("svg");
      picture.setAttribute("aria-label", `${scene.title}: ${treeSaid(scene, 0)}; beside it ${treeSaid(scene, 1)}`);
      moveNodes(picture, scene, width);
    },
  };
}

function treeSaid({ nodes }, column) {
  return nodes
    .filter((node) => node.column === column)
    .map(({ text, marked }) => (marked ? `${text} (marked)` : text))
    .join(" ");
}

/** Every node goes where the scene has it; a copy starts where its original stands. */
function moveNodes(picture, { nodes, edges }, width) {
  const [lines, boxes] = picture.children,
    spacing = Math.min(LEAF_STEP, width / 2 / 4.4);
  const at = new Map(nodes.map((node) => [node.key, nodePlace(node, width, spacing)]));
  lines.innerHTML = `<g class="fts-appears">${edges.map(([a, b]) => nodeEdge(at.get(a), at.get(b))).join("")}</g>`;
  const before = new Map([...boxes.children].map((box) => [box.dataset.key, box]));
  for (const [key, box] of before) if (!at.has(key)) box.remove();
  for (const node of nodes) {
    let box = before.get(node.key);
    if (!box) {
      box = document.createElementNS("http://www.w3.org/2000/svg", "g");
      box.dataset.key = node.key;
      const original = before.get(node.key.replace("copy", "other"));
      box.setAttribute("class", original ? "fts-node" : "fts-node fts-appears");
      box.style.transform = original?.style.transform ?? nodeShift(at.get(node.key));
      boxes.append(box);
      box.getBoundingClientRect(); // the move begins here
    }
    const color = node.marked ? "var(--fts-orange)" : "var(--fts-blue)",
      half = NODE_SIZE / 2;
    box.innerHTML = `<rect x="${-half - 4}" y="${-half + 2}" width="${NODE_SIZE + 8}" height="${NODE_SIZE - 4}" rx="6" fill="var(--fts-page)" stroke="${color}" stroke-width="${node.marked ? 2.4 : 1.4}"/><text text-anchor="middle" y="5" font-size="14">${termSvg(node.text)}</text>`;
    box.style.transform = nodeShift(at.get(node.key));
  }
}

function nodePlace({ x, depth, column }, width, spacing) {
  return [width * (0.25 + 0.5 * column) + spacing * x, 26 + NODE_ROW * depth];
}

function nodeShift([x, y]) {
  return `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
}

function nodeEdge([ax, ay], [bx, by]) {
  return `<path class="axis" d="M${ax.toFixed(1)} ${(ay + NODE_SIZE / 2 - 2).toFixed(1)}L${bx.toFixed(1)} ${(by - NODE_SIZE / 2 + 2).toFixed(1)}"/>`;
}
