"""A model's `config.json`, read from disk. Owns opening it; what it means is `analysis.kvcache`'s."""

import json
from pathlib import Path

from pytest_agentlatency.analysis.kvcache import KvSpec, from_config
from pytest_agentlatency.wire.jsonedge import mapping


def read(path: Path) -> KvSpec:
    """What decides a model's KV-cache memory. ValueError, naming the file, when it can't be read or says too little."""
    try:
        return from_config(mapping(json.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        fault = error.strerror or str(error)
    except ValueError as error:
        fault = str(error)
    msg = f"{str(path)!r}: {fault}; give the config.json of the model's repository"
    raise ValueError(msg)
