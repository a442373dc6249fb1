// A chat, streamed. The dialog is kept on this page only.
let dialog = [], stopping = null;
function showMessage(role, content) {
  const box = make("div", {className: "message " + role}, content);
  $("dialog").append(box);
  $("dialog").scrollTop = $("dialog").scrollHeight;
  return box;
}
// Calls `take` with the content of each event of a stream.
async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const events = (rest + piece.value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ") && event !== "data: [DONE]") take(JSON.parse(event.slice(6)));
    }
  }
}
$("chat").onsubmit = async event => {
  event.preventDefault();
  const content = $("message").value.trim();
  if (!content || stopping) return;
  const own = dialog;
  own.push({role: "user", content});
  showMessage("user", content);
  $("message").value = "";
  $("refusal").textContent = $("pace").textContent = "";
  const box = showMessage("assistant", "");
  const body = {model: $("model").value, messages: own, stream: true, stream_options: {include_usage: true}};
  if ($("temperature").value !== "") body.temperature = Number($("temperature").value);
  if ($("tokens").value !== "") body.max_tokens = Number($("tokens").value);
  stopping = new AbortController();
  $("stop").hidden = false;
  const begin = performance.now();
  let first = 0, usage = null, thought = null;
  try {
    await readEvents(await ask("v1/chat/completions", body, stopping.signal), chunk => {
      if (chunk.error) throw new Error(chunk.error.message);
      usage = chunk.usage ?? usage;
      const delta = chunk.choices[0]?.delta;
      if (!delta?.content && !delta?.reasoning_content) return;
      first ||= performance.now();
      if (delta.reasoning_content && !thought) {
        thought = make("div", {className: "message thought"});
        box.before(thought);
      }
      if (delta.reasoning_content) thought.textContent += delta.reasoning_content;
      box.textContent += delta.content ?? "";
      $("dialog").scrollTop = $("dialog").scrollHeight;
    });
  } catch (error) {
    if (error.name !== "AbortError") $("refusal").textContent = error.message;
  }
  stopping = null;
  $("stop").hidden = true;
  if (own !== dialog) return;  // a new chat has begun
  if (box.textContent || thought) {
    own.push({role: "assistant", content: box.textContent});
  } else {
    box.remove();
    $("message").value = own.pop().content;
    $("dialog").lastChild.remove();
  }
  if (usage && first) {
    const seconds = (performance.now() - first) / 1e3;
    $("pace").textContent = `first token after ${(first - begin).toFixed(0)} ms, ` +
      `${usage.completion_tokens} tokens, ${(usage.completion_tokens / Math.max(seconds, 1e-3)).toFixed(0)} a second`;
  }
};
$("message").onkeydown = event => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); $("chat").requestSubmit(); }
};
$("stop").onclick = () => stopping?.abort();
$("reset").onclick = () => {
  stopping?.abort();
  dialog = [];
  $("dialog").replaceChildren();
  $("pace").textContent = $("refusal").textContent = "";
};
