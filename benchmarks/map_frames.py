"""Frames a second of the page's map: many points are panned and zoomed in a real browser.

    python -m benchmarks.map_frames [--points 100000] [--flat] [--gpu] [--json FILE]

Prints how the points were drawn, frames a second over five seconds, and how long the page's own
work for a frame takes, without what rasterises: half of the frames, and 99 of 100. Without `--gpu`
the browser draws on the processor, which is what a machine without a graphics card does. Needs
Chromium with its driver, and selenium.
"""

from __future__ import annotations

import argparse
import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.serve.browser import browser

import dicgrl

PAGE = Path(dicgrl.__file__).parent / "serve" / "page"
SCRIPT = """
const [count, flat, done] = arguments;
const { Stage } = await import("/map/stage.js");
document.body.innerHTML = '<div class="map-stage" id="s"><canvas></canvas><canvas class="overlay">';
const stageBox = document.getElementById("s");
stageBox.style.height = "720px";
const [canvas, overlay] = stageBox.children;
const quiet = { point() {}, choose() {}, settle() {} };
const stage = new Stage({ canvas, overlay, flat, on: quiet });
const at = new Float32Array(2 * count);
for (let i = 0; i < count; i++) {
  const angle = Math.random() * 7, far = 40 * Math.sqrt(Math.random());
  at[2 * i] = far * Math.cos(angle), at[2 * i + 1] = far * Math.sin(angle);
}
stage.resize();
stage.place(at, new Float32Array(count).fill(4));
stage.paint(new Uint8Array(4 * count).fill(160));
stage.home();
for (let i = 0; i < 40; i++) stage.names.set(i, `point ${i}`);
await new Promise((ready) => setTimeout(ready, 500));
const work = [];
const draw = stage.draw.bind(stage);
stage.draw = (now) => {
  const began = performance.now();
  draw(now);
  work.push(performance.now() - began);
};
const first = stage.frames, began = performance.now();
const turn = () => {
  const passed = performance.now() - began;
  if (passed > 5000) {
    const frames = stage.frames - first;
    work.sort((a, b) => a - b);
    const [half, most] = [0.5, 0.99].map((share) => work[Math.floor(share * work.length)]);
    done([stage.drawer.name, (1000 * frames) / passed, half, most]);
    return;
  }
  stage.pan(Math.sin(passed / 300) * 6, Math.cos(passed / 400) * 6);
  stage.zoom(1 + 0.01 * Math.sin(passed / 500));
  requestAnimationFrame(turn);
};
turn();
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Frames a second of the map.")
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--flat", action="store_true", help="without WebGL")
    parser.add_argument("--gpu", action="store_true", help="let the browser use a graphics card")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(PAGE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with browser((1240, 800), gpu=given.gpu) as driver:
        driver.set_script_timeout(60)
        driver.get(f"http://127.0.0.1:{server.server_port}/icon.svg")
        driver.get(f"http://127.0.0.1:{server.server_port}/map/")
        run = f"(async () => {{ {SCRIPT.replace('arguments', 'given')} }})()"
        drawer, frames, work, slow = driver.execute_async_script(
            "const given = [...arguments]; "
            f"{run}.catch((e) => given.at(-1)([String(e), 0, 0, 0]));",
            given.points,
            given.flat,
        )
    server.shutdown()
    card = "a graphics card" if given.gpu else "the processor"
    print(
        f"{given.points:,} points by {drawer} on {card}: {frames:.0f} frames a second; the page's "
        f"own work takes {work:.2f} ms for half of them, {slow:.2f} ms for 99 of 100 at most"
    )
    if given.json:
        rows = json.loads(given.json.read_text(encoding="utf-8")) if given.json.exists() else {}
        row = {"drawer": drawer, "on": card, "frames": frames, "work": work, "slow": slow}
        rows[f"{given.points} points, {drawer}, {card}"] = row
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
