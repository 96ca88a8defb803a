"""A language model small enough for a taste of a study: random weights, a tokenizer of words."""

import re
from collections import Counter

from relaymodel.networks.texts import english


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
