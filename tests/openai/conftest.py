import pathlib
import sys

import openai
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from skein_server import STORIES, SkeinServer  # noqa: E402

CHAT_TEMPLATE = """{{ bos_token }}{% for message in messages %}{{ message['content'] }}
{% endfor %}"""


@pytest.fixture(scope="session")
def server(stories, tmp_path_factory):
    """A server of the small model. It has no chat template of its own, so one is given."""
    template = tmp_path_factory.mktemp("chat") / "template.jinja"
    template.write_text(CHAT_TEMPLATE)
    with SkeinServer(STORIES, "--chat-template", template) as running:
        yield running


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0,
                       timeout=60) as made:
        yield made
