"""The model card of the default model, from what was measured."""


def card(result, training, config, out):
    rows = "\n".join(
        f"| {task} | {t['questions']} | {t['accuracy']:.3f} | {t['chance']:.3f} | "
        f"{t['calibration_error']:.3f} |" for task, t in result["tasks"].items())
    size = sum(f.stat().st_size for f in out.iterdir() if f.name != "README.md")
    weights = (out / "model.safetensors").stat().st_size // 2
    return f"""# The default model of Skein

A toy that answers: `make serve` serves it where no model can be downloaded, and tests use it.
About {weights / 1e6:.1f} million parameters ({size / 2**20:.1f} MiB of files), Qwen3's architecture
({config['num_hidden_layers']} layers of width {config['hidden_size']}, {config['vocab_size']} tokens of its own), trained on made-up texts
only. It knows the words of those texts and little else: use it to try Skein, not to decide anything.

It was trained on the prompts of `docs/decisions.md`: sentiment, topic, spam, tickets, facts about people,
words that a text mentions, scores, and relevance of a document to a query; and on a few lines of chat.

## Quality

On texts and question wordings that training never saw (every fifth sentence and wording of
`tools/default_model_words.py`; the single words are shared). {result['questions']} questions:

| task | questions | accuracy | by chance | calibration error |
|---|---|---|---|---|
{rows}
| **all** | {result['questions']} | {result['accuracy']:.3f} | | {result['ece']:.3f} |

- The calibration error (ECE, 15 bins) is {result['ece_raw']:.3f} without and {result['ece']:.3f} with the decision temperature
  {result['temperature']}, fitted on a validation split of other sentences and wordings (`decision_temperature` in config.json).
- Scores: the expected level is off by {result['score_error']:.2f} levels on average.
- Relevance, 150 queries with 8 documents each (near misses among them): nDCG {result['ndcg']:.3f}, {100 * result['pairs']:.1f} % of the pairs
  in the right order.

The test texts come from the same generator as the training texts: on real texts it is worse, and was not measured.

## How it was made

    python3 tools/train_default_model.py models/default             # trains and measures
    python3 tools/train_default_model.py models/default --measure   # measures again

{training['steps']} steps of {training['processes']} x {training['texts']} texts with {training['questions']} questions each, {training['seconds'] / 60:.1f} minutes in {training['processes']} processes of
one thread on a busy machine; torch {training['torch']}, seed {training['seed']}, the last {training['decay_steps']} steps with a falling rate. Seeds are fixed;
another torch version or another kind of CPU rounds differently and gives another, similar model.

Apache-2.0, as Skein.
"""
