// Metrics: the text format of Prometheus, requested once a second while the page is visible.
function parse(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const match = /^([a-z0-9_:]+)(?:\{(.*)\})? (\S+)/i.exec(line);
    if (!match || line[0] === "#") continue;
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/gi)].map(m => [m[1], m[2]]));
    samples.push({name: match[1], labels, value: match[3] === "+Inf" ? Infinity : Number(match[3])});
  }
  const pick = (name, label = {}) => samples.filter(s => s.name === name && Object.entries(label).every(([k, v]) => s.labels[k] === v));
  return {sum: (name, label) => pick(name, label).reduce((sum, s) => sum + s.value, 0), pick};
}
// The q-quantile of a histogram's counts between two readings, in ms; null without counts.
function quantile(now, before, name, q) {
  const counts = new Map();
  for (const [reading, sign] of [[now, 1], [before, -1]]) {
    for (const s of reading.pick(name + "_bucket")) {
      const bound = s.labels.le === "+Inf" ? Infinity : Number(s.labels.le);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * s.value);
    }
  }
  const bounds = [...counts.keys()].sort((a, b) => a - b);
  const total = counts.get(Infinity) ?? 0;
  if (total <= 0) return null;
  let low = 0, below = 0;
  for (const bound of bounds) {
    const count = counts.get(bound);
    if (count >= q * total) {
      return 1e3 * (bound === Infinity ? low : low + (bound - low) * (q * total - below) / Math.max(count - below, 1e-9));
    }
    low = bound; below = count;
  }
  return 1e3 * low;
}
const rate = (name, label) => (now, before, seconds) => Math.max(0, now.sum(name, label) - before.sum(name, label)) / seconds;
const latency = "vllm:e2e_request_latency_seconds";
// The unit of the y axis is in the title.
const charts = [
  {title: "Queue", lines: [["waiting", "--b", now => now.sum("vllm:num_requests_waiting")], ["running", "--a", now => now.sum("vllm:num_requests_running")]]},
  {title: "Requests per second by class", lines: [["one pass", "--a", rate("skein_requests_total", {class: "oneshot"})], ["decode", "--b", rate("skein_requests_total", {class: "decode"})]]},
  {title: "Tokens per second", lines: [["prompt", "--a", rate("vllm:prompt_tokens_total")], ["generated", "--b", rate("vllm:generation_tokens_total")]]},
  {title: "Prefix cache hits, %", lines: [["of prompt tokens", "--c", (now, before) => {
    const asked = now.sum("vllm:prefix_cache_queries_total") - before.sum("vllm:prefix_cache_queries_total");
    return asked > 0 ? 100 * (now.sum("vllm:prefix_cache_hits_total") - before.sum("vllm:prefix_cache_hits_total")) / asked : null;
  }]]},
  {title: "Latency, ms", lines: [["p50", "--a", (now, before) => quantile(now, before, latency, .5)], ["p99", "--b", (now, before) => quantile(now, before, latency, .99)]]},
  {title: "KV blocks, %", lines: [["in use", "--a", now => 100 * now.sum("vllm:kv_cache_usage_perc")],
    ["cached", "--c", now => 100 * now.sum("skein_kv_blocks_cached") / Math.max(1, now.sum("skein_kv_blocks"))]]},
];
const kPoints = 120;
// The least of 1, 2 and 5 times a power of ten that is not below `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find(factor => factor * power >= value * (1 - 1e-9)) * power;
}
const short = v => v == null ? "–" : v >= 1000 ? (v / 1000).toFixed(1).replace(/\.0$/, "") + "k" : v >= 100 ? v.toFixed(0) : v >= 1 || v === 0 ? v.toFixed(1).replace(/\.0$/, "") : v.toPrecision(2);
function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
for (const chart of charts) {
  const plot = svg("svg", {viewBox: `0 0 ${kPoints - 1} 100`, preserveAspectRatio: "none", role: "img", "aria-label": chart.title});
  for (const y of [0, 50]) plot.append(svg("line", {x1: 0, x2: kPoints - 1, y1: y, y2: y}));
  plot.append(svg("line", {x1: 0, x2: kPoints - 1, y1: 100, y2: 100, class: "axis"}), svg("line", {x1: 0, x2: 0, y1: 0, y2: 100, class: "axis"}));
  chart.values = chart.lines.map(() => []);
  chart.paths = chart.lines.map(([, color]) => {
    const path = svg("path", {});
    path.style.stroke = `var(${color})`;
    plot.append(path);
    return path;
  });
  chart.legend = make("div", {className: "legend"});
  chart.ys = [make("span"), make("span"), make("span", {}, "0")];
  $("charts").append(make("div", {}, make("h3", {}, chart.title),
    make("div", {className: "plot"}, make("div", {className: "ys"}, ...chart.ys), plot,
      make("div", {className: "xs"}, make("span", {}, "2 min ago"), make("span", {}, "1 min ago"), make("span", {}, "now"))),
    chart.legend));
}
function draw(chart) {
  const largest = Math.max(...chart.values.flat().filter(v => v != null), 0);
  const top = largest > 0 ? roundUp(largest) : 1;
  chart.ys[0].textContent = short(top);
  chart.ys[1].textContent = short(top / 2);
  chart.paths.forEach((path, i) => {
    let pen = "M";
    path.setAttribute("d", chart.values[i].map((v, x) => {
      if (v == null) { pen = "M"; return ""; }
      const dot = pen === "M" ? "h0" : "";
      const step = `${pen}${x + kPoints - chart.values[i].length} ${(100 - 100 * v / top).toFixed(2)}${dot}`;
      pen = "L";
      return step;
    }).join(""));
  });
  chart.legend.replaceChildren(...chart.lines.map(([name, color], i) => {
    const mark = make("i");
    mark.style.background = `var(${color})`;
    return make("span", {}, mark, `${name} ${short(chart.values[i].at(-1))}`);
  }));
}
let before = null, beforeMs = 0;
async function watch() {
  if (!document.hidden) {
    try {
      const response = await fetch("metrics");
      if (!response.ok) throw new Error(response.statusText);
      const now = parse(await response.text()), nowMs = performance.now();
      if (before) {
        for (const chart of charts) {
          chart.lines.forEach(([, , read], i) => {
            chart.values[i].push(read(now, before, (nowMs - beforeMs) / 1e3));
            if (chart.values[i].length > kPoints) chart.values[i].shift();
          });
          draw(chart);
        }
      }
      [before, beforeMs] = [now, nowMs];
      $("watch").textContent = "Read from /metrics once a second.";
    } catch (error) {
      before = null;
      $("watch").textContent = "The server does not answer: " + error.message;
    }
  }
  setTimeout(watch, 1000);
}
