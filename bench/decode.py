"""What it costs to take in a list of Pods as metadata + bytes, against ``json.loads`` to dicts.

20,000 Pods, in pages of 500, made from one that was recorded from a kube-apiserver (6 KB, managedFields
included): names, uids, versions and addresses differ, ten Pods share a ReplicaSet.  Memory is what a
fresh process holds more after taking all of them in than before, for each byte of the Pods themselves.

    python -m bench.decode
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.measure import best_of, in_fresh_process, resident_bytes
from setpoint.api.wire import Snapshot, split_page

PODS = 20_000
PAGE = 500
RECORDED = (Path(__file__).parent / "data" / "pod.json").read_text().strip()


def pages() -> Iterator[bytes]:
    for start in range(0, PODS, PAGE):
        items = ",".join(pod(i) for i in range(start, start + PAGE))
        yield f'{{"kind":"PodList","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}'.encode()


def pod(number: int) -> str:
    owner = number // 10
    different = {
        "663f969b-7325": f"{number:08x}-7325",  # its uid
        "8jqzv": f"{number:05x}",  # the end of its name
        '"resourceVersion":"283"': f'"resourceVersion":"{60000 + number}"',
        "0ef609bd": f"{owner:08x}",  # the uid of its owner
        "68bfd54d59": f"{owner:010x}",  # the hash in its owner's name, and in its label
        "10.1.0.17": f"10.1.{number // 250}.{number % 250}",
        "worker-1": f"worker-{number % 200}",
        "kube-api-access-rbj76": f"kube-api-access-{number:05x}",
    }
    text = RECORDED
    for old, new in different.items():
        text = text.replace(old, new)
    return text


def take_in(page: bytes) -> list[Snapshot]:
    return [Snapshot.of(data) for data in split_page(page).items]


def check(page: bytes) -> None:
    expected = json.loads(page)["items"]
    taken = take_in(page)
    assert [json.loads(snapshot.data) for snapshot in taken] == expected, "every object must survive whole"
    for snapshot, pod in zip(taken, expected, strict=True):
        metadata, owner = snapshot.metadata, pod["metadata"]["ownerReferences"][0]
        assert (metadata.name, metadata.uid) == (pod["metadata"]["name"], pod["metadata"]["uid"])
        assert (metadata.labels, metadata.annotations) == (
            pod["metadata"]["labels"],
            pod["metadata"]["annotations"],
        )
        assert metadata.controller is not None
        assert metadata.controller.uid == owner["uid"]
    assert len({snapshot.key for snapshot in taken}) == PAGE, "no two Pods are the same"


def hold() -> None:
    """Take in everything and keep it: what a fresh process is asked to do."""
    gc.collect()
    before, held = resident_bytes(), []
    for page in pages():
        held += take_in(page)
    del page  # the last one is not ours to count
    gc.collect()
    print(json.dumps([resident_bytes() - before, sum(len(snapshot.data) for snapshot in held)]))


def main() -> None:
    check(next(pages()))
    ours = yardstick = 0.0
    for page in pages():
        best = best_of(3, {"ours": partial(take_in, page), "json": partial(json.loads, page)})
        ours += best["ours"]
        yardstick += best["json"]
    held, raw = in_fresh_process("-m", "bench.decode", "hold")
    print(
        json.dumps(
            {
                "bench": "decode",
                "pods": PODS,
                "bytes_per_pod": raw // PODS,
                "microseconds_per_pod": round(ours / PODS * 1e6, 1),
                "times_faster_than_json": round(yardstick / ours, 2),
                "times_faster_at_least": 3,
                "bytes_per_raw_byte": round(held / raw, 2),
                "bytes_per_raw_byte_at_most": 1.6,
            }
        )
    )


if __name__ == "__main__":
    hold() if sys.argv[1:] == ["hold"] else main()
