// Points without WebGL: small squares on an ordinary canvas.

const MOST = 30000; // points that are drawn; the first ones, which were there longest

/** A drawer of points on a canvas; null where there is not even that. */
export function byCanvas(canvas) {
  const context = canvas.getContext("2d");
  if (!context) return null;
  const held = {};
  return {
    name: "canvas",
    set: (values) => Object.assign(held, values),
    draw({ x, y, scale, width, height, dpr, share }) {
      const { from, to, size, colour } = held;
      context.setTransform(dpr, 0, 0, dpr, 0, 0);
      context.clearRect(0, 0, width, height);
      for (let i = 0; i < Math.min(to.length / 2, MOST); i++) {
        const across = size[2 * i] + (size[2 * i + 1] - size[2 * i]) * share;
        if (across <= 0) continue;
        const px = (from[2 * i] + (to[2 * i] - from[2 * i]) * share - x) * scale + width / 2;
        const py = (from[2 * i + 1] + (to[2 * i + 1] - from[2 * i + 1]) * share - y) * scale + height / 2;
        if (px < -9 || py < -9 || px > width + 9 || py > height + 9) continue;
        const c = 4 * i;
        context.fillStyle = `rgba(${colour[c]},${colour[c + 1]},${colour[c + 2]},${colour[c + 3] / 255})`;
        context.fillRect(px - across / 2, py - across / 2, across, across);
      }
    },
  };
}
