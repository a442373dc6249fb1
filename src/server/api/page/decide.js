// Questions.
const hints = {
  predicate: "no options: answered by a probability of yes",
  choice: "options, separated by commas",
  score: "levels from lowest to highest, separated by commas"};
function addQuestion(type, instructions, options) {
  const kind = make("select", {ariaLabel: "Type"}, ...Object.keys(hints).map(t => make("option", {value: t}, t)));
  const text = line({className: "text", value: instructions, placeholder: "The question", ariaLabel: "Question"});
  const list = line({className: "options", value: options, ariaLabel: "Options"});
  const remove = make("button", {type: "button", title: "Remove this question"}, "×");
  const box = make("div", {className: "question"}, kind, text, remove, list);
  const show = () => { list.placeholder = hints[kind.value]; list.hidden = kind.value === "predicate"; };
  kind.value = type; kind.onchange = show; show();
  remove.onclick = () => box.remove();
  box.read = () => {
    const question = {type: kind.value, instructions: text.value};
    const values = list.value.split(",").map(s => s.trim()).filter(s => s);
    if (kind.value === "choice") question.choices = values.map(value => ({value}));
    if (kind.value === "score") question.levels = values.map(label => ({label}));
    return question;
  };
  $("questions").append(box);
}

// Answers.
function bar(name, probability, best) {
  const fill = make("div", {className: "fill"});
  fill.style.width = (100 * probability).toFixed(2) + "%";
  return make("div", {className: "option" + (best ? " best" : "")}, make("span", {}, name),
    make("div", {className: "track"}, fill), make("span", {}, (100 * probability).toFixed(1) + " %"));
}
function showAnswer(question, answer) {
  const box = make("div", {className: "answer"}, make("h3", {}, question.instructions));
  if (answer.type === "predicate") {
    box.append(bar("yes", answer.probability, answer.probability >= .5), bar("no", 1 - answer.probability, answer.probability < .5));
  } else if (answer.probabilities) {
    const best = Math.max(...answer.probabilities.map(p => p.probability));
    for (const p of answer.probabilities) box.append(bar(String(p.label ?? p.value), p.probability, p.probability === best));
    const score = answer.type === "score" ? `score ${answer.score.toFixed(2)}, ` : "";
    box.append(make("div", {className: "soft"}, `${score}confidence ${answer.confidence.toFixed(2)}`));
  } else {
    box.append(make("div", {className: "soft"}, answer.type));
  }
  return box;
}
$("decide").onsubmit = async event => {
  event.preventDefault();
  const questions = [...$("questions").children].map(box => box.read());
  const begin = performance.now();
  $("cost").textContent = "deciding";
  try {
    const reply = await (await ask("v1/decisions", {model: $("model").value, input: $("input").value, questions})).json();
    const {usage} = reply;
    $("cost").textContent = `${(performance.now() - begin).toFixed(1)} ms, ${usage.input_tokens} tokens read, ` +
      `${usage.input_tokens_details?.cached_tokens ?? 0} of them from the cache`;
    $("answers").className = "";
    $("answers").replaceChildren(...reply.answers.map((answer, i) => showAnswer(questions[i], answer)));
  } catch (error) {
    $("cost").textContent = "";
    $("answers").className = "error";
    $("answers").textContent = error.message;
  }
};
$("add").onclick = () => addQuestion("predicate", "", "");
addQuestion("choice", "What is the tone of this text?", "positive, neutral, negative");
addQuestion("predicate", "Does the writer ask for a refund?", "");
addQuestion("score", "How urgent is this?", "not urgent, somewhat urgent, urgent");
