// Who runs, waits and is suspended, and the tree of cached prefixes: /scheduler, once a second while
// its tab is open.
const span = ms => ms >= 1e4 ? (ms / 1e3).toFixed(0) + " s" : ms >= 1e3 ? (ms / 1e3).toFixed(1) + " s" : ms.toFixed(0) + " ms";
const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
function part(name, share) {
  const node = make("div", {className: "fill " + name});
  node.style.width = (100 * share).toFixed(2) + "%";
  return node;
}
// A request: its tokens that were cached, are computed and are written, of all that the longest has.
function showRequest(request, longest) {
  const computed = Math.max(0, Math.min(request.computed_tokens, request.prompt_tokens) - request.cached_tokens);
  const track = make("div", {className: "track"}, part("cached", request.cached_tokens / longest),
    part("computed", computed / longest), part("output", request.output_tokens / longest));
  track.style.width = Math.max(4, 100 * (request.prompt_tokens + request.output_tokens) / longest) + "%";
  for (const piece of track.children) piece.style.width = parseFloat(piece.style.width) / parseFloat(track.style.width) * 100 + "%";
  track.title = `${request.prompt_tokens} prompt tokens, ${request.cached_tokens} of them cached, ${computed} computed; ${request.output_tokens} written`;
  const due = request.slack_ms === null ? "" : request.slack_ms < 0 ? `, late by ${span(-request.slack_ms)}` : `, due in ${span(request.slack_ms)}`;
  return make("div", {className: "request"},
    make("span", {}, `#${request.id} ${request.class === "oneshot" ? "one pass" : "decode"}`), track,
    make("span", {className: request.slack_ms < 0 ? "late" : ""}, span(request.age_ms) + due));
}
function showRequests(view) {
  const longest = Math.max(1, ...view.requests.map(r => r.prompt_tokens + r.output_tokens));
  const groups = [["Running", "running", view.num_running], ["Suspended", "suspended", view.num_suspended], ["Waiting", "waiting", view.num_waiting]];
  const colors = [["cached", "from the cache"], ["computed", "computed"], ["output", "written"]];
  return [make("div", {className: "legend"}, ...colors.map(([name, text]) => make("span", {}, make("i", {className: name}), text))),
    ...groups.flatMap(([title, state, count]) => {
      const requests = view.requests.filter(r => r.state === state);
      const more = count - requests.length;
      return [make("h3", {}, `${title}: ${count}`), ...requests.map(r => showRequest(r, longest)),
        ...(more > 0 ? [make("div", {className: "soft"}, `and ${more} more`)] : [])];
    })];
}
// The runs of blocks, each indented below the one that it continues.
const kPrefixesShown = 60;
function showPrefixes(view) {
  const percent = n => (100 * n / Math.max(1, view.num_blocks)).toFixed(0) + " %";
  const children = new Map();
  view.prefixes.forEach((prefix, i) => children.set(prefix.parent, [...(children.get(prefix.parent) ?? []), i]));
  const largest = Math.max(1, ...view.prefixes.map(p => p.num_blocks));
  const rows = [];
  const add = (i, depth) => {
    if (rows.length === kPrefixesShown) return;
    const {num_blocks: blocks, num_sequences: users} = view.prefixes[i];
    const row = make("div", {className: "prefix"},
      `${plural(blocks * view.block_tokens, "token")} in ${plural(blocks, "block")}, ${users > 0 ? plural(users, "sequence") : "cached"}`,
      make("div", {className: "track"}, part(users > 0 ? "computed" : "cached", blocks / largest)));
    row.style.marginLeft = Math.min(depth, 12) * 0.9 + "em";
    rows.push(row);
    for (const child of children.get(i) ?? []) add(child, depth + 1);
  };
  for (const root of children.get(-1) ?? []) add(root, 0);
  const rest = view.num_prefixes - rows.length;
  return [make("div", {className: "legend"}, make("span", {}, `${view.num_blocks} blocks of ${view.block_tokens} tokens`),
    make("span", {}, make("i", {className: "computed"}), `in use ${percent(view.num_used_blocks)}`),
    make("span", {}, make("i", {className: "cached"}), `cached ${percent(view.num_cached_blocks)}`)),
    ...rows, ...(rest > 0 ? [make("div", {className: "soft"}, `and ${rest} more`)] : [])];
}
async function look() {
  if (shown("scheduler")) {
    try {
      const view = await (await ask("scheduler")).json();
      $("requests").className = $("prefixes").className = "";
      $("requests").replaceChildren(...showRequests(view));
      $("prefixes").replaceChildren(...showPrefixes(view));
    } catch (error) {
      $("requests").className = "error";
      $("requests").textContent = error.message;
      $("prefixes").replaceChildren();
    }
  }
  setTimeout(look, 1000);
}
$("tab-scheduler").addEventListener("click", () => { $("requests").textContent ||= "Reading."; });
about().catch(error => { $("about").textContent = error.message; });
watch();
look();
