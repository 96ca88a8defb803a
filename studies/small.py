"""What studies of a language model share: their options, and one small enough for a taste, with random weights."""

import re
from collections import Counter
from pathlib import Path

from relaymodel.networks.texts import english


def add_options(parser, **numbers):
    """Add MODEL, --store and --out, and an option for each number with its default."""
    parser.add_argument("model")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    for name, default in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)


def arguments(folder, out, *more):
    """Return what a taste in a folder is run with."""
    return [str(llama(folder / "model")), "--store", str(folder / "store"), "--out", str(folder / out), *more]


def llama(folder, *, words=500, context=512):
    """Store a Llama of two layers with the commonest words of `english()` as tokens; return the folder."""
    import tokenizers
    import transformers

    common = [word for word, _ in Counter(re.findall(r"\w+", english())).most_common(words - 1)]
    model = tokenizers.models.WordLevel({word: i for i, word in enumerate(["?", *common])}, unk_token="?")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="?").save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=words,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context,
    )
    transformers.set_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder
