// Why a fact is likely: known facts that speak for it.

import { send } from "../api.js";
import { failed, h, percent, put, waiting } from "../dom.js";

const KINDS = {
  pair: "another relation of the same two",
  inverse: "in the other direction",
  path: "a path of two steps",
  alike: "a similar entity",
  about: "another fact about one of them",
};

export async function explained(panel, { head, relation, tail }) {
  put(panel, waiting("Looking for reasons"));
  try {
    const why = await send("POST", "explain", { triple: [head, relation, tail], k: 4 });
    put(panel, ...told(why));
  } catch (error) {
    put(panel, failed(error, () => explained(panel, { head, relation, tail })));
  }
}

function told(why) {
  const strongest = why.support.filter((each) => each.contribution > 0).slice(0, 6);
  if (!strongest.length) return [h("p", { class: "soft" }, "No known fact supports it; it follows from the vectors alone.")];
  const against = why.support.length && why.support[why.support.length - 1].contribution < -0.2;
  return [
    h("table", {},
      h("caption", {}, "Known facts that support it"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "fact"), h("th", { scope: "col", class: "number" }, "weight"))),
      h("tbody", {}, strongest.map((each) =>
        h("tr", {},
          h("td", {}, each.facts.map((fact) => h("div", {}, fact[0], h("span", { class: "relation" }, fact[1]), fact[2])),
            h("div", { class: "soft" }, KINDS[each.kind] || each.kind,
              each.holds !== null && each.seen > 0 && `; the rule holds in ${percent(each.holds)} of ${each.seen} other cases`)),
          h("td", { class: "number" }, each.contribution.toFixed(2)))))),
    against && h("p", { class: "note" }, "Other known facts count against it."),
  ];
}
