// Points by WebGL: one draw call, and positions that are mixed on the card.

const VERTEX = `
attribute vec2 from, to, size;
attribute vec4 colour;
uniform vec2 centre, scale;
uniform float share, grow;
varying vec4 shade;
varying float across;
void main() {
  gl_Position = vec4((mix(from, to, share) - centre) * scale, 0.0, 1.0);
  across = max(mix(size.x, size.y, share) * grow, 0.0);
  gl_PointSize = across + 1.0;
  shade = colour;
  if (across <= 0.0) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
}`;
const FRAGMENT = `
precision mediump float;
varying vec4 shade;
varying float across;
void main() {
  float away = length(gl_PointCoord - 0.5) * (across + 1.0);
  float there = shade.a * clamp(across * 0.5 + 0.5 - away, 0.0, 1.0);
  gl_FragColor = vec4(shade.rgb * there, there);
}`;
const PLACES = { from: [2, "FLOAT"], to: [2, "FLOAT"], size: [2, "FLOAT"], colour: [4, "UNSIGNED_BYTE"] };

/** A drawer of points on a canvas; null where there is no WebGL. */
export function byWebGL(canvas) {
  const gl = canvas.getContext("webgl", { antialias: false, premultipliedAlpha: true });
  if (!gl) return null;
  let program, places, uniforms, buffers;
  let held = {};
  let count = 0;

  function compiled(kind, text) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    return shader;
  }

  function begin() {
    program = gl.createProgram();
    gl.attachShader(program, compiled(gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, compiled(gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return false;
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    places = {}, buffers = {};
    for (const name of Object.keys(PLACES)) {
      places[name] = gl.getAttribLocation(program, name);
      buffers[name] = gl.createBuffer();
    }
    uniforms = Object.fromEntries(["centre", "scale", "share", "grow"].map((name) => [name, gl.getUniformLocation(program, name)]));
    for (const [name, values] of Object.entries(held)) upload(name, values);
    return true;
  }

  function upload(name, values) {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    const [width, kind] = PLACES[name];
    gl.enableVertexAttribArray(places[name]);
    gl.vertexAttribPointer(places[name], width, gl[kind], kind === "UNSIGNED_BYTE", 0, 0);
  }

  if (!begin()) return null;
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", begin);
  return {
    name: "WebGL",
    set(values) {
      held = { ...held, ...values };
      if (values.to) count = values.to.length / 2;
      for (const [name, each] of Object.entries(values)) upload(name, each);
    },
    draw({ x, y, scale, width, height, dpr, share }) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(uniforms.centre, x, y);
      gl.uniform2f(uniforms.scale, (2 * scale) / width, (-2 * scale) / height);
      gl.uniform1f(uniforms.share, share);
      gl.uniform1f(uniforms.grow, dpr);
      gl.drawArrays(gl.POINTS, 0, count);
    },
  };
}
