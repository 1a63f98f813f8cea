// The map: old points stay where they are while the graph grows, and newcomers arrive.

import { get, getBytes } from "../api.js";
import { combobox } from "../combobox.js";
import { announce, count, counted, empty, entityAddress, failed, h, percent, put, waiting } from "../dom.js";
import { CAME, arrivalColour, colours, css, degreeColour, kindColour } from "../map/colours.js";
import { Stage } from "../map/stage.js";

const LOOK = 1500;
const AT_A_TIME = 100; // names of a request
const LISTED = 20;

export async function map(place, { state, query }) {
  const leaving = new AbortController();
  const { signal } = leaving;
  const body = h("div", {}, waiting("Loading the map"));
  place.append(h("h1", { class: "unseen" }, "Map"), body);
  let view = null;

  async function begin() {
    const found = await get("api/maps", {}, signal);
    if (found.maps.length) {
      view = new MapView(body, found, state, signal, query);
      await view.open();
      if (found.state === "making") later();
      return;
    }
    if (found.state === "failed")
      return put(body, empty("There is no map", "It could not be made: the folder may be read-only, or the disk full.", h("span", {}, h("code", {}, "dicgrl map RUN"), " says why.")));
    put(body, waiting(`Laying out ${counted(state.run.counts[found.what], found.what === "nodes" ? "node" : "entity", found.what)} for the first time`));
    later();
  }

  function later() {
    setTimeout(async () => {
      if (signal.aborted) return;
      try {
        if (!view) return await begin();
        const found = await get("api/maps", {}, signal);
        view.expect(found);
        if (found.state === "making") return later();
        await view.grow(found);
      } catch (error) {
        if (error.name !== "AbortError") later();
      }
    }, LOOK);
  }

  state.onVersion = later;
  await begin();
  return () => {
    leaving.abort();
    if (view) view.close();
  };
}

class MapView {
  constructor(body, found, state, signal, query) {
    Object.assign(this, { body, found, state, signal, query });
    this.by = "kind";
    this.only = null;
    this.entities = new Map();
    this.maps = new Map();
    this.wanted = new Set();
  }

  get versions() {
    return this.found.maps;
  }

  async open() {
    this.build();
    this.expect(this.found);
    for (const each of this.found.landmarks) this.know(each);
    const asked = this.versions.findIndex((each) => String(each.version) === this.query.get("at"));
    this.slider.value = String(asked >= 0 ? asked : this.versions.length - 1);
    await this.colourings();
    await this.show({ first: true });
    if (this.query.get("show")) await this.seek(this.query.get("show"));
  }

  close() {
    this.stage.stop();
    clearInterval(this.playing);
  }

  build() {
    const canvas = h("canvas", { "aria-hidden": "true" });
    this.overlay = h("canvas", { class: "overlay", tabindex: "0", role: "application",
      "aria-label": "Map. Arrow keys move, plus and minus zoom, zero shows everything, Enter selects the point nearest the middle, Escape deselects." });
    this.card = h("div", { class: "map-card", hidden: true, role: "region", "aria-label": "Chosen point" });
    const buttons = h("div", { class: "zoom" },
      h("button", { type: "button", "aria-label": "Zoom in", title: "Zoom in", onclick: () => this.stage.zoom(1.6) }, "+"),
      h("button", { type: "button", "aria-label": "Zoom out", title: "Zoom out", onclick: () => this.stage.zoom(1 / 1.6) }, "−"),
      h("button", { type: "button", "aria-label": "Show the whole map", title: "Show the whole map", onclick: () => this.stage.home() }, "⌂"));
    this.slider = h("input", { id: "map-version", type: "range", min: "0", max: String(this.versions.length - 1), step: "1", oninput: () => this.show() });
    this.play = h("button", { type: "button", class: "quiet", onclick: () => this.run() }, "▶ Play");
    this.said = h("p", { class: "map-said", id: "map-said" });
    this.coming = h("p", { class: "soft map-coming", hidden: true });
    this.label = h("label", { for: "map-version" });
    this.changed = h("input", { type: "checkbox", id: "map-changed", onchange: () => this.show() });
    this.legend = h("div", { class: "legend", role: "group", "aria-label": "Colours" });
    const by = h("select", { id: "map-by", onchange: () => ((this.by = by.value), (this.only = null), this.paint()) },
      h("option", { value: "kind" }, this.found.what === "nodes" ? "class" : "kind"),
      h("option", { value: "arrival" }, "version of arrival"),
      h("option", { value: "degree" }, this.found.what === "nodes" ? "number of neighbours" : "number of facts"));
    this.list = h("ul", { class: "values" });
    const search = combobox({ label: "Find on the map", choose: (entity) => this.seek(entity.label) });
    put(this.body,
      h("div", { class: "map-layout" },
        h("section", { class: "map-stage", "aria-label": "Map of the embedding" }, canvas, this.overlay, buttons, this.card),
        h("aside", { class: "map-panel", "aria-label": "What the map shows" },
          search.box,
          h("section", { class: "card" },
            h("div", { class: "row" }, this.label, this.play),
            this.slider, this.said, this.coming,
            h("div", { class: "check" }, this.changed, h("label", { for: "map-changed" }, "highlight what changed"))),
          h("section", { class: "card" },
            h("div", { class: "field" }, h("label", { for: "map-by" }, "Colour by"), by), this.legend),
          h("details", { class: "card" }, h("summary", {}, "List what is in view"), this.list))));
    this.stage = new Stage({ canvas, overlay: this.overlay, flat: this.query.has("flat"),
      on: { point: (i) => this.named([i]), choose: (i) => this.chosen(i), settle: (some) => this.settled(some) } });
    this.overlay.dataset.drawer = this.stage.drawer ? this.stage.drawer.name : "none";
  }

  know(entity) {
    this.entities.set(entity.id, entity);
    this.stage.names.set(entity.id, entity.name);
  }

  async colourings() {
    this.points = new Uint16Array(await getBytes("api/points", this.signal));
    this.last = this.found.line.length - 1;
    this.most = 1;
    for (let i = 2; i < this.points.length; i += 3) this.most = Math.max(this.most, this.points[i]);
  }

  async positions(version) {
    if (!this.maps.has(version)) this.maps.set(version, new Float32Array(await getBytes(`api/map/${version}`, this.signal)));
    return this.maps.get(version);
  }

  /** Show the version that the slider is at. */
  async show({ first = false } = {}) {
    const place = Number(this.slider.value);
    const each = this.versions[place];
    this.slider.setAttribute("aria-valuetext", `version ${each.version}`);
    this.label.textContent = `Version ${each.version} of ${this.found.version}`;
    try {
      const at = await this.positions(each.version);
      const before = place ? await this.positions(this.versions[place - 1].version) : null;
      if (Number(this.slider.value) !== place || this.signal.aborted) return;
      this.now = { each, at, before };
      const told = this.moved();
      this.stage.place(at, this.sizes(at.length / 2), { trails: this.changed.checked ? told.trails : [] });
      this.paint();
      this.tell(told);
      if (!first) announce(this.said.textContent);
    } catch (error) {
      if (error.name !== "AbortError") put(this.said, failed(error, () => this.show()));
    }
  }

  sizes(many) {
    const base = many > 30000 ? 2.2 : many > 6000 ? 3 : 4;
    const found = new Float32Array(many);
    for (let i = 0; i < many; i++) found[i] = base * (0.75 + 0.22 * Math.log2(1 + (this.points[3 * i + 2] || 0)));
    return found;
  }

  /** Who came with the version that is shown, and who moved farthest. */
  moved() {
    const { each, at, before } = this.now;
    const came = new Uint8Array(this.points.length / 3);
    const far = [];
    for (let i = 0; i < at.length / 2; i++) {
      if (Number.isNaN(at[2 * i])) continue;
      const was = before && 2 * i < before.length && !Number.isNaN(before[2 * i]);
      if (!was) came[i] = before ? 1 : 0;
      else far.push([i, Math.hypot(at[2 * i] - before[2 * i], at[2 * i + 1] - before[2 * i + 1])]);
    }
    far.sort((a, b) => b[1] - a[1]);
    const [half, most] = [far.length ? far[far.length >> 1][1] : 0, far.length ? far[0][1] : 1];
    const trails = far.slice(0, 300).filter(([, d]) => d > 2 * half)
      .map(([i, d]) => [before[2 * i], before[2 * i + 1], at[2 * i], at[2 * i + 1], d / (most || 1)]);
    this.came = before ? came : null;
    return { trails, each, farthest: far.slice(0, 3).filter(([, d]) => d > 0.05 * each.spread).map(([i]) => i) };
  }

  async tell({ each, farthest }) {
    if (!each.moved) return void (this.said.textContent = `${count(each.shown)} points: the first version that has a map.`);
    const [arrived, others] = each.came ? [`${count(each.came)} arrived.`, "others"] : ["Nothing new arrived.", "points"];
    this.said.textContent = `${arrived} Half of the ${others} moved less than ${percent(each.moved.median, 1)} of the map's size.`;
    if (!farthest.length) return;
    await this.named(farthest);
    const names = farthest.map((i) => this.entities.get(i)).filter(Boolean);
    if (names.length && this.now.each === each)
      this.said.append(" Moved farthest: ", ...names.flatMap((entity, i) => [i ? ", " : "", h("a", { href: entityAddress(entity.label) }, entity.name)]), ".");
  }

  paint() {
    if (!this.now) return;
    const { by, points, only, last, most } = this;
    const { kinds } = this.found;
    this.stage.paint(colours({ by, points, kinds, last, most, only, came: this.changed.checked ? this.came : null }));
    const swatch = (colour, text) => {
      const dot = h("span", { class: "dot", "aria-hidden": "true" });
      dot.style.background = colour;
      return [dot, text];
    };
    const rows = [];
    if (this.changed.checked && this.came)
      rows.push(h("span", { class: "legend-row" }, swatch(CAME, "arrived with this version")), h("span", { class: "legend-row soft" }, "Lines start where a point was before; only the points that moved farthest have one."));
    else if (by === "kind")
      for (const [i, kind] of kinds.entries()) {
        if (!kind.count) continue;
        rows.push(h("button", { type: "button", class: "legend-row", "aria-pressed": String(only === i), title: "Show only these",
          onclick: () => ((this.only = only === i ? null : i), this.paint()) },
          swatch(kindColour(i, kinds.length), [h("span", { class: "legend-name" }, kind.name), h("span", { class: "number soft" }, count(kind.count))])));
      }
    else {
      const ramp = h("span", { class: "ramp", "aria-hidden": "true" });
      const at = (share) => css(by === "arrival" ? arrivalColour(share, 1) : degreeColour((1 + most) ** share - 1, most));
      ramp.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(at).join(", ")})`;
      const ends = by === "arrival" ? [`version ${this.found.line[0]}`, `version ${this.found.line[last]}`] : ["1", count(most)];
      rows.push(ramp, h("span", { class: "ends soft" }, h("span", {}, ends[0]), h("span", {}, ends[1])));
    }
    put(this.legend, ...rows);
  }

  /** Look names up that are not known yet. */
  async named(ids) {
    const asked = ids.filter((i) => i >= 0 && !this.entities.has(i) && !this.wanted.has(i)).slice(0, AT_A_TIME);
    if (!asked.length) return;
    asked.forEach((i) => this.wanted.add(i));
    try {
      for (const each of (await get("api/labels", { ids: asked.join(",") }, this.signal)).found) this.know(each);
      this.stage.ask();
    } catch {
      // A name that is missing is no reason to stop.
    } finally {
      asked.forEach((i) => this.wanted.delete(i));
    }
  }

  async settled(some) {
    await this.named(some);
    const known = some.slice(0, LISTED).map((i) => this.entities.get(i)).filter(Boolean);
    put(this.list, ...known.map((entity) => h("li", {}, h("a", { href: entityAddress(entity.label) }, entity.name))));
  }

  async chosen(i) {
    this.card.hidden = i < 0;
    if (i < 0) return;
    await this.named([i]);
    const entity = this.entities.get(i);
    if (!entity) return;
    const arrived = this.found.line[this.points[3 * i]];
    const facts = counted(entity.degree, this.found.what === "nodes" ? "neighbour" : "fact");
    put(this.card,
      h("p", { class: "map-card-name" }, entity.name),
      h("p", { class: "soft" }, `${entity.kind}; ${facts}${arrived ? `; arrived with version ${arrived}` : ""}`),
      h("p", {}, h("a", { href: entityAddress(entity.label) }, "Facts and predictions")));
    announce(`${entity.name}, ${entity.kind}, ${facts}`);
  }

  async seek(label) {
    try {
      const entity = await get("api/entity", { label }, this.signal);
      this.know(entity);
      if (!this.stage.points.has(entity.id)) return announce(`${entity.name} is not on this map`);
      this.stage.fly(entity.id);
      await this.chosen(entity.id);
    } catch (error) {
      if (error.name !== "AbortError") announce(error.message);
    }
  }

  run() {
    if (this.playing) return this.halt();
    const last = this.versions.length - 1;
    this.slider.value = Number(this.slider.value) >= last ? "0" : this.slider.value;
    this.changed.checked = true;
    this.show();
    this.play.textContent = "❚❚ Pause";
    this.playing = setInterval(() => {
      if (Number(this.slider.value) >= last) return this.halt();
      this.slider.value = String(Number(this.slider.value) + 1);
      this.show();
    }, 2200);
  }

  halt() {
    clearInterval(this.playing);
    this.playing = null;
    this.play.textContent = "▶ Play";
  }

  /** Say whether the map of a newer version is being made. */
  expect(found) {
    this.coming.hidden = found.state !== "making";
    this.coming.textContent = `The map of version ${found.version} is being made.`;
  }

  /** A newer version has a map: go there if the newest was shown. */
  async grow(found) {
    const newest = Number(this.slider.value) === this.versions.length - 1;
    const grown = found.version > this.found.version;
    this.found = found;
    this.slider.max = String(this.versions.length - 1);
    for (const each of found.landmarks) this.know(each);
    await this.colourings();
    if (newest) {
      this.slider.value = this.slider.max;
      if (grown) this.changed.checked = true;
    }
    await this.show();
  }
}
