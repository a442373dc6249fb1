"""Requests to decision models in both forms, and what tests read from their answers."""
import concurrent.futures

import httpx


def post(server, path, body):
    return httpx.post(server.url + path, json=body, timeout=60)


def answer_of(server, path, body):
    answer = post(server, path, body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def as_decisions(body):
    """The same questions in the form of /v1/decisions; None where that form cannot say them."""
    questions = []
    if not isinstance(body["state"], str):
        return None
    for name, question in body["questions"].items():
        asked = {"name": name, "type": question["type"], "instructions": question["instructions"]}
        criteria = question.get("criteria")
        if question["type"] == "noul":
            if criteria:
                return None
            asked["type"] = "predicate"
        elif len(criteria) < 2:
            return None
        elif question["type"] == "choice":
            items = criteria.items() if isinstance(criteria, dict) else [(value, None) for value in criteria]
            asked["choices"] = [{"value": value, **({"description": text} if text else {})} for value, text in items]
        else:
            asked["levels"] = [{"label": text} for text in criteria]
        questions.append(asked)
    budgets = {key: body[key] for key in ("max_len", "head_max_len") if key in body}
    return {"input": body["state"], "questions": questions, "diagnostics": False, **budgets}


def probabilities(answer):
    if answer["type"] == "predicate":
        return [1 - answer["probability"], answer["probability"]]
    return [entry["probability"] for entry in answer["probabilities"]]


def assert_equal_within(answer, expected, margin):
    """Equal, but for numbers that lie `margin` apart."""
    assert type(answer) is type(expected)
    if isinstance(expected, dict):
        assert answer.keys() == expected.keys()
        for key in expected:
            assert_equal_within(answer[key], expected[key], margin)
    elif isinstance(expected, float) and margin > 0:
        assert abs(answer - expected) <= margin
    else:
        assert answer == expected


def assert_same_alone_and_under_load(server, bodies, rounds):
    """Compares answers of /v1/decisions without a tolerance: each request alone, beside the others, and question by
    question. Returns those of the requests alone."""
    alone = [answer_of(server, "/v1/decisions", body)["answers"] for body in bodies]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(rounds):
            beside = pool.map(lambda body: answer_of(server, "/v1/decisions", body)["answers"], bodies)
            assert list(beside) == alone
    for body, answers in zip(bodies, alone):
        if len(body["questions"]) > 4:
            continue
        for question, answer in zip(body["questions"], answers):
            assert answer_of(server, "/v1/decisions", {**body, "questions": [question]})["answers"] == [answer]
    return alone
