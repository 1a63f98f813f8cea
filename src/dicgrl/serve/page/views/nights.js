// The reports of nightly work.

import { count, h, seconds, when } from "../dom.js";

/** A section with the reports, the newest first; it says how to get some where there are none. */
export function nightly(nights) {
  return h("section", { class: "card", "aria-labelledby": "nights" },
    h("h2", { id: "nights" }, "Nights"),
    nights.length
      ? h("ol", { class: "nights" }, nights.map(night))
      : h("p", { class: "soft" }, "No report yet. ", h("code", {}, "dicgrl nightly"), " learns what arrived over the day, checks it, and reports here."));
}

function night({ version, time, report }) {
  const { title, rows } = told(report);
  return h("li", {},
    h("details", {},
      h("summary", {}, h("strong", {}, when(time)), h("span", {}, ` version ${version}`), title && h("span", { class: "soft" }, title)),
      h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))));
}

function told(report) {
  const rows = [];
  const words = (name) => name.replaceAll("_", " ");
  const value = (name, each) => {
    if (typeof each === "number") return name.includes("seconds") ? seconds(each) : Number.isInteger(each) ? count(each) : String(Number(each.toPrecision(4)));
    if (typeof each === "boolean") return each ? "yes" : "no";
    if (Array.isArray(each)) return each.length ? h("ul", {}, each.slice(0, 30).map((one) => h("li", {}, typeof one === "object" ? JSON.stringify(one) : String(one)))) : "none";
    return String(each);
  };
  const walk = (found, before) => {
    for (const [name, each] of Object.entries(found || {})) {
      if (each === null || each === "") continue;
      if (typeof each === "object" && !Array.isArray(each)) walk(each, `${before}${words(name)}: `);
      else rows.push([before + words(name), value(name, each)]);
    }
  };
  walk(report, "");
  const title = ["summary", "verdict", "status", "result"].map((name) => report && report[name]).find((each) => typeof each === "string") || "";
  return { title, rows };
}
