"""How the nightly page looks: light and dark, on a desk and in a hand."""

STYLE = """
:root { color-scheme: light dark; --ink: #18202b; --soft: #5b6675; --line: #e1e6ed;
  --paper: #f6f8fa;
  --card: #fff; --good: #1a7f37; --good-back: #dff5e4; --bad: #b3261e; --bad-back: #fbe4e2;
  --mark: #2563eb; --other: #c2570c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b4; --line: #2b3440;
  --paper: #0f1318; --card: #171c23; --good: #56d079; --good-back: #12301c; --bad: #ff8a80;
  --bad-back: #3b1716; --mark: #79a8ff; --other: #f0a25c; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem;
  font-variant-numeric: tabular-nums; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem 1rem; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 1rem; margin: 0 0 .6rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); } .good { color: var(--good); }
.bad { color: var(--bad); } header p { flex-basis: 100%; margin: 0; overflow-wrap: anywhere; }
.verdict { border-radius: 1rem; padding: .15rem .8rem; font-weight: 600; overflow-wrap: anywhere; }
.verdict.good { background: var(--good-back); } .verdict.bad { background: var(--bad-back); }
section, .tile, figure { background: var(--card); border: 1px solid var(--line);
  border-radius: .7rem; }
section { padding: 1rem 1.1rem; margin-top: 1rem; overflow-x: auto; }
.tiles, .trends { display: grid; gap: .8rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
.trends { grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); margin-top: .8rem; }
.tile { padding: .7rem .9rem; } .tile b { display: block; font-size: 1.7rem; line-height: 1.3;
  letter-spacing: -.02em; } .tile small, figure small { color: var(--soft); }
.tile .good, .tile .bad { color: var(--good); } .tile .bad { color: var(--bad); }
.doubt { border-left: 4px solid var(--bad); }
table { border-collapse: collapse; width: 100%; max-width: 44rem; }
th, td { text-align: right; padding: .35rem 0 .35rem 1rem; border-top: 1px solid var(--line); }
thead th { border-top: 0; padding-top: 0; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { color: var(--soft); font-weight: 500; } .words td { text-align: left; }
.words th { text-align: left; }
figure { margin: 0; padding: .6rem .8rem; }
figcaption { display: flex; justify-content: space-between; gap: .5rem; font-size: .85rem; }
svg { width: 100%; display: block; } polyline { fill: none; stroke: var(--mark); stroke-width: 2;
  stroke-linejoin: round; stroke-linecap: round; vector-effect: non-scaling-stroke; }
figure svg { height: auto; } circle { fill: var(--mark); }
polyline.other { stroke: var(--other); stroke-width: 1.5; }
.chart { position: relative; margin: .4rem .5rem 0 2.4rem; } .chart svg { height: 13rem;
  overflow: visible; }
.grid { stroke: var(--line); vector-effect: non-scaling-stroke; }
line.mark { stroke: var(--soft); stroke-dasharray: 4 3; vector-effect: non-scaling-stroke; }
rect.refused { fill: var(--bad); opacity: .14; } rect.touch { fill: transparent; }
rect.touch:hover { fill: var(--ink); opacity: .07; }
.chart .y { position: absolute; right: 100%; transform: translateY(-50%); padding-right: .5rem;
  font-size: .75rem; color: var(--soft); }
.dot { position: absolute; width: 9px; height: 9px; margin: -4.5px; border-radius: 50%;
  background: var(--mark); } .chart .dot { left: 100%; } .dot.other { background: var(--other); }
.below { display: flex; justify-content: space-between; margin: .2rem .5rem 0 2.4rem;
  font-size: .75rem; color: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem;
  color: var(--soft); }
.legend i { display: inline-block; width: 1.1rem; height: 3px; border-radius: 2px;
  margin-right: .4rem;
  vertical-align: middle; background: var(--mark); } .legend .other i { background: var(--other); }
.legend .refused i { height: .8rem; background: var(--bad); opacity: .3; width: .5rem; }
.legend .mark i { height: .8rem; width: 0; border-left: 1px dashed var(--soft); background: none; }
.bars { display: flex; align-items: stretch; gap: 2px; height: 8.5rem; }
.bars div { flex: 1; min-width: 2px; display: flex; flex-direction: column;
  justify-content: flex-end; position: relative; padding-bottom: 1.3rem; }
.bars i { background: var(--mark); opacity: .8; border-radius: 3px 3px 0 0; min-height: 1px; }
.bars div:hover i { opacity: 1; }
.bars span { position: absolute; bottom: 0; left: 0; font-size: .75rem; color: var(--soft);
  white-space: nowrap; }
.interval { position: relative; height: 3rem; max-width: 34rem; margin: .4rem 0 .2rem; }
.interval .span { position: absolute; top: .8rem; height: 6px; border-radius: 3px;
  background: var(--mark); opacity: .35; } .interval .dot { top: calc(.8rem + 3px); }
.interval .zero, .interval .worth { position: absolute; top: .2rem; height: 1.6rem;
  border-left: 1px solid var(--soft); } .interval .worth { border-left-style: dashed; }
.interval span { position: absolute; top: 1.8rem; transform: translateX(-50%); font-size: .75rem;
  color: var(--soft); white-space: nowrap; }
details { margin-top: .6rem; } summary { cursor: pointer; color: var(--soft); }
@media (max-width: 34rem) { body { padding: 1.2rem .8rem 3rem; } section { padding: .8rem .9rem; }
  .tiles { grid-template-columns: 1fr 1fr; } .tile b { font-size: 1.4rem; }
  .chart svg { height: 10rem; } .trends { grid-template-columns: 1fr 1fr; }
  td { font-size: .9rem; } }
@media print { body { background: none; padding: 0; max-width: none; } section, .tile, figure {
  break-inside: avoid; } details > * { display: revert; } }
"""
