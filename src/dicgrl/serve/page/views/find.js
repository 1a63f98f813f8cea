// Find an entity.

import { combobox } from "../combobox.js";
import { counted, empty, entityAddress, h } from "../dom.js";

export function find(place, { state }) {
  const { what, counts, examples } = state.run;
  const one = what === "nodes" ? "node" : "entity";
  const field = combobox({
    label: `Find ${one === "entity" ? "an" : "a"} ${one}`,
    hint: examples.length ? `for example ${examples[0].name}` : "",
    large: true,
    choose: (entity) => (location.hash = entityAddress(entity.label)),
  });
  place.append(
    h("div", { class: "hero" }, h("h1", {}, "What do you want to know?"),
      h("p", { class: "lead" }, `Look up any of ${counted(counts[what], one, what)}: what is known, what is likely, and why.`),
      field.box),
  );
  if (!examples.length) return void place.append(empty("Nothing has been learned yet"));
  const groups = new Map();
  for (const each of examples) groups.set(each.kind, [...(groups.get(each.kind) || []), each]);
  place.append(
    h("section", { class: "examples", "aria-labelledby": "to-begin-with" },
      h("h2", { id: "to-begin-with", class: "overline" }, "Start here"),
      h("div", { class: "example-groups" },
        [...groups].map(([kind, some]) =>
          h("div", { class: "example-group" },
            h("h3", { class: "kind" }, kind),
            h("ul", { class: "chips" },
              some.map((each) => h("li", {}, h("a", { class: "chip", href: entityAddress(each.label) }, each.name))))))))
  );
  if (matchMedia("(hover: hover)").matches) field.input.focus({ preventScroll: true });
}
