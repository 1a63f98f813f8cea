// Elements, numbers in words, and what is said to screen readers.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.startsWith("aria") && typeof value !== "string" && !(element instanceof SVGElement))
      element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: tag, attributes (`on...` are listeners), children. Text is never markup. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Say something to people who do not see that it changed. */
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  setTimeout(() => (live.textContent = text), 30);
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (n) => whole.format(n);

export function counted(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many || `${one}s`}`;
}

export function percent(share, digits = 0) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.5 * 10 ** -(digits + 2)) return `<\u2009${(10 ** -digits).toFixed(digits)}%`;
  return `${(share * 100).toFixed(digits)}%`;
}

export function seconds(n) {
  if (n === null || n === undefined) return "–";
  if (n >= 5400) return `${(n / 3600).toFixed(1)} h`;
  if (n >= 90) return `${(n / 60).toFixed(1)} min`;
  return n >= 10 ? `${n.toFixed(0)} s` : `${n.toFixed(1)} s`;
}

export function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) [n, at] = [n / 1000, at + 1];
  return `${at ? n.toFixed(1) : n} ${units[at]}`;
}

export function when(iso) {
  if (!iso) return "";
  const time = new Date(iso);
  return Number.isNaN(time.valueOf())
    ? iso
    : time.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** A relation in plain words for a fact that is read from the other end. */
export const backwards = (relation) => `${relation} of`;

export const entityAddress = (label) => `#/entity/${encodeURIComponent(label)}`;

/** What a view shows while it waits, fails, or has nothing. */
export const waiting = (text) => h("p", { class: "waiting", role: "status" }, h("span", { class: "spin", "aria-hidden": "true" }), text);

export function empty(title, ...said) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), said.map((each) => h("p", {}, each)));
}

export function failed(error, again) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", { class: "empty-title" }, error.title || "That did not work"),
    h("p", {}, error.message),
    again && h("button", { type: "button", onclick: again }, "Try again"),
  );
}

/** Put children in place of those that are there; what is null or false is left out. */
export function put(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

let numbered = 0;
/** An id that nothing else on the page has. */
export const fresh = (name) => `${name}-${++numbered}`;
