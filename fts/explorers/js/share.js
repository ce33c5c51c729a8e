// The state of a page's explorers in the address: #fts:key?tau=0.6&lam0_factor=2;other-key?...

const MARK = "#fts:";

/** Values by control of the explorer `key`, from the address; empty when it says nothing of it. */
export function sharedState(key) {
  return Object.fromEntries(new URLSearchParams(segments().get(key) ?? ""));
}

/** Write an explorer's changed values into the address, this explorer first; no values remove it. */
export function shareState(key, changed) {
  const all = segments();
  all.delete(key);
  const text = new URLSearchParams(changed).toString();
  const list = [...(text ? [[key, text]] : []), ...all].map(([name, values]) => `${name}?${values}`);
  const address = list.length ? MARK + list.join(";") : location.pathname + location.search;
  try {
    history.replaceState(history.state, "", address);
  } catch {
    // Browsers limit how often an address may change; the next change writes it.
  }
}

function segments() {
  const hash = unescaped(location.hash);
  if (!hash.startsWith(MARK)) return new Map();
  return new Map(
    hash
      .slice(MARK.length)
      .split(";")
      .map((part) => [part.split("?")[0], part.split("?")[1] ?? ""]),
  );
}

/** The address as a reader sees it; one that is cut off inside a %-sequence stays as it is. */
function unescaped(text) {
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}
