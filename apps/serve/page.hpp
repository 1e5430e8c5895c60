// The page at /: reads /metrics twice a second and draws what the runtime does.
#pragma once

namespace serve {

inline constexpr char live_page[] = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>coppice</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; --line: #2f7d4f; --soft: #8884; }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; }
  body { padding: 0 1rem; }
  h1 { font-size: 1.4rem; margin: 0 0 1rem; }
  .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem; }
  .figures div { border: 1px solid var(--soft); border-radius: .5rem; padding: .6rem .8rem; }
  .figures b { display: block; font-size: 1.6rem; font-variant-numeric: tabular-nums; }
  svg { width: 100%; height: 9rem; border: 1px solid var(--soft); border-radius: .5rem; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  td, th { text-align: right; padding: .15rem .6rem; border-bottom: 1px solid var(--soft); }
  td:first-child, th:first-child { text-align: left; }
  #state { opacity: .7; }
</style>
</head>
<body>
<h1>coppice <span id="state">connecting</span></h1>
<div class="figures">
  <div>requests/s<b id="rate">-</b></div>
  <div>p50<b id="p50">-</b></div>
  <div>p99<b id="p99">-</b></div>
  <div>connections<b id="open">-</b></div>
  <div>requests<b id="total">-</b></div>
</div>
<h2>Requests per second, last minute</h2>
<svg id="rates" viewBox="0 0 120 40" preserveAspectRatio="none"></svg>
<h2>Latency of the last half second</h2>
<svg id="latency" viewBox="0 0 100 40" preserveAspectRatio="none"></svg>
<h2>Event loops</h2>
<table><thead><tr><th>loop</th><th>requests/s</th><th>connections</th></tr></thead>
<tbody id="loops"></tbody></table>
<h2>Pool workers</h2>
<table><thead><tr><th>worker</th><th>runs</th><th>steals</th><th>lost steals</th><th>parks</th></tr>
</thead><tbody id="workers"></tbody></table>
<script>
'use strict';
const id = name => document.getElementById(name);
const metric = (text, name) => {
  const found = new Map();
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const rest = line.slice(name.length);
    if (rest[0] !== ' ' && rest[0] !== '{') continue;
    const label = rest[0] === '{' ? rest.slice(rest.indexOf('"') + 1, rest.lastIndexOf('"')) : '';
    found.set(label, Number(rest.slice(rest.lastIndexOf(' ') + 1)));
  }
  return found;
};
const sum = map => [...map.values()].reduce((a, b) => a + b, 0);
const time = s => !isFinite(s) ? '-' : s < 1e-3 ? (s * 1e6).toFixed(0) + ' \u00b5s'
  : s < 1 ? (s * 1e3).toFixed(1) + ' ms' : s.toFixed(1) + ' s';
const draw = (svg, points, shape) => {
  const most = Math.max(1, ...points);
  const step = svg.viewBox.baseVal.width / Math.max(1, points.length - (shape === 'line' ? 1 : 0));
  const y = v => 40 - v / most * 36;
  svg.innerHTML = shape === 'line'
    ? `<polyline fill="none" stroke="var(--line)" vector-effect="non-scaling-stroke"
        points="${points.map((v, i) => i * step + ',' + y(v)).join(' ')}"/>`
    : points.map((v, i) => `<rect fill="var(--line)" x="${i * step}" y="${y(v)}"
        width="${step * .9}" height="${40 - y(v)}"/>`).join('');
};
const table = (body, rows) => {
  body.innerHTML = rows.map(r => '<tr>' + r.map(c => `<td>${c}</td>`).join('') + '</tr>').join('');
};
let last = null;
const rates = [];
async function look() {
  let text;
  try {
    text = await (await fetch('/metrics', { cache: 'no-store' })).text();
  } catch {
    id('state').textContent = 'not answering';
    return;
  }
  const now = { at: performance.now(), total: sum(metric(text, 'coppice_http_requests_total')),
    loops: metric(text, 'coppice_loop_requests_total'),
    buckets: metric(text, 'coppice_http_request_duration_seconds_bucket') };
  if (last) {
    const seconds = (now.at - last.at) / 1000;
    const rate = (now.total - last.total) / seconds;
    rates.push(rate);
    if (rates.length > 120) rates.shift();
    id('rate').textContent = Math.round(rate).toLocaleString('en');
    const bounds = [...now.buckets.keys()].map(Number);
    const upTo = [...now.buckets].map(([b, n]) => n - (last.buckets.get(b) || 0));
    const all = upTo[upTo.length - 1];
    const quantile = q => bounds[upTo.findIndex(n => n >= q * all && n > 0)];
    id('p50').textContent = all ? time(quantile(.5)) : '-';
    id('p99').textContent = all ? time(quantile(.99)) : '-';
    draw(id('rates'), rates, 'line');
    draw(id('latency'), upTo.map((n, i) => n - (i ? upTo[i - 1] : 0)), 'bars');
    const connections = metric(text, 'coppice_loop_connections');
    table(id('loops'), [...now.loops].map(([loop, n]) =>
      [loop, Math.round((n - (last.loops.get(loop) || 0)) / seconds).toLocaleString('en'),
       connections.get(loop)]));
  }
  last = now;
  id('total').textContent = now.total.toLocaleString('en');
  id('open').textContent = sum(metric(text, 'coppice_http_connections')).toLocaleString('en');
  const columns = ['runs', 'steals', 'failed_steals', 'parks']
    .map(c => metric(text, `coppice_pool_${c}_total`));
  table(id('workers'), [...columns[0].keys()].map(w => [w, ...columns.map(c => c.get(w))]));
  id('state').textContent = 'live';
}
look();
setInterval(look, 500);
</script>
</body>
</html>
)page";

}  // namespace serve
