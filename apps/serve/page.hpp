// The page at /: gets the figures as events, and draws what the runtime does.
#pragma once
// Rates are computed from the server's own times and counts, never from the times at which answers
// reach the browser: a late answer changes no rate. A time without answers is drawn as a gap. To
// add a plot, add a line to `plots`; to add a figure, a line to `figures`.

namespace serve {

inline constexpr char live_page[] = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>coppice</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --back: #f4f6f3; --card: #fff; --ink: #17211b; --soft: #5d6b62;
  --line: #dde3dd; --a: #1f7a4d; --b: #c2620c; --c: #3563b8; --bad: #b3261e; --fill: #1f7a4d1c; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0f1412; --card: #171e1a; --ink: #e4ebe6; --soft: #93a399; --line: #2a352f;
    --a: #5ccb91; --b: #f0a04b; --c: #85aef5; --bad: #ff8a80; --fill: #5ccb9124; } }
* { box-sizing: border-box; }
html { background: var(--back); }
body { font: 13px/1.4 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; margin: 0;
  background: var(--back); color: var(--ink); padding: 14px 18px; height: 100vh; min-height: 760px;
  display: grid; grid-template: auto auto 4.7fr 3.6fr 5fr / minmax(0, 1fr);
  gap: 10px;
  font-variant-numeric: tabular-nums; }
header { display: flex; align-items: baseline; gap: 12px; color: var(--soft); }
h1 { font-size: 19px; margin: 0; color: var(--ink); letter-spacing: -.01em; }
header .note { margin-left: auto; }
#state { padding: 1px 9px; border-radius: 9px; background: var(--fill); color: var(--a);
  font-weight: 600; }
#state.bad { color: var(--bad); background: none; outline: 1px solid; }
.row { display: grid; gap: 10px; min-height: 0; }
#figures { grid-template-columns: repeat(8, minmax(0, 1fr)); }
#top { grid-template-columns: minmax(0, 2fr) minmax(0, 1fr); }
#middle { grid-template-columns: repeat(4, minmax(0, 1fr)); }
#bottom { grid-template-columns: repeat(4, minmax(0, 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 9px 12px; min-width: 0; min-height: 0; display: flex; flex-direction: column; }
.card h2 { font-size: 13px; font-weight: 600; margin: 0 0 4px; display: flex; flex-wrap: wrap;
  gap: 0 10px; align-items: baseline; }
.card h2 small { font-weight: 400; font-size: 12px; color: var(--soft); }
.card h2 .key { margin-left: auto; }
.key i { display: inline-block; width: 9px; height: 3px; border-radius: 2px;
  margin: 0 4px 3px 9px; }
.figure { gap: 1px; color: var(--soft); font-size: 12px; }
.figure b { font-size: 22px; line-height: 1.2; font-weight: 600; color: var(--ink);
  letter-spacing: -.02em; white-space: nowrap; }
.figure.warn b { color: var(--bad); }
svg { flex: 1; min-height: 0; width: 100%; display: block; overflow: hidden; }
svg text { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); stroke-opacity: .6; }
.gap { fill: url(#hatch); }
.scroll { overflow: auto; min-height: 0; scrollbar-width: thin; }
table { border-collapse: collapse; width: 100%; font-size: 12px; }
th { font-weight: 400; color: var(--soft); position: sticky; top: 0; background: var(--card); }
td, th { text-align: right; padding: 1px 0 1px 8px; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
td:first-child, th:first-child { text-align: left; padding-left: 0; }
tr:last-child td { border-bottom: 0; }
tr.bad td { color: var(--bad); }
@media (max-width: 900px) {
  body { height: auto; grid-template-rows: none; }
  #figures { grid-template-columns: repeat(2, 1fr); }
  #top, #middle, #bottom { grid-template-columns: minmax(0, 1fr); }
  .card svg { height: 170px; flex: none; } }
</style>
</head>
<body>
<header><h1>coppice</h1><span id="state">connecting</span><span id="about"></span>
<span class="note">The last minute; this page's own requests are left out.</span></header>
<div class="row" id="figures"></div>
<div class="row" id="top"></div>
<div class="row" id="middle"></div>
<div class="row" id="bottom"></div>
<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="2" height="6" fill="var(--line)"/></pattern>
</defs></svg>
<script>
'use strict';
)page"
                                    R"page(
const version = 1;      // of the figures that this page understands
const patience = 5000;  // ms without an event: beyond, the page connects again
const shown = 60;       // s on a plot's axis
const gap_least = 2.5;  // s between two looks: beyond, nothing is known of the time between
const latency_time = 5; // s that percentiles and their plot are made of
const id = name => document.getElementById(name);

// ---- Numbers as people read them
const round = v => v >= 99.5 ? Math.round(v).toLocaleString('en') : v >= 9.95 ? v.toFixed(0)
  : v >= .995 || v === 0 ? String(+v.toFixed(1)) : String(+v.toPrecision(2));
const scaled = (v, step, units) => {
  let i = 0;
  while (v >= step && i < units.length - 1) { v /= step; ++i; }
  return round(v) + units[i];
};
const count = v => v < 1e5 ? round(v) : scaled(v / 1e3, 1000, ['k', 'M', 'G']);
const axis_count = v => scaled(v, 1000, ['', 'k', 'M', 'G']);
const whole = v => Math.round(v).toLocaleString('en');
const bytes = v => scaled(v, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB']);
const time = s => !isFinite(s) ? '-' : s < 1e-3 ? round(s * 1e6) + ' \u00b5s'
  : s < 1 ? round(s * 1e3) + ' ms' : round(s) + ' s';
const percent = v => round(v) + ' %';

// ---- From the server's figures to points: all by its own clock
let samples = [];  // what was got, the oldest first
let points = [];   // what lies between two of them
const sum = list => list.reduce((a, b) => a + b, 0);
const own_of_loop = l => l.own + l.own_events;
const own = s => sum(s.loops.map(own_of_loop));
const own_events = s => sum(s.loops.map(l => l.own_events));
const errors = s => sum(Object.entries(s.status).filter(([c]) => c >= 500).map(([, n]) => n));
// The difference of a histogram, each bucket for itself, without the page's own requests. Events
// that have ended lasted the longest. Each other one is taken from the nearest bucket that is not
// empty, first upwards from its time.
const latency_between = (from, to) => {
  const upto = to.latency.up_to.map((n, i) => n - from.latency.up_to[i]);
  const counts = upto.map((n, i) => n - (i ? upto[i - 1] : 0));
  counts.push(to.latency.all - from.latency.all - upto[upto.length - 1]);
  const bounds = to.latency.bounds_ns.map(b => b / 1e9);
  const first = Math.max(0, bounds.findIndex(b => b * 1e9 >= to.look_ns));
  const all = counts.map((_, i) => i);
  const remove = (mine, order) => {
    for (const i of order) {
      const less = Math.min(mine, counts[i]);
      counts[i] -= less;
      mine -= less;
    }
  };
  const events = own_events(to) - own_events(from);
  remove(events, [...all].reverse());
  remove(own(to) - own(from) - events, all.slice(first).concat(all.slice(0, first).reverse()));
  return { bounds, counts, all: sum(counts) };
};
const quantile = (h, q) => {
  let before = 0;
  for (let i = 0; i < h.counts.length; ++i) {
    if (h.counts[i] && before + h.counts[i] >= q * h.all) {
      if (i >= h.bounds.length) return h.bounds[h.bounds.length - 1];
      const low = i ? h.bounds[i - 1] : 0;
      return low + (h.bounds[i] - low) * (q * h.all - before) / h.counts[i];
    }
    before += h.counts[i];
  }
  return NaN;
};
const between = (from, to) => {
  const seconds = (to.now_ns - from.now_ns) / 1e9;
  const rate = of => Math.max(0, of(to) - of(from)) / seconds;
  return { t: to.now_ns / 1e9, seconds, gap: seconds > gap_least,
    requests: rate(s => s.requests - own(s)), errors: rate(errors),
    cpu: 100 * rate(s => s.cpu_ns / 1e9), received: rate(s => s.received), sent: rate(s => s.sent),
    accepted: rate(s => s.accepted), connections: to.connections, memory: to.memory_bytes,
    loops: Math.max(...to.loops.map(l => l.delay_ns)) / 1e9,
    pool: to.pool_delay_ns === undefined ? NaN : to.pool_delay_ns / 1e9 };
};
)page"
                                    R"page(
// ---- What is shown: a line for each figure, plot and table
const figures = [
  ['rate', 'requests / s', p => count(p.requests)],
  ['p50', 'median latency', (p, s, h) => time(quantile(h, .5))],
  ['p99', '99th percentile', (p, s, h) => time(quantile(h, .99))],
  ['cpu', (p, s) => 'CPU, of ' + s.processors * 100 + ' %', p => percent(p.cpu)],
  ['memory', 'memory, resident', p => bytes(p.memory)],
  ['open', 'connections', p => whole(p.connections)],
  ['total', 'requests in all', (p, s) => s.requests - own(s) < 1e8 ? whole(s.requests - own(s))
    : count(s.requests - own(s))],
  ['errors', 'server errors / s', p => count(p.errors), p => p.errors > 0],
];
const plots = [
  { id: 'rates', row: 'top', title: 'Requests', unit: 'per second', format: axis_count, least: 10,
    fill: true, lines: [['answered', 'a', p => p.requests]] },
  { id: 'latency', row: 'top', title: 'Latency', bars: true },
  { id: 'processors', row: 'middle', title: 'Processor', unit: '% of one', format: round,
    least: 10, lines: [['', 'a', p => p.cpu]], fill: true },
  { id: 'delays', row: 'middle', title: 'Delay', unit: 'of posted work',
    format: time, least: 1e-4, lines: [['loops', 'a', p => p.loops], ['pool', 'b', p => p.pool]] },
  { id: 'connections', row: 'middle', title: 'Connections', unit: 'open', format: axis_count,
    least: 5, fill: true, lines: [['', 'a', p => p.connections]] },
  { id: 'network', row: 'middle', title: 'Network', unit: 'bytes per second', format: bytes,
    least: 1024, base: 1024, lines: [['in', 'c', p => p.received], ['out', 'a', p => p.sent]] },
];
const rate_of = (from, to, of) => count(Math.max(0, of(to) - of(from)) * 1e9 /
  (to.now_ns - from.now_ns));
const tables = [
  { id: 'routes', title: 'Routes', head: ['route', 'requests/s', 'requests'], rows: (a, b) => {
    const known = s => sum(s.routes.map(r => r.asked)), rest = s => s.requests - own(s) - known(s);
    return b.routes.map((r, i) => [r.name, rate_of(a, b, s => s.routes[i].asked), whole(r.asked)])
      .concat([['other, not found', rate_of(a, b, rest), whole(Math.max(0, rest(b)))]]); } },
  { id: 'answers', title: 'Answers', head: ['status', 'answers/s', 'answers'], rows: (a, b) =>
    Object.keys(b.status).map(c => {
      const of = s => (s.status[c] || 0) - (c === '200' ? own(s) : 0);
      return [c, rate_of(a, b, of), whole(of(b))]; })
      .concat([['timed out', s => s.timed_out], ['refused', s => s.refused],
        ['shed', s => s.shed], ['exceptions', s => s.exceptions],
        // A page that leaves stops its events.
        ['handlers stopped', s => Math.max(0, s.stopped - own_events(s))]]
        .map(([n, of]) => [n, rate_of(a, b, of), whole(of(b))])),
    bad: r => (r[0] >= '5' && r[0] < '6' || r[0] === 'exceptions') && r[1] !== '0' },
  { id: 'loops', title: 'Event loops', head: ['loop', 'requests/s', 'connections', 'delay'],
    rows: (a, b) => b.loops.map((l, i) => [i, rate_of(a, b, s => s.loops[i].requests -
      own_of_loop(s.loops[i])), whole(l.connections), time(l.delay_ns / 1e9)]) },
  { id: 'workers', title: 'Pool workers', head: ['worker', 'runs', 'steals', 'lost', 'parks'],
    rows: (a, b) => b.workers.map((w, i) => [i, whole(w.runs), whole(w.steals), whole(w.lost),
      whole(w.parks)]), none: 'This server has no pool.' },
];

// ---- Drawing
const nice = (v, base = 1000) => {  // the least 1, 2 or 5 times a power that is not below v
  const unit = base === 1024 ? Math.pow(1024, Math.max(0, Math.floor(Math.log2(v) / 10))) : 1;
  const power = Math.pow(10, Math.floor(Math.log10(v / unit)));
  return unit * power * [1, 2, 5, 10].find(m => m * power >= v / unit * (1 - 1e-9));
};
const frame = svg => {
  const box = svg.getBoundingClientRect();
  return { w: box.width, h: box.height, left: 52, right: box.width - 10, top: 8,
    bottom: box.height - 20 };
};
const tick = (x, y, text, anchor) =>
  `<text class="tick" x="${x}" y="${y}" text-anchor="${anchor}">${text}</text>`;
const draw_lines = (plot, svg) => {
  const f = frame(svg), end = points.length ? points[points.length - 1].t : 0;
  const seen = points.filter(p => p.t >= end - shown);
  const most = Math.max(plot.least, ...seen.flatMap(p => plot.lines.map(l => l[2](p)))
    .filter(isFinite));
  const step = nice(most / 3, plot.base), top = step * Math.ceil(most / step - 1e-9);
  const x = t => f.right - (end - t) / shown * (f.right - f.left);
  const y = v => f.bottom - v / top * (f.bottom - f.top);
  let out = '';
  for (let v = 0; v <= top * 1.001; v += step) {
    out += `<path class="${v ? 'grid' : 'axis'}" d="M${f.left} ${y(v)}H${f.right}"/>` +
      tick(f.left - 6, y(v) + 4, plot.format(v), 'end');
  }
  const many = f.right - f.left > 400 ? 10 : 20;
  for (let s = 0; s <= shown; s += many) {
    out += tick(x(end - s), f.h - 5, s ? '\u2212' + s + ' s' : 'now', s ? 'middle' : 'end');
  }
  for (const p of seen) {
    if (!p.gap) continue;
    const from = Math.max(f.left, x(p.t - p.seconds));
    out += `<rect class="gap" x="${from}" y="${f.top}" width="${Math.max(0, x(p.t) - from)}"
      height="${f.bottom - f.top}"><title>no answer for ${time(p.seconds)}</title></rect>`;
  }
  for (const [, color, of] of plot.lines) {
    let parts = [[]];
    for (const p of seen) {
      if (p.gap) { parts.push([]); continue; }
      if (isFinite(of(p))) parts[parts.length - 1].push([x(p.t), y(of(p))]);
    }
    for (const part of parts.filter(part => part.length)) {
      const d = part.map(([a, b]) => a.toFixed(1) + ' ' + b.toFixed(1)).join('L');
      if (plot.fill) out += `<path fill="var(--fill)" d="M${part[0][0]} ${f.bottom}L${d}
        L${part[part.length - 1][0]} ${f.bottom}Z"/>`;
      out += `<path class="line" fill="none" stroke="var(--${color})" stroke-width="1.75"
        stroke-linejoin="round" d="M${d}"/>`;
    }
  }
  svg.innerHTML = out;
};
const draw_bars = (svg, h) => {
  const f = frame(svg), n = h.bounds.length;
  const shares = h.counts.map(c => h.all ? c / h.all * 100 : 0);
  const step = nice(Math.max(1, ...shares) / 2);
  const top = step * Math.ceil(Math.max(1, ...shares) / step - 1e-9);
  f.left = 40;
  const wide = (f.right - f.left) / h.counts.length, at = i => f.left + i * wide;
  let out = '';
  for (let share = 0; share <= 1.001; share += step / top) {
    const y = f.bottom - share * (f.bottom - f.top);
    out += `<path class="${share ? 'grid' : 'axis'}" d="M${f.left} ${y}H${f.right}"/>` +
      tick(f.left - 6, y + 4, percent(share * top), 'end');
  }
  out += h.counts.map((c, i) => {
    const high = shares[i] / top * (f.bottom - f.top);
    return `<rect class="bar" fill="var(--a)" rx="1" x="${at(i)}" y="${f.bottom - high}"
      width="${wide - 1}" height="${high}"><title>${c} up to ${
      i < n ? time(h.bounds[i]) : 'any time'}</title></rect>`;
  }).join('');
  const place = s => at(Math.log2(s / h.bounds[0]) * 2 + 1);
  for (const s of [1e-5, 1e-4, 1e-3, 1e-2, .1, 1, 10]) {
    out += tick(place(s), f.h - 5, time(s), 'middle');
  }
  for (const [name, q] of [['p50', .5], ['p99', .99]]) {
    const v = quantile(h, q);
    if (!isFinite(v)) continue;
    const x = Math.max(f.left, place(v));
    out += `<path stroke="var(--b)" stroke-dasharray="3 3" d="M${x} ${f.top}V${f.bottom}"/>` +
      tick(x + (q < .9 ? -4 : 4), f.top + 9, name, q < .9 ? 'end' : 'start');
  }
  svg.innerHTML = out;
};
)page"
                                    R"page(
const build = () => {
  id('figures').innerHTML = figures.map(([name]) => `<div class="card figure" id="card-${name}">
    <span></span><b id="${name}">-</b></div>`).join('');
  for (const p of plots) {
    const key = (p.lines || []).filter(l => l[0] && p.lines.length > 1)
      .map(l => `<i style="background:var(--${l[1]})"></i>${l[0]}`).join('');
    id(p.row).insertAdjacentHTML('beforeend', `<section class="card"><h2>${p.title}
      <small id="unit-${p.id}">${p.unit || ''}</small><small class="key">${key}</small></h2>
      <svg id="${p.id}" role="img" aria-label="${p.title}, ${p.unit || 'share of requests'}"></svg>
      </section>`);
  }
  for (const t of tables) {
    id('bottom').insertAdjacentHTML('beforeend', `<section class="card"><h2>${t.title}</h2>
      <div class="scroll"><table><thead><tr>${t.head.map(h => `<th>${h}</th>`).join('')}</tr>
      </thead><tbody id="${t.id}"></tbody></table></div></section>`);
  }
};
const draw = () => {
  if (!points.length) return;
  const p = points[points.length - 1], b = samples[samples.length - 1];
  // Percentiles and tables look at a few seconds: over half a second, they would flicker.
  const since = samples.findLast(s => b.now_ns - s.now_ns >= latency_time * 1e9) || samples[0];
  const h = latency_between(since, b), span = time((b.now_ns - since.now_ns) / 1e9);
  for (const [name, label, of, warns] of figures) {
    id(name).textContent = of(p, b, h);
    id(name).previousElementSibling.textContent = label.call ? label(p, b) : label;
    id('card-' + name).classList.toggle('warn', !!warns && warns(p));
  }
  for (const plot of plots) plot.bars ? draw_bars(id(plot.id), h) : draw_lines(plot, id(plot.id));
  id('unit-latency').textContent = 'share of requests, by time to answer; last ' + span;
  const a = samples[samples.length - 2];
  for (const t of tables) {
    const rows = t.rows(a, b);
    id(t.id).innerHTML = rows.map(r => `<tr${t.bad && t.bad(r) ? ' class="bad"' : ''}>` +
      r.map(c => `<td>${c}</td>`).join('') + '</tr>').join('');
    if (!rows.length && t.none) id(t.id).innerHTML = `<tr><td>${t.none}</td></tr>`;
  }
  id('about').textContent = `${b.program} \u00b7 ${b.model} on ${b.ring} \u00b7 ${
    b.loops.length} loop${b.loops.length > 1 ? 's' : ''}, ${b.workers.length} workers`;
};
// Takes what an event tells. If it is older than the last, another server has sent it, and all
// begins again.
const take = s => {
  const last = samples[samples.length - 1];
  if (last && (s.now_ns <= last.now_ns || s.requests < last.requests ||
      s.loops.length !== last.loops.length || s.routes.length !== last.routes.length)) {
    samples = [];
    points = [];
  }
  if (samples.length) points.push(between(samples[samples.length - 1], s));
  samples.push(s);
  const old = s.now_ns / 1e9 - shown - 2;
  while (points.length > 1 && points[0].t < old) points.shift();
  while (samples.length > 2 && samples[1].now_ns / 1e9 < old) samples.shift();
  draw();
};
const state = (text, bad) => {
  id('state').textContent = text;
  id('state').classList.toggle('bad', bad);
};
// For tests, and the curious.
const live = { paused: false, take, get points() { return points; } };
const lost = () => state('not answering', true);
let events, silence;
// The browser connects again by itself after a connection that failed or ended, but not after an
// answer that refuses, nor while it waits for a server that is silent.
const listen = () => {
  if (events) events.close();
  events = new EventSource('/live/events');
  events.onmessage = e => {
    expect();
    if (live.paused) return;
    const s = JSON.parse(e.data), same = s.version === version;
    if (same) take(s);
    state(same ? 'live' : 'the server is of another version: reload', !same);
  };
  events.onerror = lost;
  expect();
};
const expect = () => {
  clearTimeout(silence);
  silence = setTimeout(() => { lost(); listen(); }, patience);
};
build();
addEventListener('resize', draw);
listen();
</script>
</body>
</html>
)page";

}  // namespace serve
