"""/v1/files and /v1/batches with the openai package, over a directory that outlives the server."""
import json
import time

import openai
import pytest

from skein_server import STORIES, SkeinServer, fetched


@pytest.fixture
def batch_server(stories, tmp_path):
    """Makes servers that use one directory after the other."""
    return lambda *args: SkeinServer(STORIES, "--batch-dir", tmp_path / "batches", *args)


def connect(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0, timeout=60)


def completion(number, max_tokens=8, **options):
    body = {"model": "stories", "prompt": f"Once upon a time {number}", "max_tokens": max_tokens, "temperature": 0, **options}
    return {"custom_id": f"story-{number}", "method": "POST", "url": "/v1/completions", "body": body}


def begin(client, lines, endpoint="/v1/completions"):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file = client.files.create(file=("lines.jsonl", text.encode()), purpose="batch")
    assert file.bytes == len(text.encode()) and file.filename == "lines.jsonl"
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h",
                                 metadata={"kind": "test"})


def wait(client, batch, until=lambda batch: batch.status in ("completed", "failed", "cancelled"), timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        now = client.batches.retrieve(batch.id)
        if until(now):
            return now
        time.sleep(0.02)
    raise AssertionError(f"still {now}")


def results(client, file_id):
    """custom_id -> line; a line that is there twice fails."""
    lines = [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
    by_id = {line["custom_id"]: line for line in lines}
    assert len(by_id) == len(lines)
    return by_id


def test_lines_are_answered_as_the_routes_answer(batch_server):
    with batch_server() as server, connect(server) as client:
        wrong = completion("wrong")
        wrong["body"]["max_tokens"] = "many"
        batch = wait(client, begin(client, [completion(number) for number in range(5)] + [wrong]))
        assert batch.status == "completed" and batch.metadata == {"kind": "test"}
        assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (6, 5, 1)
        answers = results(client, batch.output_file_id)
        for number in range(5):
            line = answers[f"story-{number}"]
            assert line["response"]["status_code"] == 200 and line["error"] is None
            live = client.completions.create(**completion(number)["body"])
            assert line["response"]["body"]["choices"][0]["text"] == live.choices[0].text
        (error,) = results(client, batch.error_file_id).values()
        assert error["response"]["body"]["error"]["param"] == "max_tokens"
        assert [entry.id for entry in client.batches.list()] == [batch.id]
        again = wait(client, begin(client, [completion(0)]))
        # Pages of one entry: the client goes on behind the last.
        assert [entry.id for entry in client.batches.list(limit=1)] == [again.id, batch.id]
        purposes = {file.id: file.purpose for file in client.files.list()}
        assert purposes[batch.output_file_id] == "batch_output"
        assert client.files.delete(batch.input_file_id).deleted
        with pytest.raises(openai.NotFoundError):
            client.files.retrieve(batch.input_file_id)


def test_a_killed_server_goes_on(batch_server):
    num_lines = 300
    with batch_server() as server, connect(server) as client:
        batch = begin(client, [completion(number, max_tokens=100) for number in range(num_lines)])
        wait(client, batch, lambda now: now.request_counts.completed >= 20)
        server.process.kill()
        server.process.wait()
    with batch_server() as server, connect(server) as client:
        done = wait(client, batch)
        assert done.status == "completed" and done.request_counts.completed == num_lines
        answers = results(client, done.output_file_id)
        assert set(answers) == {f"story-{number}" for number in range(num_lines)}
        assert all(len(line["response"]["body"]["choices"]) == 1 for line in answers.values())
        # What was written down before the kill was not computed again.
        assert server.metric("skein_requests_total") <= num_lines - 20


def test_a_stopped_server_goes_on(batch_server):
    with batch_server() as server, connect(server) as client:
        batch = begin(client, [completion(number, max_tokens=100) for number in range(100)])
        wait(client, batch, lambda now: now.request_counts.completed >= 5)
        assert server.stop() == 0
    with batch_server() as server, connect(server) as client:
        done = wait(client, batch)
        assert len(results(client, done.output_file_id)) == 100


def test_clients_go_first(tmp_path):
    """While a client waits, one line runs at a time beside its request.

    The model is a real one, whose steps take milliseconds: the lines that run between the request's end and the count
    are then few, however late a busy machine counts.
    """
    arguments = ["--served-model-name", "stories", "--max-model-len", 512, "--max-num-seqs", 16]
    with SkeinServer(fetched("smollm2"), "--batch-dir", tmp_path / "batches", *arguments) as server, \
            connect(server) as client:
        batch = begin(client, [completion(number, max_tokens=32, ignore_eos=True) for number in range(48)])
        wait(client, batch, lambda now: now.request_counts.completed >= 1)
        completed = lambda: client.batches.retrieve(batch.id).request_counts.completed
        chunks = client.completions.create(model="stories", prompt="Once", max_tokens=160, stream=True,
                                           extra_body={"ignore_eos": True})
        next(chunks)  # the request is running; before that, lines run side by side
        before = completed()
        for _ in zip(range(128), chunks):
            pass
        during = completed() - before
        # Those that ran already (8), then 160 / 32 one after the other; side by side they would be 8 * 128 / 32.
        assert during <= 8 + 12
        chunks.close()
        assert wait(client, batch).request_counts.completed == 48


def test_a_batch_is_cancelled(batch_server):
    with batch_server() as server, connect(server) as client:
        batch = begin(client, [completion(number, max_tokens=200) for number in range(400)])
        wait(client, batch, lambda now: now.request_counts.completed >= 1)
        client.batches.cancel(batch.id)
        cancelled = wait(client, batch)
        assert cancelled.status == "cancelled" and cancelled.request_counts.completed < 400
        assert len(results(client, cancelled.output_file_id)) == cancelled.request_counts.completed


def test_wrong_inputs(batch_server):
    with batch_server() as server, connect(server) as client:
        with pytest.raises(openai.BadRequestError, match="purpose"):
            client.files.create(file=b"x", purpose="fine-tune")
        failed = wait(client, begin(client, [completion(1), completion(1)]))
        assert failed.status == "failed"
        (error,) = failed.errors.data
        assert error.line == 2 and error.param == "custom_id"
        with pytest.raises(openai.BadRequestError, match="input_file_id"):
            client.batches.create(input_file_id="file-none", endpoint="/v1/completions", completion_window="24h")


def test_without_a_directory(smollm2):
    with connect(smollm2) as client, pytest.raises(openai.NotFoundError, match="--batch-dir"):
        client.files.list()
