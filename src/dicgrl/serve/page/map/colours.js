// What colours the points: what they are, when they came, how many facts they have; or what changed.

export const KIND_COLOURS = ["#3a7fc1", "#dd8433", "#3c9a75", "#c2577b", "#8468c4", "#ad942b", "#3fa7b8"];
const REST = "#8f949a";
const OLD = [76, 104, 150], NEW = [238, 150, 60];
const FEW = [122, 150, 176], MANY = [196, 66, 86];
export const CAME = "#e0732c";
const STOOD = [143, 148, 154];

const parsed = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mixed = (a, b, share) => a.map((each, i) => Math.round(each + (b[i] - each) * share));
export const css = (rgb) => `rgb(${rgb.join(" ")})`;

/** The colour of a kind; the last kind is the rest. */
export const kindColour = (kind, count) => (kind >= count - 1 ? REST : KIND_COLOURS[kind % KIND_COLOURS.length]);

export const arrivalColour = (arrival, last) => mixed(OLD, NEW, last > 0 ? Math.min(1, arrival / last) : 0);
export const degreeColour = (degree, most) => mixed(FEW, MANY, Math.min(1, Math.log2(1 + degree) / Math.log2(1 + most)));

/**
 * A colour for each point.
 * @param {object} given by (kind, arrival or degree), points (arrival, kind, degree of each), kinds, last, most,
 *   only (a kind to show alone, or null), came (whether each arrived with this version; or null).
 */
export function colours({ by, points, kinds, last, most, only, came }) {
  const count = points.length / 3;
  const found = new Uint8Array(4 * count);
  const table = kinds.map((_, kind) => parsed(kindColour(kind, kinds.length)));
  const newcomer = parsed(CAME);
  for (let i = 0; i < count; i++) {
    const [arrival, kind, degree] = [points[3 * i], points[3 * i + 1], points[3 * i + 2]];
    let rgb = by === "arrival" ? arrivalColour(arrival, last) : by === "degree" ? degreeColour(degree, most) : table[kind] || table[table.length - 1];
    let strength = 205;
    if (came) {
      // What was there recedes to grey: nothing but change has a colour.
      [rgb, strength] = came[i] ? [newcomer, 255] : [STOOD, 90];
    }
    if (only !== null && kind !== only) strength = 18;
    found.set([...rgb, strength], 4 * i);
  }
  return found;
}
