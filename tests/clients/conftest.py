"""A server of a real chat model, SmolLM2-135M-Instruct, for the packages of its clients."""
import openai
import pytest

from skein_server import SkeinServer, fetched


@pytest.fixture(scope="session")
def smollm2():
    with SkeinServer(fetched("smollm2"), "--served-model-name", "smollm2", "--decision-lora", "none",
                     "--no-any-model-name",
                     "--max-model-len", 4096) as running:
        yield running


@pytest.fixture
def client(smollm2):
    with openai.OpenAI(base_url=smollm2.url + "/v1", api_key="any", max_retries=0, timeout=120) as made:
        yield made
