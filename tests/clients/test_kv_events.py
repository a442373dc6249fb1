"""The events of the prefix cache, as a gateway's ZeroMQ subscriber reads them."""
import json
import re
import time
import urllib.request

import msgpack
import pytest
import zmq

from skein_server import STORIES, SkeinServer

BLOCK = 32
TOPIC = "kv@pod-1@stories"


class Events:
    """What a subscriber knows: hash -> (parent's hash, tokens) of the blocks in the cache."""

    def __init__(self, log):
        text = "".join(log)
        events, replays = re.search(r"KV events at (\S+), replays at (\S+)", text).groups()
        # The process's own context: ending another would wait for sockets that are garbage, forever.
        self.context = zmq.Context.instance()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.connect(events)
        self.socket.subscribe(TOPIC.encode())
        self.replays = replays
        self.next = 0
        # Messages below this number came in a replay: they may come again.
        self.replayed = 0
        self.blocks = {}

    def apply(self, payload):
        _, events, rank = msgpack.unpackb(payload)
        assert rank == 0
        for tag, hashes, *rest in events:
            if tag == "BlockRemoved":
                assert rest == ["CPU"]
                for block in hashes:
                    del self.blocks[block]
                continue
            parent, tokens, size, lora_id, medium, lora_name = rest
            assert (tag, size, lora_id, medium, lora_name) == ("BlockStored", BLOCK, None, "CPU", None)
            assert len(tokens) == BLOCK * len(hashes) and (parent is None or parent in self.blocks)
            for i, block in enumerate(hashes):
                self.blocks[block] = (parent, tokens[BLOCK * i:BLOCK * (i + 1)])
                parent = block

    def receive(self, timeout_ms=2000):
        """Reads messages until none comes for so long."""
        count = 0
        while self.socket.poll(timeout_ms if count == 0 else 300):
            topic, sequence, payload = self.socket.recv_multipart()
            assert topic == TOPIC.encode()
            sequence = int.from_bytes(sequence, "big")
            if self.next == 0 and sequence > 0:
                # The server sent the first messages before the subscription reached it.
                self.ask_for_the_rest()
            if sequence >= self.replayed:
                self.follow(sequence, payload)
            count += 1
        return count

    def follow(self, sequence, payload):
        """Applies a message, which must be the next one."""
        assert sequence == self.next
        self.next += 1
        self.apply(payload)

    def ask_for_the_rest(self):
        for sequence, payload in self.replay(self.next):
            self.follow(sequence, payload)
        self.replayed = self.next

    def replay(self, first):
        with self.context.socket(zmq.DEALER) as dealer:
            dealer.connect(self.replays)
            dealer.send_multipart([b"", first.to_bytes(8, "big")])
            while True:
                assert dealer.poll(5000)
                _, sequence, payload = dealer.recv_multipart()
                if int.from_bytes(sequence, "big", signed=True) == -1:
                    assert payload == b""
                    return
                yield int.from_bytes(sequence, "big"), payload

    def catch_up(self):
        """Reads what is published, then asks for what was published before the subscription reached the server."""
        self.receive()
        self.ask_for_the_rest()

    def prompts(self):
        """The prefixes in the cache, as lists of tokens."""
        def whole(block):
            parent, tokens = self.blocks[block]
            return (whole(parent) if parent is not None else []) + tokens
        parents = {parent for parent, _ in self.blocks.values()}
        return sorted(whole(block) for block in self.blocks if block not in parents)


def complete(server, tokens, **more):
    body = {"prompt": tokens, "max_tokens": 1, "temperature": 0, **more}
    request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture
def config():
    return {"enable_kv_cache_events": True, "endpoint": "tcp://127.0.0.1:*", "topic": TOPIC,
            "replay_endpoint": "tcp://127.0.0.1:*"}


def test_a_subscriber_knows_the_cache(stories, config):
    # Twelve blocks, of 160 KiB in f32: more prompts evict what was used least recently.
    with SkeinServer(STORIES, "--kv-events-config", json.dumps(config), "--max-model-len", 192,
                     "--kv-cache-memory", 12 * 163840, "--dtype", "f32") as server:
        known = Events(server.log)
        first, second = [5 + i % 100 for i in range(100)], [7 + i % 90 for i in range(100)]
        complete(server, first)
        known.catch_up()
        assert [prompt[:96] for prompt in known.prompts()] == [first[:96]]
        complete(server, first[:64] + second[:40])
        complete(server, second)
        assert known.receive() > 0
        assert [prompt[:96] for prompt in known.prompts()] == sorted(
            [first[:96], first[:64] + second[:32], second[:96]])
        for start in range(10, 20):
            complete(server, [start + i % 80 for i in range(150)])
        known.receive()
        assert len(known.blocks) <= server.metric("skein_kv_blocks")
        assert first[:96] not in [prompt[:96] for prompt in known.prompts()]
        # A late subscriber has what it missed sent again.
        late = Events(server.log)
        late.catch_up()
        assert late.blocks == known.blocks and late.next == known.next
        assert [sequence for sequence, _ in late.replay(late.next - 1)] == [late.next - 1]
        # So has one whose first message is not the first that was sent.
        later = Events(server.log)
        time.sleep(0.5)
        complete(server, [7 + i % 60 for i in range(150)])
        assert known.receive() > 0 and later.receive() > 0
        assert later.blocks == known.blocks and later.next == known.next


def test_salted_prompts_are_not_told(stories, config):
    with SkeinServer(STORIES, "--kv-events-config", json.dumps(config)) as server:
        known = Events(server.log)
        complete(server, [9] * 100, cache_salt="mine")
        complete(server, [8] * 100)
        known.catch_up()
        assert {token for _, tokens in known.blocks.values() for token in tokens} == {8}


@pytest.mark.parametrize("wrong", ["no JSON", '{"enable_kv_cache_events": true, "hwm": 0}',
                                   '{"enable_kv_cache_events": true, "endpoint": "nonsense"}'])
def test_a_wrong_configuration_is_told(stories, wrong):
    with pytest.raises(RuntimeError, match="--kv-events-config"):
        with SkeinServer(STORIES, "--kv-events-config", wrong):
            pass
