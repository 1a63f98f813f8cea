// An entity: its facts, what is likely, why, and what is similar.

import { get, predict } from "../api.js";
import { combobox } from "../combobox.js";
import { announce, backwards, count, counted, empty, entityAddress, failed, fresh, h, percent, put, waiting } from "../dom.js";
import { explained } from "./why.js";

const SHOWN = 12; // facts of a relation before the rest is folded
const ANSWERS = 10;

export async function entity(place, { state, label }) {
  const leaving = new AbortController();
  const field = combobox({
    label: "Find another entity",
    choose: (chosen) => (location.hash = entityAddress(chosen.label)),
  });
  const body = h("div", {}, waiting(`Looking up ${label}`));
  place.append(h("div", { class: "top-search" }, field.box), body);
  let about;
  try {
    about = await get("api/entity", { label }, leaving.signal);
  } catch (error) {
    if (error.status !== 422) throw error;
    put(body,
      h("h1", {}, label),
      empty("Not in the graph", `No ${state.run.what === "nodes" ? "node" : "entity"} has this label or name. If one is added, it can be found here at once.`),
    );
    return () => leaving.abort();
  }
  const facts = h("section", { class: "card", "aria-labelledby": "facts" });
  const similar = h("section", { class: "card", "aria-labelledby": "similar" });
  const question = about.facts ? asking(about, state, leaving.signal) : classes(about, leaving.signal);
  put(body,
    header(about),
    h("div", { class: "columns" }, facts, question.box, similar),
  );
  fillFacts(facts, about);
  fillSimilar(similar, about);
  state.onVersion = async () => {
    try {
      about = await get("api/entity", { label }, leaving.signal);
      body.querySelector(".title").replaceWith(header(about));
      fillFacts(facts, about);
      fillSimilar(similar, about);
      question.again();
    } catch {
      // The banner says it.
    }
  };
  return () => leaving.abort();
}

function header(about) {
  const said = [about.kind, about.name !== about.label && about.label];
  const heldOut = about.facts ? about.count - about.degree : 0;
  const known = about.facts
    ? `${counted(about.degree, "fact")}${heldOut > 0 ? `, and ${count(heldOut)} held out` : ""}`
    : counted(about.count, "neighbour");
  return h("div", { class: "title" },
    h("h1", {}, about.name),
    h("p", { class: "meta" },
      [...said.filter(Boolean), known].map((each) => h("span", {}, each)),
      h("span", {}, h("a", { href: `#/map?show=${encodeURIComponent(about.label)}` }, "show on the map"))));
}

const link = (entity) => h("a", { href: entityAddress(entity.label) }, entity.name);

function folded(items, listClass) {
  const list = h("ul", { class: listClass }, items.slice(0, SHOWN));
  if (items.length <= SHOWN) return list;
  const more = h("button", { type: "button", class: "quiet more", onclick: () => (more.remove(), list.append(...items.slice(SHOWN))) },
    `${count(items.length - SHOWN)} more`);
  return [list, more];
}

function fillFacts(box, about) {
  const heading = h("h2", { id: "facts" }, about.facts ? "Known facts" : "Class and neighbours");
  if (!about.facts) {
    const known = about.class
      ? [link0(about.class), h("span", { class: "tag" }, about.learned ? "learned" : "held out")]
      : "not known";
    return put(box, heading,
      h("dl", { class: "facts" }, h("div", {}, h("dt", {}, "class"), h("dd", {}, known)),
        h("div", {}, h("dt", {}, "neighbours"), h("dd", {},
          about.neighbours.length ? folded(about.neighbours.map((each) => h("li", {}, link(each))), "values") : "none"))));
  }
  const groups = new Map();
  for (const fact of about.facts) {
    const forwards = fact.head.label === about.label;
    const name = forwards ? fact.relation.name : backwards(fact.relation.name);
    const other = forwards ? fact.tail : fact.head;
    const item = h("li", {}, link(other), fact.held_out && h("span", { class: "tag", title: "Held out to measure with, not learned" }, "held out"));
    groups.set(name, [...(groups.get(name) || []), item]);
  }
  put(box, heading,
    groups.size
      ? h("dl", { class: "facts" }, [...groups].map(([name, items]) => h("div", {}, h("dt", {}, name), h("dd", {}, folded(items, "values")))))
      : h("p", { class: "soft" }, "No known facts."),
    about.count > about.facts.length && h("p", { class: "soft" }, `The first ${count(about.facts.length)} of ${counted(about.count, "fact")}.`));
}

const link0 = (each) => h("strong", {}, each.name);

function fillSimilar(box, about) {
  const some = about.similar || [];
  put(box,
    h("h2", { id: "similar" }, "Similar"),
    some.length
      ? h("ol", { class: "bars" }, some.map((each) =>
          h("li", {}, link(each), bar(Math.max(0, each.score)), h("span", { class: "number", title: "Cosine of the angle between the two vectors" }, each.score.toFixed(2)))))
      : h("p", { class: "soft" }, "No vector yet: it has just arrived and will be learned with the next version."),
  );
}

/** A bar for a share; what it says is beside it in words. */
export function bar(share) {
  const inner = h("span", {});
  inner.style.width = `${Math.round(100 * Math.min(1, Math.max(0.004, share)))}%`;
  return h("span", { class: "bar-of", "aria-hidden": "true" }, inner);
}

function asking(about, state, signal) {
  const often = new Map(); // how many facts it has at either end of each relation
  for (const fact of about.facts) {
    const key = `${fact.head.label === about.label ? "tail" : "head"} ${fact.relation.label}`;
    often.set(key, (often.get(key) || 0) + 1);
  }
  const options = [];
  for (const asked of ["tail", "head"])
    for (const relation of state.run.relations) options.push({ asked, relation, has: often.get(`${asked} ${relation.label}`) || 0 });
  options.sort((a, b) => b.has - a.has);
  const likely = options.filter((each) => each.has), rest = options.filter((each) => !each.has);
  const words = (each) => (each.asked === "tail" ? each.relation.name : backwards(each.relation.name));
  const id = fresh("ask");
  const option = (each) => h("option", { value: String(options.indexOf(each)) }, words(each));
  const select = h("select", { id, onchange: () => ask() },
    likely.length ? [h("optgroup", { label: "has facts" }, likely.map(option)), h("optgroup", { label: "other relations" }, rest.map(option))] : rest.map(option));
  const unknown = h("input", { type: "checkbox", id: `${id}-new`, onchange: () => ask() });
  const list = h("div", { class: "answers", "aria-live": "off" });
  const box = h("section", { class: "card", "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, "Predictions"),
    h("div", { class: "row" },
      h("div", { class: "field" }, h("label", { for: id }, "Ask for"), select),
      h("div", { class: "check" }, unknown, h("label", { for: `${id}-new` }, "hide known facts"))),
    list);
  let mine = 0;

  async function ask(quietly = false) {
    const turn = ++mine;
    const each = options[Number(select.value)];
    if (!each) return put(list, h("p", { class: "soft" }, "There are no relations yet."));
    const question = { relation: each.relation.label, [each.asked === "tail" ? "head" : "tail"]: about.label };
    if (!quietly) put(list, waiting("Asking"));
    try {
      const { answers } = await predict(question, ANSWERS, unknown.checked, signal);
      if (turn !== mine) return;
      put(list, answered(answers, (answer) => ({ ...question, [each.asked]: answer.label })));
      if (!quietly) announce(`${counted(answers.length, "answer")} for ${words(each)}`);
    } catch (error) {
      if (turn === mine && error.name !== "AbortError") put(list, failed(error, () => ask()));
    }
  }

  ask(true);
  return { box, again: () => ask(true) };
}

function classes(about, signal) {
  const list = h("div", { class: "answers" });
  const box = h("section", { class: "card", "aria-labelledby": "classes" }, h("h2", { id: "classes" }, "Predicted class"), list);
  async function ask() {
    try {
      put(list, answered((await predict({ node: about.label }, ANSWERS, false, signal)).answers));
    } catch (error) {
      if (error.name !== "AbortError") put(list, failed(error, ask));
    }
  }
  ask();
  return { box, again: ask };
}

/** Answers, best first; with `fact` each can be explained. */
export function answered(answers, fact) {
  if (!answers.length) return h("p", { class: "soft" }, "No further answers.");
  const sure = answers.some((each) => each.probability !== null && each.probability !== undefined);
  return [
    h("ol", { class: "bars ranked" }, answers.map((each) => row(each, sure, fact))),
    h("p", { class: "note" }, sure ? "Probabilities are calibrated on held-out facts." : fact
      ? "Scores: higher is more likely. Probabilities need held-out facts, and this run has none."
      : "Probabilities of the model, not calibrated."),
  ];
}

function row(answer, sure, fact) {
  const share = sure ? answer.probability : fact ? null : answer.score;
  const told = share === null ? answer.score.toFixed(2) : percent(share);
  const item = h("li", {},
    h("span", { class: "answer-name" }, fact ? link(answer) : link0(answer),
      answer.known && h("span", { class: "tag known" }, "known"),
      answer.held_out && h("span", { class: "tag", title: "True, and held out to measure with" }, "held out")),
    share === null ? h("span", {}) : bar(share),
    h("span", { class: "number" }, told));
  if (!fact) return item;
  const id = fresh("why");
  const panel = h("div", { id, class: "why", hidden: true });
  const button = h("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": id, "aria-label": `Why ${answer.name}?`,
    onclick: async () => {
      panel.hidden = !panel.hidden;
      button.setAttribute("aria-expanded", String(!panel.hidden));
      if (!panel.hidden && !panel.childElementCount) await explained(panel, fact(answer));
    } }, "why?");
  item.append(button, panel);
  return item;
}
