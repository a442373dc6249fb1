"""An offline job on a local Ray cluster of two workers that loses one while it runs: every row is answered once,
with the bits of one process.

Run by `make check-clients`.
"""
import json
import pathlib
import sys
import threading
import time

import pytest
import ray
from pyarrow import parquet
from ray._private import state
from ray.cluster_utils import Cluster

import skein

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples")]

import ray_decide  # noqa: E402
from skein_server import fetched  # noqa: E402

NUM_ROWS = 240
NODE = {"num_cpus": 2, "object_store_memory": 100 << 20}  # one for the model, one for reading and writing


@pytest.fixture
def cluster():
    """A head without processors and two nodes."""
    made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    try:
        nodes = [made.add_node(**NODE) for _ in range(2)]
        ray.init(address=made.address, runtime_env={"env_vars": {"PYTHONPATH": str(ROOT / "examples")}})
        made.wait_for_nodes()
        yield made, nodes
    finally:
        ray.shutdown()
        made.shutdown()


def homes_of_models():
    """The nodes with a loaded model."""
    return [actor["Address"]["NodeID"] for actor in state.actors().values()
            if actor["State"] == "ALIVE" and "(Decide)" in actor["ActorClassName"]]


def wait_until(condition, job):
    deadline = time.monotonic() + 300
    while not condition():
        assert job.is_alive() and time.monotonic() < deadline
        time.sleep(0.05)


def test_a_job_survives_the_loss_of_a_worker(cluster, tmp_path):
    made, nodes = cluster
    model = str(fetched("smollm2"))
    texts = [f"The parcel number {i} came {i % 9} days late. Please send me the next one sooner."
             for i in range(NUM_ROWS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"id": i, "text": text}) + "\n"
                                               for i, text in enumerate(texts)))
    failed = []

    def run():
        try:
            ray_decide.decide(str(tmp_path / "in.jsonl"), str(tmp_path / "out"), model, workers=2, batch_size=4)
        except BaseException as error:
            failed.append(error)

    job = threading.Thread(target=run)
    job.start()
    # Both have a model, and some rows are written: then one's machine is gone, and another takes its place.
    lost = nodes[1]
    wait_until(lambda: len(homes_of_models()) == 2 and list(tmp_path.glob("out/*.parquet")), job)
    assert lost.node_id in homes_of_models()
    made.remove_node(lost, allow_graceful=False)
    made.add_node(**NODE)
    job.join(600)
    assert not failed and not job.is_alive()
    rows = parquet.read_table(tmp_path / "out").to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(NUM_ROWS))
    with skein.LLM(model, max_model_len=2048) as llm:
        alone = llm.decide(texts, list(ray_decide.QUESTIONS.values()))
    for row in rows:
        assert [row[name] for name in ray_decide.QUESTIONS] == [
            decision.probability for decision in alone[row["id"]]]
