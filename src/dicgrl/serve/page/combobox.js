// A field that finds entities while one types: the combobox of the ARIA practices.

import { get } from "./api.js";
import { announce, count, fresh, h, put } from "./dom.js";

/**
 * @param {object} given label (of the field), hint, value, choose(entity), typed(text), large.
 */
export function combobox({ label, hint = "", value = "", choose, typed, large = false }) {
  const id = fresh("search");
  const list = h("ul", { id: `${id}-list`, role: "listbox", class: "options", hidden: true, "aria-label": label });
  const input = h("input", {
    id,
    type: "text",
    role: "combobox",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: hint,
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
  });
  input.value = value;
  let found = [];
  let at = -1;
  let asked = null;
  let timer = 0;

  function close() {
    clearTimeout(timer);
    if (asked) asked.abort();
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(place) {
    at = place;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
    list.children[at].scrollIntoView({ block: "nearest" });
  }

  function take(entity) {
    input.value = entity.name;
    close();
    choose(entity);
  }

  function show(entities) {
    found = entities;
    put(list,
      ...entities.map((entity, i) =>
        h(
          "li",
          { id: `${list.id}-${i}`, role: "option", "aria-selected": "false", onpointerdown: (event) => (event.preventDefault(), take(entity)) },
          h("span", { class: "option-name" }, entity.name),
          h("span", { class: "option-more" }, entity.name === entity.label ? entity.kind : entity.label),
        ),
      ),
    );
    if (!entities.length) list.append(h("li", { class: "option-none", role: "presentation" }, "No match"));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(-1);
    announce(entities.length ? `${count(entities.length)} found` : "No match");
  }

  async function look() {
    const text = input.value.trim();
    if (asked) asked.abort();
    if (!text) return close();
    asked = new AbortController();
    try {
      show((await get("api/search", { q: text, k: 8 }, asked.signal)).found);
    } catch (error) {
      if (error.name !== "AbortError") announce(error.message);
    }
  }

  input.addEventListener("input", () => {
    if (typed) typed(input.value.trim());
    clearTimeout(timer);
    timer = setTimeout(look, 90);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const open = !list.hidden && found.length;
    if (event.key === "ArrowDown" && !open) look();
    else if (event.key === "ArrowDown") mark((at + 1) % found.length);
    else if (event.key === "ArrowUp" && open) mark((at - 1 + found.length) % found.length);
    else if (event.key === "Escape") close(); // and what was about to open stays away
    else if (event.key === "Enter" && open) take(found[Math.max(at, 0)]);
    else return;
    event.preventDefault();
  });
  const box = h("div", { class: large ? "search large" : "search" }, h("label", { for: id }, label), h("div", { class: "search-field" }, input, list));
  return { box, input };
}
