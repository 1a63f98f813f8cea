// The stage of the map: where one looks, what one points at, names, and what moved.

import { byCanvas } from "./flat.js";
import { byWebGL } from "./gl.js";
import { Points } from "./points.js";

const MOVE = 900; // milliseconds of a change of versions
const REACH = 14; // pixels around the pointer
const NAMES = 44; // names that are looked up for what is in view
const TRAILS = 300;
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const eased = (t) => (t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2);

export class Stage {
  /** @param {object} given canvas, overlay, on: {point, choose, settle}, flat (without WebGL). */
  constructor({ canvas, overlay, on, flat = false }) {
    Object.assign(this, { canvas, overlay, on });
    this.drawer = (flat ? null : byWebGL(canvas)) || byCanvas(canvas);
    this.pen = overlay.getContext("2d");
    this.look = { x: 0, y: 0, scale: 1 };
    this.share = 1;
    this.names = new Map();
    this.trails = [];
    this.hovered = this.chosen = -1;
    this.pointers = new Map();
    this.stopped = false;
    this.frames = 0;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(overlay);
    this.recolour = () => this.ask(); // names are written in the colours of the page
    addEventListener("theme", this.recolour);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.recolour);
    this.listen();
  }

  get works() {
    return Boolean(this.drawer && this.pen);
  }

  stop() {
    this.stopped = true;
    this.watch.disconnect();
    removeEventListener("theme", this.recolour);
    matchMedia("(prefers-color-scheme: dark)").removeEventListener("change", this.recolour);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.overlay;
    const dpr = Math.min(devicePixelRatio || 1, 2);
    if (!width || !height) return;
    Object.assign(this, { width, height, dpr });
    for (const each of [this.canvas, this.overlay]) [each.width, each.height] = [Math.round(width * dpr), Math.round(height * dpr)];
    if (!this.points) return;
    if (!this.framed) this.home();
    this.draw(performance.now()); // in this frame: a canvas of another size is blank
  }

  /** Show positions; those that were shown before move there. */
  place(at, sizes, { trails = [] } = {}) {
    const before = this.points;
    const count = at.length / 2;
    const to = new Float32Array(at.length), from = new Float32Array(at.length), size = new Float32Array(at.length);
    this.points = new Points(at);
    for (let i = 0; i < count; i++) {
      const [now, was] = [this.points.has(i), Boolean(before && before.has(i))];
      for (const axis of [2 * i, 2 * i + 1]) {
        const there = now ? at[axis] : was ? before.at[axis] : 0;
        to[axis] = there;
        from[axis] = was ? before.at[axis] : there;
      }
      size[2 * i] = was ? sizes[i] : 0;
      size[2 * i + 1] = now ? sizes[i] : 0;
    }
    this.sizes = sizes;
    this.trails = trails.slice(0, TRAILS);
    this.drawer.set({ from, to, size });
    this.began = before && !still() ? performance.now() : -Infinity;
    if (!this.framed) this.home();
    this.ask();
    this.settleSoon();
  }

  paint(colour) {
    this.drawer.set({ colour });
    this.ask();
  }

  /** All of the map in view. */
  home() {
    if (!this.width || !this.points) return;
    const { left, top, right, bottom } = this.points.box;
    const scale = 0.92 * Math.min(this.width / (right - left || 1), this.height / (bottom - top || 1));
    this.look = { x: (left + right) / 2, y: (top + bottom) / 2, scale };
    this.least = scale / 3;
    this.framed = true;
    this.ask();
    this.settleSoon();
  }

  /** Go to a point. */
  fly(i) {
    if (!this.points.has(i)) return;
    this.chosen = i;
    const target = { x: this.points.at[2 * i], y: this.points.at[2 * i + 1], scale: Math.max(this.look.scale, this.least * 11) };
    this.flight = still() ? null : { from: { ...this.look }, to: target, began: performance.now() };
    if (!this.flight) this.look = target;
    this.ask();
    this.settleSoon();
  }

  choose(i) {
    this.chosen = i;
    this.on.choose(i);
    this.ask();
  }

  zoom(by, px = this.width / 2, py = this.height / 2) {
    const { x, y, scale } = this.look;
    const next = Math.min(this.least * 600, Math.max(this.least, scale * by));
    const [dx, dy] = [px - this.width / 2, py - this.height / 2];
    this.look = { x: x + dx / scale - dx / next, y: y + dy / scale - dy / next, scale: next };
    this.flight = null;
    this.ask();
    this.settleSoon();
  }

  pan(dx, dy) {
    this.look.x -= dx / this.look.scale;
    this.look.y -= dy / this.look.scale;
    this.flight = null;
    this.ask();
    this.settleSoon();
  }

  ask() {
    if (this.asked || this.stopped) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      if (!this.stopped && this.points && this.width) this.draw(now);
    });
  }

  draw(now) {
    this.frames++;
    this.share = Math.min(1, Math.max(0, (now - this.began) / MOVE));
    const share = eased(this.share);
    if (this.flight) {
      const { from, to, began } = this.flight;
      const t = eased(Math.min(1, (now - began) / 700));
      for (const name of ["x", "y"]) this.look[name] = from[name] + (to[name] - from[name]) * t;
      this.look.scale = from.scale * (to.scale / from.scale) ** t;
      if (t >= 1) {
        this.flight = null;
        this.settleSoon();
      }
    }
    this.drawer.draw({ ...this.look, width: this.width, height: this.height, dpr: this.dpr, share });
    this.write(share);
    if (this.share < 1 || this.flight) this.ask();
  }

  where(i) {
    const { x, y, scale } = this.look;
    return [(this.points.at[2 * i] - x) * scale + this.width / 2, (this.points.at[2 * i + 1] - y) * scale + this.height / 2];
  }

  write(share) {
    const { pen } = this;
    pen.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const style = getComputedStyle(this.overlay);
    const [ink, paper, accent] = ["--ink", "--paper", "--accent"].map((name) => style.getPropertyValue(name).trim());
    this.drawTrails(share, ink);
    for (const i of new Set([this.chosen, this.hovered])) if (i >= 0 && this.points.has(i)) this.ring(i, accent);
    if (share < 1) return;
    pen.font = `12px ${style.fontFamily}`;
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    const taken = [];
    for (const i of [this.chosen, this.hovered, ...(this.inView || [])]) {
      const name = this.names.get(i);
      if (name === undefined || !this.points.has(i)) continue;
      const strong = i === this.chosen || i === this.hovered;
      const short = name.length > 34 ? `${name.slice(0, 32)}…` : name;
      const [px, py] = this.where(i);
      const wide = pen.measureText(short).width;
      const left = px + 8 + wide > this.width ? px - 8 - wide : px + 8;
      const box = [left - 3, py - 9, left + wide + 3, py + 9];
      if (taken.some((other) => other[0] < box[2] && box[0] < other[2] && other[1] < box[3] && box[1] < other[3])) continue;
      taken.push(box);
      pen.globalAlpha = strong ? 1 : 0.92;
      pen.lineWidth = 3.5;
      pen.strokeStyle = paper;
      pen.strokeText(short, left, py);
      pen.fillStyle = ink;
      pen.fillText(short, left, py);
    }
    pen.globalAlpha = 1;
  }

  drawTrails(share, ink) {
    const { pen } = this;
    const { x, y, scale } = this.look;
    pen.strokeStyle = ink;
    pen.lineWidth = 1;
    for (const [x0, y0, x1, y1, strength] of this.trails) {
      pen.globalAlpha = 0.15 + 0.5 * strength;
      pen.beginPath();
      pen.moveTo((x0 - x) * scale + this.width / 2, (y0 - y) * scale + this.height / 2);
      pen.lineTo((x0 + (x1 - x0) * share - x) * scale + this.width / 2, (y0 + (y1 - y0) * share - y) * scale + this.height / 2);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  ring(i, colour) {
    const [px, py] = this.where(i);
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = 2;
    this.pen.beginPath();
    this.pen.arc(px, py, this.sizes[i] / 2 + 3.5, 0, 2 * Math.PI);
    this.pen.stroke();
  }

  settleSoon() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      if (this.stopped || !this.points || !this.width) return;
      this.inView = this.visible(NAMES);
      this.on.settle(this.inView);
      this.ask();
    }, 160);
  }

  /** Points in view, the largest first. */
  visible(most) {
    const { x, y, scale } = this.look;
    const [w, h] = [this.width / 2 / scale, this.height / 2 / scale];
    const found = [...this.points.inside(x - w, y - h, x + w, y + h)];
    return found.sort((a, b) => this.sizes[b] - this.sizes[a] || a - b).slice(0, most);
  }

  at(event) {
    const box = this.overlay.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  under(px, py) {
    const { x, y, scale } = this.look;
    return this.points ? this.points.nearest(x + (px - this.width / 2) / scale, y + (py - this.height / 2) / scale, REACH / scale) : -1;
  }

  listen() {
    const { overlay, pointers } = this;
    const apart = () => {
      const [a, b] = [...pointers.values()];
      return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2, far: Math.hypot(a[0] - b[0], a[1] - b[1]) || 1 };
    };
    overlay.addEventListener("pointerdown", (event) => {
      overlay.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, this.at(event));
      this.dragged = pointers.size > 1;
    });
    overlay.addEventListener("pointermove", (event) => {
      const here = this.at(event);
      const before = pointers.get(event.pointerId);
      if (!before) return this.hover(this.under(...here));
      if (pointers.size === 1) {
        if (!this.dragged && Math.hypot(here[0] - before[0], here[1] - before[1]) < 4) return;
        this.dragged = true;
        pointers.set(event.pointerId, here);
        return this.pan(here[0] - before[0], here[1] - before[1]);
      }
      const was = apart();
      pointers.set(event.pointerId, here);
      const is = apart();
      this.pan(is.x - was.x, is.y - was.y);
      this.zoom(is.far / was.far, is.x, is.y);
    });
    overlay.addEventListener("pointerup", (event) => {
      if (pointers.delete(event.pointerId) && !this.dragged) this.choose(this.under(...this.at(event)));
    });
    overlay.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    overlay.addEventListener("pointerleave", () => this.hover(-1));
    overlay.addEventListener("dblclick", (event) => this.zoom(2, ...this.at(event)));
    overlay.addEventListener("wheel", (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      this.zoom(Math.exp(-event.deltaY * lines * 0.0016), ...this.at(event));
    }, { passive: false });
    overlay.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.points) return;
    const step = 60;
    const keys = {
      ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0),
      ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
      "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.home(),
      Enter: () => this.choose(this.points.nearest(this.look.x, this.look.y, this.width / this.look.scale)),
      Escape: () => this.choose(-1),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    this.overlay.classList.toggle("points", i >= 0);
    this.on.point(i);
    this.ask();
  }
}
