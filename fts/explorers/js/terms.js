// Functions q(u) on arrays, and equations as text (fts/equations).

const FUNCTIONS = ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "abs"];

/** q(u) entrywise into `out`; q is a list of [factors, coefficient], a factor [name, argument, exponent]. */
export function evaluate(q, u, out) {
  out.fill(0);
  for (const [factors, coefficient] of q) {
    const product = new Float64Array(u.length).fill(coefficient);
    for (const [name, argument, exponent] of factors) {
      const values = factorValues(name, argument, u);
      for (let i = 0; i < u.length; i++) product[i] *= exponent === 1 ? values[i] : values[i] ** exponent;
    }
    for (let i = 0; i < u.length; i++) out[i] += product[i];
  }
  return out;
}

/** n when q is exactly u^n with a natural n up to 8, else null: the case worth a fast loop. */
export function naturalPower(q) {
  if (q.length !== 1 || q[0][1] !== 1 || q[0][0].length !== 1) return null;
  const [name, , exponent] = q[0][0][0];
  return name === "u" && Number.isInteger(exponent) && exponent > 0 && exponent <= 8 ? exponent : null;
}

function factorValues(name, argument, u) {
  if (name === "u") return u;
  const inner = evaluate(argument, u, new Float64Array(u.length));
  if (name === "") return inner;
  if (!FUNCTIONS.includes(name)) throw new Error(`unknown function ${name}`);
  return inner.map(Math[name]);
}

/** `u_t = -0.99 u*u_x - ...`, as Python prints it; `terms` carry {factor, body}. */
export function equationText(terms, xi) {
  return "u_t = " + join(products(terms, xi), (size, body) => spoken(size, body, " "));
}

/** The same as HTML with subscripts and superscripts. */
export function equationHtml(terms, xi) {
  return (
    "<i>u</i><sub>t</sub> = " +
    join(products(terms, xi), (size, body) => spoken(size, termHtml(body), "&#8201;"))
      .replaceAll(" - ", " − ")
      .replace(/^-/, "−")
  );
}

/** A term's text with subscripts and superscripts. */
export function termHtml(body) {
  return body
    .replace(/D_([xyz]+)/g, "∂<sub>$1</sub>")
    .replace(/\bu_([xyzt]+)/g, "<i>u</i><sub>$1</sub>")
    .replace(/\bu(?=$|[\^*)\s])/g, "<i>u</i>")
    .replace(/\^(-?[\d.]+)/g, "<sup>$1</sup>")
    .replaceAll("*", "&#8201;");
}

function products(terms, xi) {
  const shown = [];
  terms.forEach((term, j) => {
    if (xi[j] !== 0) shown.push([xi[j] * term.factor, term.body]);
  });
  return shown;
}

function join(parts, print) {
  let text = "";
  for (const [value, body] of parts) {
    const minus = value < 0 || Object.is(value, -0);
    text += (text ? (minus ? " - " : " + ") : minus ? "-" : "") + print(Math.abs(value), body);
  }
  return text || "0";
}

function spoken(size, body, space) {
  if (size === 1) return body;
  let number = general(size);
  if (number === "1") number = size.toFixed(2);
  return body === "1" ? number : `${number}${space}${body}`;
}

/** "7.12e-05" as it is printed: 7.12×10⁻⁵, and 10⁻⁵ for "1e-05". */
export function powerOfTen(text) {
  return text.replace(/^([\d.]+)e([+-]?)0*(\d+)$/, (_, mantissa, sign, digits) => {
    const raised = [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
    return `${mantissa === "1" ? "" : `${mantissa}×`}10${sign === "-" ? "⁻" : ""}${raised}`;
  });
}

/** Three significant digits as Python's format code .3g gives them. */
export function general(value) {
  if (value === 0) return "0";
  const exponent = Number(value.toExponential(2).split("e")[1]);
  if (exponent < -4 || exponent >= 3) {
    const [mantissa, power] = value.toExponential(2).split("e");
    return `${Number(mantissa)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  return String(Number(value.toPrecision(3)));
}

/** The same with a real minus sign. */
export function signed(value) {
  return (value < 0 ? "−" : "") + general(Math.abs(value));
}
