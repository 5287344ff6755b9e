"""Chat templates, for models that are asked to go on with one raw text; a BOS is put before it by the backend."""

from __future__ import annotations

from collections.abc import Mapping

from r2med.errors import UserError, nearest
from r2med.prompts.templates import Template

TEMPLATES: Mapping[str, str] = {
    "chatml": ("<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"),
    # QwQ's own opens the thoughts, else it may skip them.
    "chatml-think": (
        "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n<think>\n"
    ),
    "deepseek": "{system}<｜User｜>{user}<｜Assistant｜><think>\n",
    "gemma": "<start_of_turn>user\n{system}\n\n{user}<end_of_turn>\n<start_of_turn>model\n",
    "harmony": ("<|start|>system<|message|>{system}<|end|><|start|>user<|message|>{user}<|end|><|start|>assistant"),
    "llama3": (
        "<|start_header_id|>system<|end_header_id|>\n\n{system}<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\n{user}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "plain": "{system}\n\n{user}\n\n",
}


def chat_template(name: str) -> Template:
    """Return the template of a name."""
    if name not in TEMPLATES:
        raise UserError(f"no chat template {name!r}{nearest(name, TEMPLATES)}: {', '.join(TEMPLATES)}")
    return Template(name, TEMPLATES[name])
