"""Frameworks over the HTTP interface, each with its own package: chats, streams, typed answers, vectors, ranks.

Run by `make check-clients`.
"""
import json
import pathlib
import sys
import urllib.request

import pydantic
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from skein_server import SkeinServer, fetched  # noqa: E402

MODEL = "smollm2"
QUESTION = "Name the capital of France."
PERSON = "Describe the person. Maria Lopez, 34, is a nurse."


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=40)
    age: int = pydantic.Field(ge=0, le=130)


def ask(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def server():
    with SkeinServer(fetched("smollm2"), "--served-model-name", MODEL, "--max-model-len", 4096) as running:
        yield running


@pytest.fixture(scope="module")
def minilm():
    with SkeinServer(fetched("minilm"), "--served-model-name", "minilm") as running:
        yield running


@pytest.fixture(scope="module")
def expected(server):
    """The greedy answer to QUESTION."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 16, "temperature": 0}
    return ask(server.url, "/v1/chat/completions", body)["choices"][0]["message"]["content"]


def test_litellm(server, minilm, expected):
    import litellm
    there = {"api_base": server.url + "/v1", "api_key": "any", "max_tokens": 16, "temperature": 0,
             "messages": [{"role": "user", "content": QUESTION}]}
    for provider in ("openai", "hosted_vllm"):
        whole = litellm.completion(model=f"{provider}/{MODEL}", **there)
        assert whole.choices[0].message.content == expected
        chunks = litellm.completion(model=f"{provider}/{MODEL}", stream=True, **there)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == expected
    vectors = litellm.embedding(model="openai/minilm", input=["A text."], api_base=minilm.url + "/v1", api_key="any",
                                encoding_format="float")
    assert vectors.data[0]["embedding"] == ask(
        minilm.url, "/v1/embeddings", {"input": "A text."})["data"][0]["embedding"]


def test_langchain(server, minilm, expected):
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    chat = ChatOpenAI(model=MODEL, base_url=server.url + "/v1", api_key="any", temperature=0, max_tokens=16)
    assert chat.invoke(QUESTION).content == expected
    assert "".join(chunk.content for chunk in chat.stream(QUESTION)) == expected
    typed = ChatOpenAI(model=MODEL, base_url=server.url + "/v1", api_key="any", temperature=0, max_tokens=100)
    for method in ("json_schema", "function_calling"):
        person = typed.with_structured_output(Person, method=method).invoke(PERSON)
        assert isinstance(person, Person) and person.age == 34
    embeddings = OpenAIEmbeddings(model="minilm", base_url=minilm.url + "/v1", api_key="any",
                                  check_embedding_ctx_length=False)
    assert len(embeddings.embed_documents(["A text.", "Another one."])[1]) == 384


def test_llama_index(server, expected):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike
    llm = OpenAILike(model=MODEL, api_base=server.url + "/v1", api_key="any", is_chat_model=True, temperature=0,
                     max_tokens=16, context_window=4096)
    messages = [ChatMessage(role="user", content=QUESTION)]
    assert llm.chat(messages).message.content == expected
    assert "".join(chunk.delta or "" for chunk in llm.stream_chat(messages)) == expected


def test_instructor(server):
    import instructor
    import openai
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(openai.OpenAI(base_url=server.url + "/v1", api_key="any"), mode=mode)
        person = client.chat.completions.create(
            model=MODEL, response_model=Person, temperature=0, max_tokens=100, max_retries=0,
            messages=[{"role": "user", "content": PERSON}])
        assert person.age == 34


def test_pydantic_ai(server):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=server.url + "/v1", api_key="any"))
    agent = Agent(model, output_type=Person, model_settings={"temperature": 0, "max_tokens": 100})
    assert agent.run_sync(PERSON).output.age == 34


def test_dspy(server, expected):
    import dspy
    there = {"api_base": server.url + "/v1", "api_key": "any", "cache": False, "temperature": 0}
    assert dspy.LM(f"openai/{MODEL}", max_tokens=16, **there)(QUESTION) == [expected]
    # It does not know that the model takes schemas: it is told.
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    lm = dspy.LM(f"openai/{MODEL}", max_tokens=100, extra_body={"structured_outputs": {"json": schema}}, **there)

    class Describe(dspy.Signature):
        """Describe the person."""
        text: str = dspy.InputField()
        age: int = dspy.OutputField()

    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        assert isinstance(dspy.Predict(Describe)(text="Maria Lopez, 34, is a nurse.").age, int)


def test_cohere(server):
    import cohere
    documents = ["Cats sleep a lot.", "Paris is the capital of France."]
    client = cohere.ClientV2(api_key="any", base_url=server.url)
    ranked = client.rerank(model=MODEL, query="What is the capital of France?", documents=documents, top_n=2)
    told = ask(server.url, "/v2/rerank", {"query": "What is the capital of France?", "documents": documents})["results"]
    assert [(entry.index, entry.relevance_score) for entry in ranked.results] == [
        (entry["index"], entry["relevance_score"]) for entry in told]
