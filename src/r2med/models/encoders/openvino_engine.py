"""OpenVINO: another engine for the same transformer on a CPU, with the same pooling."""

from __future__ import annotations

import warnings
from copy import copy
from shlex import quote
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from r2med.foundation.core.errors import UserError
from r2med.models.encoders.devices import is_out_of_memory, load_openvino


def compiled(forward: Any, backend: str) -> Any:
    """Return the same `Forward` with its model on another engine, in that engine's default precision.

    Raises UserError if that engine cannot run the model.
    """
    if not forward.needs_mask or forward.bidirectional:
        raise UserError(
            f"backend (--backend {quote(backend)}) works only for encoders such as BERT; use backend (--backend "
            "torch) for this model",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Tracing warns about each branch in the library's code.
        name = type(forward.model).__name__
        try:
            engine = copy(forward)
            engine.model = CompiledModel(forward.model)
        except Exception as error:  # OpenVINO has its own errors for models that it cannot convert.
            if is_out_of_memory(error):
                raise
            raise UserError(
                f"backend (--backend {quote(backend)}) cannot convert {name} ({type(error).__name__}); use backend "
                "(--backend torch)",
            ) from error
    if _difference(forward, engine) > TOLERANCE:
        raise UserError(
            f"backend (--backend {quote(backend)}) gives other results than torch for {name}; use backend "
            "(--backend torch)",
        )
    return engine


TOLERANCE = 1e-3
"""Maximum mean distance from 1 of the cosine of two states of a token. bfloat16 uses a tenth of it."""


def _difference(forward: Any, engine: Any) -> float:
    """Return the difference between an engine and torch, measured on texts of other lengths than the traced example.

    A tracer may read the length of its example as a constant, as it does with the positions of T5.
    """
    ids = np.random.default_rng(0).integers(5, 30, (3, 40))
    lengths = np.asarray([40, 23, 2], dtype=np.int64)
    with torch.inference_mode():
        right, tested = (each.model(**each.inputs(ids, lengths)).last_hidden_state for each in (forward, engine))
    cosines = torch.nn.functional.cosine_similarity(right, tested, dim=-1)
    read = torch.arange(ids.shape[1]) < torch.from_numpy(lengths)[:, None]
    return float(1 - cosines[read].mean())


class _Graph(torch.nn.Module):
    """The model as a function of tensors only."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        """Return the last hidden states."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = token_type_ids
        return self.model(**inputs).last_hidden_state


def _example() -> dict[str, Any]:
    # Two padded texts, because a tracer reads a size of 1, or a mask of ones, as a constant.
    ids = torch.tensor([[5, 6, 7, 8, 9, 5, 6], [5, 6, 7, 8, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]])
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


class CompiledModel:
    """A transformer in Intel's engine, called as the torch model. It is always given a mask."""

    def __init__(self, model: Any) -> None:
        self.config = model.config
        openvino, example = load_openvino(), _example()
        with torch.no_grad():
            graph = openvino.convert_model(_Graph(model), example_input=example)
        self._names = [name for port in graph.inputs for name in port.get_names() if name in example]
        for port in graph.inputs:
            port.get_node().set_partial_shape(openvino.PartialShape([-1, -1]))
        graph.validate_nodes_and_infer_types()
        core = openvino.Core()
        self._request = core.compile_model(graph, "CPU", {"PERFORMANCE_HINT": "LATENCY"}).create_infer_request()

    def __call__(self, input_ids: Any, **settings: Any) -> SimpleNamespace:
        """Return the last hidden states."""
        inputs = {
            "input_ids": input_ids,
            "attention_mask": settings.get("attention_mask", torch.ones_like(input_ids)),
            "token_type_ids": settings.get("token_type_ids", torch.zeros_like(input_ids)),
        }
        # The output stays in the memory of the request until the next call. It is pooled before that.
        arrays = {name: inputs[name].numpy() for name in self._names}
        self._request.infer(arrays, share_inputs=True, share_outputs=True)
        return SimpleNamespace(last_hidden_state=torch.from_numpy(self._request.get_output_tensor(0).data))
