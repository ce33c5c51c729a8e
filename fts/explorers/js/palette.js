// The book's colors (fts/plotting.py): Okabe and Ito's without black and yellow, viridis for fields.

export const COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const VIRIDIS = [
  "440154",
  "481a6c",
  "472f7d",
  "414487",
  "39568c",
  "31688e",
  "2a788e",
  "23888e",
  "1f988b",
  "22a884",
  "35b779",
  "54c568",
  "7ad151",
  "a5db36",
  "d2e21b",
  "fde725",
].map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));

/** Red, green, blue of a value in [0, 1]. */
function viridis(value) {
  const place = Math.min(Math.max(value, 0), 1) * (VIRIDIS.length - 1);
  const i = Math.min(Math.floor(place), VIRIDIS.length - 2),
    f = place - i;
  return VIRIDIS[i].map((channel, k) => channel + f * (VIRIDIS[i + 1][k] - channel));
}

/** Data URL of an image, nx wide and ny high, from value(i, j) with j upward; what is no number is left open. */
export function fieldImage(nx, ny, value, low, high) {
  const canvas = document.createElement("canvas");
  paint(canvas, nx, ny, (pixels, at, i, j) => {
    const u = value(i, j),
      [red, green, blue] = viridis(Number.isNaN(u) ? 0 : (u - low) / (high - low || 1));
    pixels[at] = red;
    pixels[at + 1] = green;
    pixels[at + 2] = blue;
    pixels[at + 3] = Number.isNaN(u) ? 0 : 255;
  });
  return canvas.toDataURL();
}

/** Signed values onto a canvas: blue below zero, orange above, opaque where large, so that it fits either theme. */
export function paintSigned(canvas, nx, ny, value, largest) {
  paint(canvas, nx, ny, (pixels, at, i, j) => {
    const share = Math.max(-1, Math.min(1, value(i, j) / (largest || 1))),
      below = share < 0;
    pixels[at] = below ? 0 : 213;
    pixels[at + 1] = below ? 114 : 94;
    pixels[at + 2] = below ? 178 : 0;
    pixels[at + 3] = 255 * Math.abs(share);
  });
}

/** The same as a data URL. */
export function signedImage(nx, ny, value, largest) {
  const canvas = document.createElement("canvas");
  paintSigned(canvas, nx, ny, value, largest);
  return canvas.toDataURL();
}

function paint(canvas, nx, ny, color) {
  if (canvas.width !== nx || canvas.height !== ny) [canvas.width, canvas.height] = [nx, ny];
  const context = canvas.getContext("2d"),
    image = context.createImageData(nx, ny);
  for (let j = 0; j < ny; j++) for (let i = 0; i < nx; i++) color(image.data, 4 * ((ny - 1 - j) * nx + i), i, j);
  context.putImageData(image, 0, 0);
}
