// The application: addresses, the version that is asked, light and dark.

import { get } from "./api.js";
import { announce, counted, failed, h, put, waiting } from "./dom.js";
import { change } from "./views/change.js";
import { entity } from "./views/entity.js";
import { find } from "./views/find.js";
import { map } from "./views/map.js";
import { run } from "./views/run.js";

const LOOK = 2000; // milliseconds between two looks for a new version
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const VIEWS = { "": ["find", find], entity: ["find", entity], map: ["map", map], run: ["run", run], change: ["change", change] };

/** What views share: what the run is, and who wants to know of a new version. */
const state = { run: null, version: 0, health: {}, onVersion: null };
let leave = null; // what the view that is shown has to stop
let turn = 0;

function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  let label = rest.join("/");
  try {
    label = decodeURIComponent(label);
  } catch {
    // A label with a lone percent sign, typed by hand.
  }
  return { name, label, query: new URLSearchParams(query) };
}

async function show({ first = false } = {}) {
  const mine = ++turn;
  if (leave) leave();
  leave = null;
  state.onVersion = null;
  const { name, label, query } = address();
  const [tab, view] = VIEWS[name] || [null, nowhere];
  for (const link of document.querySelectorAll("[data-view]"))
    if (link.dataset.view === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  main.className = `view-${name || "find"}`;
  const place = h("div", { class: "view" });
  put(main, place);
  try {
    if (!state.run) {
      place.append(waiting("Loading the run"));
      await learnOfRun();
      put(place);
    }
    if (mine !== turn) return;
    const stop = await view(place, { state, label, query });
    if (mine !== turn) return stop && stop();
    leave = stop || null;
  } catch (error) {
    if (mine !== turn || error.name === "AbortError") return;
    put(place, failed(error, () => show()));
  }
  const heading = place.querySelector("h1");
  document.title = `${heading ? heading.textContent : "Not found"} · dicgrl`;
  if (!first && heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function nowhere(place) {
  place.append(
    h("h1", {}, "Nothing at this address"),
    h("p", { class: "lead" }, "The link may be outdated or mistyped."),
    h("p", {}, h("a", { class: "button", href: "#/" }, "Find something")),
  );
}

async function learnOfRun() {
  state.run = await get("api/run");
  state.version = state.run.version;
  tellVersion();
  const { dataset, model, strategy, counts, what } = state.run;
  const facts = what === "nodes" ? "edge" : "fact";
  document.getElementById("about").textContent =
    `${dataset || "a run"}: ${model}, ${strategy}; ${counted(counts[what], what === "nodes" ? "node" : "entity", what)}, ${counted(counts.facts, facts)}`;
}

function tellVersion() {
  const pending = state.health.pending || 0;
  const pill = document.getElementById("version");
  pill.textContent = `version ${state.version}`;
  if (pending) pill.append(h("span", { class: "waits" }, `+${pending}`));
  pill.title = pending ? `Answers come from version ${state.version}; ${counted(pending, "change")} not learned yet` : "The version that answers come from";
}

function say(text) {
  if (banner.textContent === text) return;
  banner.textContent = text;
  banner.hidden = !text;
}

async function look() {
  try {
    const health = await get("api/pulse");
    say("");
    const before = state.health;
    state.health = health;
    const newer = state.version && health.version !== state.version;
    const waits = (health.pending || 0) !== (before.pending || 0);
    if (newer) {
      const from = state.version;
      await learnOfRun();
      announce(`Version ${state.version} has arrived`);
      if (state.onVersion) state.onVersion(from);
    } else if (waits) {
      tellVersion();
      if (state.onVersion && before.version) state.onVersion(state.version);
    }
  } catch (error) {
    say(error.status === 0 ? "The server does not answer; trying again." : error.message);
  }
  setTimeout(look, document.hidden ? 5 * LOOK : LOOK);
}

const THEMES = ["auto", "light", "dark"];
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

function theme(chosen) {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  const button = document.getElementById("theme");
  button.textContent = SIGNS[chosen];
  button.title = chosen === "auto" ? "Colours: as on your system" : `Colours: ${chosen}`;
  button.setAttribute("aria-label", `Colours: ${chosen}`);
  window.dispatchEvent(new Event("theme"));
}

function kept(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null; // storage is switched off
  }
}

let chosen = THEMES.includes(kept("theme")) ? kept("theme") : "auto";
theme(chosen);
document.getElementById("theme").addEventListener("click", () => {
  chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
  kept("theme", chosen);
  theme(chosen);
  announce(`Colours: ${chosen}`);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address belongs to the views
  main.focus();
});
addEventListener("hashchange", () => show());
addEventListener("keydown", (event) => {
  const writes = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key !== "/" || writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = main.querySelector("[role=combobox]");
  if (!field) return;
  event.preventDefault();
  field.focus();
});
show({ first: true }).then(look);
