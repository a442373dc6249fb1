"""At which tokens decisions are read."""
import math

import httpx

from skein_server import SkeinServer


def test_labels_are_read_as_the_template_writes_answers(tiny_qwen3, tmp_path):
    """Behind the same prompt: with a space before them where the template puts one before an answer, else as they stand."""
    chat = tmp_path / "chat.jinja"
    question = {"input": "It rains.", "reading": "letters", "questions": [
        {"type": "choice", "instructions": "Is it dry?", "choices": [{"value": "dry"}, {"value": "wet"}]}]}
    prompt = "[INST]Text:\nIt rains.\n\nQuestion: Is it dry?\nA. dry\nB. wet\nAnswer with one letter only.[/INST]"
    for space in ("", " "):
        chat.write_text("{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}"
                        + space + "{{ m.content }}</s>{% endif %}{% endfor %}")
        with SkeinServer(tiny_qwen3, "--chat-template", chat, "--dtype", "f32") as server:
            def post(path, body):
                answer = httpx.post(server.url + path, json=body, timeout=60)
                assert answer.status_code == 200, answer.text
                return answer.json()

            found = post("/v1/decisions", question)["answers"][0]["probabilities"][0]["probability"]
            labels = [post("/tokenize", {"prompt": space + label, "add_special_tokens": False})["tokens"] for label in ("A", "B")]
            assert [len(tokens) for tokens in labels] == [1, 1]
            ids = [tokens[0] for tokens in labels]
            told = post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "logprobs": 0, "logprob_token_ids": ids, "add_special_tokens": False,
                                            "return_tokens_as_token_ids": True})["choices"][0]["logprobs"]["top_logprobs"][0]
            first, second = (math.exp(told[f"token_id:{token}"]) for token in ids)
            assert abs(found - first / (first + second)) < 1e-4, space
