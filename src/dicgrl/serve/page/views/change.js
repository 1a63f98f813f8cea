// Add a fact or take one back, and see what changes.

import { predict, send } from "../api.js";
import { combobox } from "../combobox.js";
import { announce, counted, empty, failed, fresh, h, percent, put } from "../dom.js";

const ANSWERS = 5;
let token = ""; // kept by the page alone, until it is closed

export function change(place, { state }) {
  const { what, relations = [], writable } = state.run;
  place.append(h("h1", {}, "Change the graph"));
  if (what === "nodes")
    return void place.append(empty("Networks are changed on the command line", "Nodes come with features, which do not fit into a form: use dicgrl learn, forget and replace."));
  place.append(h("p", { class: "lead" }, "A fact counts in answers at once, and is learned with the next version."));
  if (!writable)
    return void place.append(empty("This server is read-only", "It was started without a token.",
      h("span", {}, "Start it with ", h("code", {}, "DICGRL_TOKEN=... dicgrl serve RUN"), ", and enter that token here.")));
  place.append(new Form(state, relations).box);
  return undefined;
}

class Form {
  constructor(state, relations) {
    this.state = state;
    const id = fresh("fact");
    this.head = combobox({ label: "Head", hint: "an entity, known or new", choose: () => this.relation.focus() });
    this.tail = combobox({ label: "Tail", hint: "an entity, known or new", choose: () => {} });
    this.relation = h("input", { id: `${id}-relation`, type: "text", list: `${id}-relations`, autocomplete: "off", spellcheck: "false" });
    const known = h("datalist", { id: `${id}-relations` }, relations.map((each) => h("option", { value: each.name })));
    this.token = h("input", { id: `${id}-token`, type: "password", autocomplete: "off", spellcheck: "false" });
    this.token.value = token;
    this.problem = h("div", { role: "alert" });
    this.outcome = h("section", { class: "outcome", "aria-label": "What changed", "aria-live": "polite" });
    const form = h("form", { class: "card change", novalidate: true, onsubmit: (event) => (event.preventDefault(), this.send("POST")) },
      h("div", { class: "triple" }, this.head.box,
        h("div", { class: "field" }, h("label", { for: `${id}-relation` }, "Relation"), this.relation, known), this.tail.box),
      h("div", { class: "row end" },
        h("div", { class: "field" }, h("label", { for: `${id}-token` }, "Token"), this.token),
        h("div", { class: "buttons" },
          this.add = h("button", { type: "submit", class: "button" }, "Add"),
          this.retract = h("button", { type: "button", class: "button second", onclick: () => this.send("DELETE") }, "Retract"))),
      this.problem);
    this.box = h("div", {}, form, this.outcome);
  }

  fact() {
    return [this.head.input, this.relation, this.tail.input].map((field) => field.value.trim());
  }

  async send(method) {
    const fact = this.fact();
    const fields = [this.head.input, this.relation, this.tail.input];
    const missing = fact.findIndex((each) => !each);
    put(this.problem);
    fields.concat(this.token).forEach((field) => field.removeAttribute("aria-invalid"));
    if (missing >= 0) return this.refuse(fields[missing], `Enter a ${["head", "relation", "tail"][missing]}.`);
    token = this.token.value;
    if (!token) return this.refuse(this.token, "Enter the token that the server was started with.");
    this.busy(true);
    try {
      const before = await likely(fact);
      const told = await send(method, "facts", { facts: [fact] }, token);
      const version = this.state.version;
      this.follow(method, fact, before, told, version);
    } catch (error) {
      const place = error.status === 401 || error.status === 403 ? this.token : null;
      if (place) this.refuse(place, error.status === 401 ? "This is not the token that the server was started with." : error.message);
      else put(this.problem, failed(error));
    } finally {
      this.busy(false);
    }
  }

  busy(is) {
    for (const button of [this.add, this.retract]) button.disabled = is;
  }

  refuse(field, text) {
    field.setAttribute("aria-invalid", "true");
    field.focus();
    put(this.problem, h("p", { class: "refused" }, text));
  }

  /** What is answered before, at once, and when it is learned. */
  async follow(method, fact, before, told, version) {
    const nothing = method === "POST" ? told.known && !told.queued && "already known" : told.unknown && !told.queued && "not known";
    const done = nothing || (method === "POST" ? "added" : "retracted");
    const status = h("p", { class: "soft" });
    const columns = h("div", { class: "three" });
    const step = (title, answers) => columns.append(column(title, answers, fact[2]));
    put(this.outcome, h("div", { class: "card" },
      h("h2", {}, `${fact[0]} · ${fact[1]} · ${fact[2]}`, h("span", { class: "tag known" }, done)),
      h("p", {}, `Answers to “${fact[0]}, ${fact[1]}, ?”`), columns, status));
    step("Before", before);
    announce(`The fact was ${done}`);
    if (nothing) return;
    const waits = () => (status.textContent = `Waiting to be learned${this.state.health.pending > 1 ? ` (${counted(this.state.health.pending, "fact")} in all)` : ""}; this will be updated.`);
    waits();
    let shown = false;
    const more = async () => {
      const now = await likely(fact).catch(() => null);
      if (this.state.version > version) {
        this.state.onVersion = null;
        step(`Learned in version ${this.state.version}`, now);
        status.textContent = "";
        status.append("Learned. ", h("a", { href: "#/map" }, "See what moved on the map"));
      } else if (!shown) {
        shown = true;
        step("At once", now);
      }
    };
    this.state.onVersion = more;
    await more();
  }
}

/** The best answers to head and relation; null where they are not known yet. */
async function likely([head, relation]) {
  try {
    return (await predict({ head, relation }, ANSWERS)).answers;
  } catch (error) {
    if (error.status === 422) return null;
    throw error;
  }
}

function column(title, answers, tail) {
  return h("div", {}, h("h3", { class: "overline" }, title),
    answers
      ? h("ol", { class: "short" }, answers.map((each) =>
          h("li", { class: each.name === tail || each.label === tail ? "it" : "" }, h("span", {}, each.name, each.known && h("span", { class: "tag known" }, "known")),
            h("span", { class: "number" }, each.probability === null ? each.score.toFixed(2) : percent(each.probability)))))
      : h("p", { class: "soft" }, "Cannot be asked: the head or the relation is not known."));
}
