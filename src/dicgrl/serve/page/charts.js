// Drawings of numbers: lines over versions, stacked bars, and how reliable probabilities are.
// Each is a figure with a caption, and the numbers as a table behind it.

import { fresh, h, s } from "./dom.js";

// Drawings are scaled to their place: on a phone they are drawn small, so that one can read the numbers.
const PHONE = matchMedia("(max-width: 560px)").matches;
const WIDE = PHONE ? 330 : 560, HIGH = PHONE ? 190 : 230;
const EDGE = { left: 46, right: 14, top: 12, bottom: 30 };

function ticks(low, high, about = 4) {
  const rough = (high - low || 1) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough - 1e-12);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(10)));
  return found;
}

function frame(xs, low, high, format, xLabel) {
  const across = WIDE - EDGE.left - EDGE.right, down = HIGH - EDGE.top - EDGE.bottom;
  const x = (at) => EDGE.left + (xs.length > 1 ? (at / (xs.length - 1)) * across : across / 2);
  const y = (value) => EDGE.top + down * (1 - (value - low) / (high - low || 1));
  const every = Math.max(1, Math.ceil(xs.length / (PHONE ? 7 : 12)));
  const marks = [
    ticks(low, high).map((at) => [
      s("line", { class: "grid", x1: EDGE.left, x2: WIDE - EDGE.right, y1: y(at), y2: y(at) }),
      s("text", { class: "tick", x: EDGE.left - 8, y: y(at), "text-anchor": "end", "dominant-baseline": "middle" }, format(at)),
    ]),
    xs.map((each, i) => i % every === 0 && s("text", { class: "tick", x: x(i), y: HIGH - 10, "text-anchor": "middle" }, String(each))),
    xLabel && s("text", { class: "tick", x: WIDE - EDGE.right, y: HIGH - 10, "text-anchor": "end" }, ""),
  ];
  return { x, y, marks, across, down };
}

function figure({ title, note, drawing, said, table, legend }) {
  const id = fresh("chart");
  return h("figure", { class: "card chart", "aria-labelledby": id },
    h("figcaption", {}, h("h2", { id }, title), note && h("p", { class: "soft" }, note)),
    legend,
    h("div", { class: "drawing", role: "img", "aria-label": said }, drawing),
    table && h("details", {}, h("summary", {}, "The numbers"), h("div", { class: "scroll" }, table)));
}

function numbers(heads, rows) {
  return h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => (i ? h("td", { class: "number" }, cell) : h("th", { scope: "row" }, cell)))))));
}

const key = (name, className) => h("span", { class: "key" }, h("span", { class: `line ${className}`, "aria-hidden": "true" }), name);

/**
 * Lines over versions.
 * @param {object} given title, note, xs (versions), series: [{name, values (null where unknown), className}], format, low, high.
 */
export function lines({ title, note, xs, series, format, low, high }) {
  const every = series.flatMap((each) => each.values).filter((value) => value !== null && value !== undefined);
  if (!every.length) return null;
  const [least, most] = [low ?? Math.min(...every), high ?? Math.max(...every)];
  const room = (most - least || Math.abs(most) || 1) * 0.08;
  const { x, y, marks } = frame(xs, low ?? least - room, high ?? most + room, format);
  const drawn = series.map(({ name, values, className }) => {
    const places = values.map((value, i) => (value === null || value === undefined ? null : [x(i), y(value), value, i]));
    let path = "";
    places.forEach((place, i) => place && (path += `${i && places[i - 1] ? "L" : "M"}${place[0].toFixed(1)} ${place[1].toFixed(1)}`));
    return s("g", { class: `series ${className}` },
      s("path", { d: path }),
      places.filter(Boolean).map(([px, py, value, i]) => s("circle", { cx: px, cy: py, r: xs.length > 40 ? 1.5 : 3 }, s("title", {}, `${name}, version ${xs[i]}: ${format(value)}`))));
  });
  const main = series[0];
  const known = main.values.filter((value) => value !== null && value !== undefined);
  const said = `${title}. ${main.name}: ${format(known[0])} at first, ${format(known[known.length - 1])} at last.`;
  const show = (value) => (value === null || value === undefined ? "–" : format(value));
  const table = numbers(["version", ...series.map((each) => each.name)], xs.map((each, i) => [String(each), ...series.map((one) => show(one.values[i]))]));
  const legend = series.length > 1 && h("p", { class: "keys" }, series.filter((each) => !each.quiet).map((each) => key(each.name, each.className)));
  return figure({ title, note, said, table, legend, drawing: s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" }, marks, drawn) });
}

/** Bars over versions, stacked. series: [{name, values, className}]. */
export function bars({ title, note, xs, series, format }) {
  const totals = xs.map((_, i) => series.reduce((sum, each) => sum + (each.values[i] || 0), 0));
  const most = Math.max(...totals);
  if (!(most > 0)) return null;
  const { y, marks, across } = frame(xs, 0, most * 1.06, format);
  const wide = Math.min(46, (across / xs.length) * 0.62);
  const x = (i) => EDGE.left + ((i + 0.5) / xs.length) * across;
  const labels = marks.filter((_, i) => i !== 1);
  const every = Math.max(1, Math.ceil(xs.length / 12));
  const drawn = xs.map((each, i) => {
    let base = 0;
    return [
      i % every === 0 && s("text", { class: "tick", x: x(i), y: HIGH - 10, "text-anchor": "middle" }, String(each)),
      series.map(({ name, values, className }) => {
        const from = base;
        base += values[i] || 0;
        return s("rect", { class: `block ${className}`, x: x(i) - wide / 2, width: wide, y: y(base), height: Math.max(0, y(from) - y(base)) },
          s("title", {}, `${name}, version ${each}: ${format(values[i] || 0)}`));
      }),
    ];
  });
  const said = `${title}. ${format(totals[0])} at first, ${format(totals[totals.length - 1])} at last.`;
  const table = numbers(["version", ...series.map((each) => each.name)], xs.map((each, i) => [String(each), ...series.map((one) => format(one.values[i] || 0))]));
  const legend = series.length > 1 && h("p", { class: "keys" }, series.map((each) => key(each.name, each.className)));
  return figure({ title, note, said, table, legend, drawing: s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" }, labels, drawn) });
}

/** How often answers of each probability are right. bins: [{said, right, count}]. */
export function reliability({ title, note, bins, format }) {
  const wide = 300, edge = 40, side = wide - edge - 14;
  const x = (share) => edge + share * side, y = (share) => 12 + (1 - share) * side;
  const used = bins.filter((bin) => bin.count);
  const most = Math.max(...used.map((bin) => bin.count));
  const grid = [0, 0.25, 0.5, 0.75, 1].map((at) => [
    s("line", { class: "grid", x1: edge, x2: x(1), y1: y(at), y2: y(at) }),
    s("text", { class: "tick", x: edge - 7, y: y(at), "text-anchor": "end", "dominant-baseline": "middle" }, format(at)),
    s("text", { class: "tick", x: x(at), y: y(0) + 18, "text-anchor": "middle" }, format(at)),
  ]);
  const drawn = s("svg", { viewBox: `0 0 ${wide} ${wide + 4}`, "aria-hidden": "true" }, grid,
    s("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    s("g", { class: "series main" },
      s("path", { d: used.map((bin, i) => `${i ? "L" : "M"}${x(bin.said).toFixed(1)} ${y(bin.right).toFixed(1)}`).join("") }),
      used.map((bin) => s("circle", { cx: x(bin.said), cy: y(bin.right), r: 2.5 + 2 * Math.sqrt(bin.count / most) },
        s("title", {}, `probability ${format(bin.said)}: ${format(bin.right)} of ${bin.count} right`)))));
  const table = numbers(["probability", "right", "answers"], used.map((bin) => [format(bin.said), format(bin.right), String(bin.count)]));
  return figure({ title, note, said: `${title}. ${note}`, drawing: drawn, table });
}
