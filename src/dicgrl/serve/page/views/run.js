// What became of the run: quality, cost, drift, calibration, versions, nights.

import { get } from "../api.js";
import { bars, lines, reliability } from "../charts.js";
import { bytes, count, counted, empty, h, percent, put, seconds, waiting, when } from "../dom.js";
import { nightly } from "./nights.js";

const NAMED = { mrr: "MRR", "hits@1": "Hits@1", "hits@3": "Hits@3", "hits@10": "Hits@10", accuracy: "Accuracy" };
const BROUGHT = 40; // versions in the table, the newest

export async function run(place, { state }) {
  const leaving = new AbortController();
  const body = h("div", {}, waiting("Loading the history"));
  place.append(h("h1", {}, "Run history"), body);

  async function read() {
    const [past, told] = await Promise.all([get("api/history", {}, leaving.signal), get("api/nights", {}, leaving.signal)]);
    put(body, ...drawn(past, told.nights));
  }

  state.onVersion = () => read().catch(() => {}); // the banner says it
  await read();
  return () => leaving.abort();
}

function drawn({ metric, parts, earlier, bytes: size }, nights) {
  if (!parts.length) return [empty("Nothing has been learned yet", "Each part that is learned becomes a version and is listed here.")];
  const name = NAMED[metric] || metric;
  const xs = parts.map((part) => part.version);
  const last = [...parts].reverse().find((part) => part.whole) || parts[parts.length - 1];
  return [
    h("p", { class: "lead" }, `${counted(parts.length + earlier, "version")}; the latest from ${when(parts[parts.length - 1].time)}.`),
    tiles(last, parts, name, metric, size),
    warned(parts),
    h("div", { class: "charts" }, [
      quality(parts, xs, name, metric), cost(parts, xs), drift(parts, xs), calibrated(parts, xs), reliable(last)].filter(Boolean)),
    versions(parts),
    nightly(nights),
  ].filter(Boolean);
}

function tiles(last, parts, name, metric, size) {
  const ece = last.calibration && last.calibration.ece;
  const all = [
    last.whole && [percent(last.whole[metric], 1), `${name}, all test facts`],
    last.retention !== null && last.retention !== undefined && parts.length > 1 && [percent(last.retention), "of the first part's right answers kept"],
    last.forgetting !== null && last.forgetting !== undefined && [Math.abs(last.forgetting * 100).toFixed(1), `points of ${name} ${last.forgetting < 0 ? "gained since, on earlier parts" : "forgotten"}`],
    ece !== null && ece !== undefined && [percent(ece, 1), "calibration error"],
    [seconds(parts[parts.length - 1].learn_seconds), "to learn the latest version"],
    [bytes(size), "on disk, all versions"],
  ];
  return h("dl", { class: "tiles" }, all.filter(Boolean).map(([value, label]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
}

function warned(parts) {
  const some = (parts[parts.length - 1].warnings || []).map((each) => h("li", {}, each));
  return some.length ? h("div", { class: "problem" }, h("p", { class: "empty-title" }, "Warnings"), h("ul", {}, some)) : null;
}

function quality(parts, xs, name, metric) {
  const numbers = new Set(parts.flatMap((part) => part.tests.map((test) => test.part)));
  const whole = { name: "all test facts", className: "main", values: parts.map((part) => (part.whole ? part.whole[metric] : null)) };
  const each = [...numbers].slice(0, 12).map((number, i) => ({
    name: `part ${number}`,
    className: `c${i % 6}`,
    quiet: numbers.size > 6,
    values: parts.map((part) => {
      const test = part.tests.find((one) => one.part === number);
      return test && test[metric] !== undefined ? test[metric] : null;
    }),
  }));
  return lines({ title: "Quality", note: `${name} on the test facts of each part, after each version. A level line means that the part is remembered.`,
    xs, series: numbers.size > 1 ? [whole, ...each] : [whole], format: (value) => percent(value) });
}

function cost(parts, xs) {
  return bars({ title: "Cost", note: "Seconds spent learning and measuring each version.", xs, format: (value) => `${Number(value.toPrecision(3))}`,
    series: [
      { name: "learning", className: "main", values: parts.map((part) => part.learn_seconds || 0) },
      { name: "measuring", className: "c1", values: parts.map((part) => part.evaluate_seconds || 0) },
    ] });
}

function drift(parts, xs) {
  const of = (name) => parts.map((part) => (part.drift ? part.drift[name] : null));
  return lines({ title: "Drift", note: "How far old vectors turned with each version: 0 is not at all, 1.41 is a right angle.", xs, low: 0,
    series: [{ name: "median", className: "main", values: of("median") }, { name: "95th percentile", className: "c1", values: of("most") }],
    format: (value) => value.toFixed(2) });
}

function calibrated(parts, xs) {
  const of = (name) => parts.map((part) => (part.calibration && part.calibration[name] !== undefined ? part.calibration[name] : null));
  return lines({ title: "Calibration", note: "How far probabilities are from how often answers are right. A perfectly calibrated model would be at the second line, because samples are small.", xs, low: 0,
    series: [{ name: "error", className: "main", values: of("ece") }, { name: "expected by chance", className: "c1", values: of("ece_by_chance") }],
    format: (value) => percent(value, 1) });
}

function reliable(last) {
  const bins = (last.calibration && last.calibration.bins) || [];
  if (!bins.some((bin) => bin.count)) return null;
  return reliability({ title: "Reliability", note: "How often the best answers are right, by their probability, as of the latest version. Perfect probabilities lie on the dashed line.",
    bins, format: (value) => percent(value) });
}

function versions(parts) {
  const shown = parts.slice(-BROUGHT).reverse();
  return h("section", { class: "card", "aria-labelledby": "versions" },
    h("h2", { id: "versions" }, "Versions"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "versions" },
      h("table", { class: "plain" },
        h("thead", {}, h("tr", {}, ["version", "kind", "time", "changes", "learned in", ""].map((head) => h("th", { scope: "col", class: head === "learned in" ? "number" : "" }, head)))),
        h("tbody", {}, shown.map((part) => h("tr", {},
          h("th", { scope: "row" }, String(part.version)),
          h("td", {}, part.kind),
          h("td", { class: "whole" }, when(part.time)),
          h("td", { class: "brought" }, part.brought),
          h("td", { class: "number" }, seconds(part.learn_seconds)),
          h("td", {}, part.tags.map((tag) => h("span", { class: "tag" }, tag)), part.message && h("span", { class: "soft" }, part.message))))))),
    parts.length > shown.length && h("p", { class: "soft" }, `The latest ${count(shown.length)}; dicgrl log lists all of them.`));
}
