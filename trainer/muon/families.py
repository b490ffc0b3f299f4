"""Declare how Muon cuts the parameters of the model families we know.

| model type | queries, keys, values | output | experts |
|---|---|---|---|
| llama, mistral, qwen2, qwen3 | whole | whole | none |
| mixtral, qwen3_moe | whole | whole | each; gate and up apart |
| deepseek_v3, also within kimi_k25 | per head where latents are projected up | whole | the same |

`GroupChoices` changes heads and routers. Embeddings, the head, norms, biases and a vision tower are
AdamW's.
"""

from collections.abc import Callable, Iterator, Mapping

from transformers import PreTrainedConfig

from trainer.muon.config import GroupChoices
from trainer.muon.cuts import AdamW, Columns, Cut, Experts, Repeat, Rows, Split, Whole
from trainer.muon.units import Rule

# What comes before the name of a module, whatever the model is wrapped in.
_ANY = r"(?:.*\.)?"


def rules_for(config: PreTrainedConfig, *, choices: GroupChoices) -> tuple[Rule, ...]:
    """Return the rules for all parameters of a model of a known family.

    Raises:
        ValueError: the family is not known, or its heads cannot be grouped as chosen.
    """
    text = config.get_text_config()
    if text.model_type not in _FAMILIES:
        known = ", ".join(sorted(_FAMILIES))
        raise ValueError(
            f"model type {text.model_type!r}: no rules say how Muon cuts it, expected {known}, "
            "or rules of your own: Rule(pattern=r'.*\\.q_proj\\.weight', cut=Rows(size=128)), ..."
        )
    return (
        Rule(
            pattern=r"(?:.*\.)?(?:vision_tower|multi_modal_projector|mm_projector)\..*", cut=_VISION
        ),
        Rule(pattern=r".*(?:embed_tokens|embed)\.weight", cut=AdamW(reason="embedding")),
        Rule(pattern=rf"{_ANY}lm_head\.weight", cut=AdamW(reason="head")),
        Rule(pattern=r".*norm\.weight", cut=AdamW(reason="norm")),
        Rule(pattern=r".*\bbias", cut=AdamW(reason="bias")),
        Rule(pattern=rf"{_ANY}mlp\.gate\.weight", cut=_router(choices)),
        *_FAMILIES[text.model_type](text, choices),
        *_feed_forward(text),
    )


def _plain_attention(config: PreTrainedConfig, choices: GroupChoices) -> Iterator[Rule]:
    """Yield rules for one projection each to queries, keys, values and from outputs."""
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    group = choices.heads or 0
    yield _rule("q_proj", _grouped(size, group, of=heads, what="heads"))
    yield _rule("[kv]_proj", _grouped(size, group, of=kv_heads, what="key-value heads"))
    yield _rule("o_proj", _columns(size, choices.output_heads, of=heads))


def _mla(config: PreTrainedConfig, choices: GroupChoices) -> Iterator[Rule]:
    """Yield rules for multi-head latent attention."""
    heads = config.num_attention_heads
    keys, values = config.qk_nope_head_dim, config.v_head_dim
    group = 1 if choices.heads is None else choices.heads
    queries = keys + config.qk_rope_head_dim
    up = "q_proj" if config.q_lora_rank is None else "q_b_proj"
    yield _rule(up, _grouped(queries, group, of=heads, what="heads"))
    yield _rule("q_a_proj|kv_a_proj_with_mqa", Whole())
    yield _rule("kv_b_proj", _keys_and_values(keys, values, group, of=heads, choices=choices))
    yield _rule("o_proj", _columns(values, choices.output_heads, of=heads))


def _keys_and_values(keys: int, values: int, group: int, *, of: int, choices: GroupChoices) -> Cut:
    """Return the cut of rows that are the keys of a head, its values, the keys of the next."""
    if not choices.split_kv:
        return _grouped(keys + values, group, of=of, what="heads")
    if group != 1:
        raise ValueError(
            f"heads = {group}: keys and values of several heads are not next to each other; "
            "expected heads = 1, or split_kv = false"
        )
    head = Split(sizes=(keys, values), cuts=(Whole(), Whole()))
    return Repeat(size=keys + values, cut=head, num=of)


def _feed_forward(config: PreTrainedConfig) -> Iterator[Rule]:
    """Yield rules for dense layers, shared experts, and routed experts."""
    dense = r"mlp\.(?:shared_experts\.)?(?:gate|up|down)_proj\.weight"
    yield Rule(pattern=_ANY + dense, cut=Whole())
    size = getattr(config, "moe_intermediate_size", None) or config.intermediate_size
    both = Split(sizes=(size, size), cuts=(Whole(), Whole()))
    yield Rule(pattern=rf"{_ANY}mlp\.experts\.gate_up_proj", cut=Experts(cut=both))
    yield Rule(pattern=rf"{_ANY}mlp\.experts\.down_proj", cut=Experts(cut=Whole()))


def _grouped(size: int, group: int, *, of: int, what: str) -> Cut:
    """Return the cut of the rows of `of` heads, so many of them a matrix."""
    group = _checked(group, of=of, what=what, field="heads")
    return Rows(size=size * group, num=of // group)


def _columns(size: int, group: int, *, of: int) -> Cut:
    group = _checked(group, of=of, what="heads", field="output_heads")
    return Columns(size=size * group, num=of // group)


def _checked(group: int, *, of: int, what: str, field: str) -> int:
    """Return how many heads are a matrix."""
    if group and of % group:
        raise ValueError(f"{field} = {group}: does not divide the {of} {what} of the model")
    return group or of


def _router(choices: GroupChoices) -> Cut:
    return Whole() if choices.router == "muon" else AdamW(reason="router")


def _rule(projections: str, cut: Cut) -> Rule:
    return Rule(pattern=rf"{_ANY}self_attn\.(?:{projections})\.weight", cut=cut)


_VISION = AdamW(reason="vision")
_FAMILIES: Mapping[str, Callable[[PreTrainedConfig, GroupChoices], Iterator[Rule]]] = {
    "deepseek_v3": _mla,
    **dict.fromkeys(
        ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe"), _plain_attention
    ),
}
