// The reports of nightly work.

import { count, counted, h, percent, seconds, when } from "../dom.js";

/** A section with the reports, the newest first; it says how to get some where there are none. */
export function nightly(nights) {
  return h("section", { class: "card", "aria-labelledby": "nights" },
    h("h2", { id: "nights" }, "Nightly reports"),
    nights.length
      ? h("ol", { class: "nights" }, nights.map(night))
      : h("p", { class: "soft" }, "None yet. ", h("code", {}, "dicgrl nightly"), " learns what arrived over the day, checks the result and reports here."));
}

function night({ version, time, report }) {
  const doubts = report.doubts || [];
  const failed = (report.gates || []).filter((gate) => gate.failed);
  return h("li", {},
    h("details", {},
      h("summary", {},
        h("strong", {}, when(time)),
        h("span", {}, `version ${version}`),
        report.kept === false && h("span", { class: "tag warn" }, "refused"),
        report.kept !== false && failed.length > 0 && h("span", { class: "tag warn" }, "kept although a gate failed"),
        doubts.length > 0 && h("span", { class: "tag warn" }, counted(doubts.length, "warning")),
        h("span", { class: "soft" }, brief(report))),
      h("dl", { class: "facts" }, rows(report).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))));
}

/** A night in one line. */
function brief({ summary, facts, held_out: held, foretold }) {
  const said = [];
  if (typeof summary === "string") said.push(summary);
  if (facts) said.push(counted(facts.new, "new fact"));
  const [name, value] = first(held && held.metrics);
  if (name) said.push(`${words(name)} ${percent(value, 1)}`);
  const [told, share] = first(foretold && foretold.metrics);
  if (told) said.push(`${words(told)} ${percent(share, 1)} on tonight's facts before they were learned`);
  return said.join("; ");
}

function rows(report) {
  const { facts, foretold, held_out: held, gates, doubts, seconds: took, retraining, source, ...rest } = report;
  const all = [
    source && ["source", source],
    facts && ["facts", h("span", {}, ["given", "known", "held_out", "new", "learned", "newcomers"].filter((name) => facts[name] !== undefined).map((name) => `${count(facts[name])} ${words(name)}`).join(", "))],
    foretold && foretold.metrics && ["before learning", `${measures(foretold.metrics)} on ${counted(foretold.asked || 0, "question")} about tonight's facts`],
    held && held.metrics && ["held-out facts", measures(held.metrics)],
    held && held.same && held.before && held.same.metrics && ["the same questions", `${measures(held.same.metrics)}; before: ${measures(held.before.metrics || {})}`],
    held && held.retention !== null && held.retention !== undefined && ["first part's right answers kept", percent(held.retention, 1)],
    gates && gates.length && ["gates", h("ul", {}, gates.map((gate) => h("li", {}, h("code", {}, gate.gate), ` ${gate.failed ? "failed" : gate.skipped || "passed"}`)))],
    doubts && doubts.length && ["warnings", h("ul", {}, doubts.map((each) => h("li", {}, each)))],
    took && ["took", Object.entries(took).map(([name, value]) => `${words(name)} ${seconds(value)}`).join(", ")],
  ];
  const plain = Object.entries({ ...rest, ...(retraining && typeof retraining === "object" ? flat(retraining, "retraining ") : {}) })
    .filter(([name, value]) => !["time", "version", "kept", "night", "summary"].includes(name) && ["string", "number", "boolean"].includes(typeof value) && value !== "")
    .map(([name, value]) => [words(name), typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value)]);
  return [...all.filter(Boolean), ...plain];
}

const words = (name) => (name === "mrr" ? "MRR" : name.replaceAll("_", " ").replace("hits", "Hits"));
const first = (metrics) => Object.entries(metrics || {})[0] || [];
const measures = (metrics) => Object.entries(metrics).map(([name, value]) => `${words(name)} ${percent(value, 1)}`).join(", ");
const flat = (found, before) => Object.fromEntries(Object.entries(found).map(([name, value]) => [before + name, value]));
