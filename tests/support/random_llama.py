"""A language model with random weights and a real architecture, written as a GGUF file.

Owns the vocabulary, the chat template and the tensors. What such a model costs is real: prefill, decode and key-value
cache have the price of a trained model of this shape. What it says is not: it calls a tool whenever it is offered one,
with words for arguments, and writes words without end once the last message says `answer now` or offers no tool.

Everything comes from the standard library and a seed: the same Python gives the same file, byte for byte. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 3).
"""

import random
import re
import struct
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

ANSWER_NOW = "answer now"
"""Said in the last message, it makes the model write text although tools are offered."""

_TOOL_CALL, _END = "<tool_call>", "<|im_end|>"
_CONTROL = ("<|endoftext|>", "<|im_start|>", _END)
_DEFINED = (_TOOL_CALL, "</tool_call>", "<tools>", "</tools>", "<tool_response>", "</tool_response>")
_BLOCK = 32  # weights that share one scale in Q8_0
_SPREAD = 73.9  # standard deviation of a random signed byte

# Tools come after the system prompt, a call is JSON between <tool_call> tags: the Hermes convention, which the server
# knows. The line break that ends the generation prompt is what makes this model call a tool; a colon makes it write.
_TEMPLATE = """\
{%- set turn = namespace(ending='\\n' if tools else ':') -%}
{%- if tools or messages[0].role == 'system' -%}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content }}{% endif %}
{%- if tools %}
{{- '\\n\\nYou can call these tools:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{% endfor %}
{{- '\\n</tools>\\nCall one as a JSON object between tags:\\n<tool_call>\\n' }}
{{- '{"name": <function-name>, "arguments": <args-json-object>}\\n</tool_call>' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- if message.tool_calls %}
{{- '<|im_start|>assistant\\n' }}
{%- for call in message.tool_calls %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{%- else %}
{{- '<|im_start|>assistant:' + message.content }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif not (loop.first and message.role == 'system') %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- if 'ANSWER NOW' in message.content | lower %}{%- set turn.ending = ':' %}{% endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant' + turn.ending }}{% endif %}
""".replace("ANSWER NOW", ANSWER_NOW)


@dataclass(frozen=True)
class RandomLlama:
    """A model's shape and seed. The defaults give 17.6 million weights in 19 MB.

    Attention is narrower than the feed-forward part, so that the context at which attention costs as much as the
    rest is thousands of tokens, as in models of real size.
    """

    layers: int = 4
    width: int = 512
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 32
    inner: int = 2048
    vocabulary: int = 4096
    context: int = 32768
    seed: int = 111

    def write(self, path: Path) -> None:
        """Write the file. Takes a few seconds."""
        tensors = list(self._tensors())
        keys = [_string(key) + _typed(value) for key, value in self._keys.items()]
        head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(keys)), *keys]
        offset = 0
        for name, shape, kind, data in tensors:
            head.append(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
            offset += len(data) + -len(data) % _BLOCK
        with path.open("wb") as file:
            written = file.write(b"".join(head))
            file.write(bytes(-written % _BLOCK))
            for *_, data in tensors:
                file.write(data + bytes(-len(data) % _BLOCK))

    @cached_property
    def _learned(self) -> tuple[list[str], list[str]]:
        return learn(_sources(), self.vocabulary - len(_CONTROL) - len(_DEFINED))

    @property
    def tokens(self) -> list[str]:
        """The vocabulary, in the order of the ids."""
        return [*self._learned[0], *_CONTROL, *_DEFINED]

    @property
    def _keys(self) -> dict[str, object]:
        plain = len(self.tokens) - len(_CONTROL) - len(_DEFINED)
        return {
            "general.architecture": "llama",
            "general.name": f"random-llama-{self.layers}x{self.width}-seed{self.seed}",
            "general.file_type": 7,  # mostly Q8_0
            "llama.context_length": self.context,
            "llama.embedding_length": self.width,
            "llama.block_count": self.layers,
            "llama.feed_forward_length": self.inner,
            "llama.attention.head_count": self.heads,
            "llama.attention.head_count_kv": self.kv_heads,
            "llama.attention.key_length": self.head_width,
            "llama.attention.value_length": self.head_width,
            "llama.attention.layer_norm_rms_epsilon": 1e-5,
            "llama.rope.dimension_count": self.head_width,
            "llama.rope.freq_base": 10000.0,
            "llama.vocab_size": len(self.tokens),
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": [1] * plain + [3] * len(_CONTROL) + [4] * len(_DEFINED),
            "tokenizer.ggml.merges": self._learned[1],
            "tokenizer.ggml.bos_token_id": self.tokens.index(_CONTROL[0]),
            "tokenizer.ggml.eos_token_id": self.tokens.index(_END),
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.chat_template": _TEMPLATE,
        }

    def _tensors(self) -> Iterator[tuple[str, tuple[int, ...], int, bytes]]:
        """Name, shape (rows last), type and data of each tensor."""
        dice = random.Random(self.seed)  # noqa: S311  # weights, not secrets
        width, inner = self.width, self.inner
        queries, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        ones = struct.pack("<f", 1.0) * width
        embedding = [_with_first(_row(dice, width, 1.0), 4.0) for _ in self.tokens]
        yield "token_embd.weight", (width, len(self.tokens)), 8, b"".join(embedding)
        for layer in range(self.layers):
            matrices = {
                "attn_q": (width, queries, 1.0), "attn_k": (width, keys, 1.0), "attn_v": (width, keys, 1.0),
                "attn_output": (queries, width, 0.05), "ffn_gate": (width, inner, 1.0), "ffn_up": (width, inner, 1.0),
                "ffn_down": (inner, width, 0.05),
            }  # fmt: skip
            yield f"blk.{layer}.attn_norm.weight", (width,), 0, ones
            yield f"blk.{layer}.ffn_norm.weight", (width,), 0, ones
            for name, (columns, rows, gain) in matrices.items():
                data = _row(dice, columns * rows, gain / columns**0.5)
                yield f"blk.{layer}.{name}.weight", (columns, rows), 8, data
        yield "output_norm.weight", (width,), 0, ones
        yield "output.weight", (width, len(self.tokens)), 8, b"".join(self._output(dice, embedding))

    def _output(self, dice: random.Random, embedding: list[bytes]) -> Iterator[bytes]:
        """One row a token. The first weight is its bias, because every embedding begins with the same number."""
        at = {token: index for index, token in enumerate(self.tokens)}
        follows = {_TOOL_CALL: "\u010a", "\u010a": _TOOL_CALL, _END: "</tool_call>"}
        for token in self.tokens:
            if token in follows:
                before = embedding[at[follows[token]]]
                yield _with_first(_scaled(before, 0.1), -0.75 if token == _END else -2.5)
            elif re.fullmatch(r"\u0120?[A-Za-z]{2,}", token):
                yield _with_first(_row(dice, self.width, 0.05), 0.0)
            else:
                yield _with_first(bytes(len(embedding[0])), _bias(token))


def _bias(token: str) -> float:
    """How little a token that is no word is wanted: what closes a JSON value is taken before blanks and digits."""
    if token == "</tool_call>":
        return 0.0
    if token in {'"', "}", ",", '",', '"}'}:
        return -0.25
    if token in _CONTROL or token in _DEFINED:
        return -3.0
    return -2.0 if re.search(r"[\u0120\u010a\u0109\u010d]", token) else -1.0 if re.search(r"\d", token) else -0.5


def _row(dice: random.Random, count: int, deviation: float) -> bytes:
    """Random weights in Q8_0: for every 32 a scale (half precision) and their signed bytes."""
    scale = struct.pack("<e", deviation / _SPREAD)
    data = dice.randbytes(count)
    return b"".join(scale + data[at : at + _BLOCK] for at in range(0, count, _BLOCK))


def _with_first(row: bytes, value: float) -> bytes:
    """The row with its first block set to a value and 31 zeros."""
    first = struct.pack("<eb", abs(value) / 127, 127 if value > 0 else -127) if value else bytes(3)
    return first + bytes(_BLOCK - 1) + row[_BLOCK + 2 :]


def _scaled(row: bytes, factor: float) -> bytes:
    """The row times a factor."""
    size = _BLOCK + 2
    blocks = (row[at : at + size] for at in range(0, len(row), size))
    return b"".join(struct.pack("<e", factor * struct.unpack("<e", each[:2])[0]) + each[2:] for each in blocks)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: object) -> bytes:
    kind, data = _plain(value)
    return struct.pack("<I", kind) + data


def _plain(value: object) -> tuple[int, bytes]:
    """GGUF's number of the value's type, and its bytes."""
    match value:
        case bool():
            return 7, struct.pack("<?", value)
        case int():
            return 4, struct.pack("<I", value)
        case float():
            return 6, struct.pack("<f", value)
        case str():
            return 8, _string(value)
        case [first, *_]:
            kind = _plain(first)[0]
            return 9, struct.pack("<IQ", kind, len(value)) + b"".join(_plain(each)[1] for each in value)
    msg = f"no GGUF type for {value!r}"
    raise TypeError(msg)


def _sources() -> Iterator[str]:
    """English and code that every Python has at hand."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:60]:
        yield path.read_text(encoding="utf-8", errors="replace")


def learn(texts: Iterator[str], size: int) -> tuple[list[str], list[str]]:
    """Learn a byte-level BPE vocabulary of a size: its tokens, and its merges in the order in which they were made."""
    letters = _byte_letters()
    words = Counter(
        "".join(letters[byte] for byte in word.encode())
        for text in texts
        for word in re.findall(r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+", text)
    )
    # Words that are hardly ever seen teach nothing, and they are most of them.
    spelled = [(list(word), count) for word, count in words.items() if count > 2]
    pairs: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], set[int]] = defaultdict(set)
    for index, (word, count) in enumerate(spelled):
        _tell(word, count, index, pairs, places)
    tokens, merges = sorted(letters.values()), []
    while len(tokens) < size:
        pair, _ = max(pairs.items(), key=itemgetter(1, 0))
        tokens.append("".join(pair))
        merges.append(" ".join(pair))
        for index in sorted(places.pop(pair)):
            word, count = spelled[index]
            _tell(word, -count, index, pairs, places)
            _merge(word, pair)
            _tell(word, count, index, pairs, places)
        del pairs[pair]
    return tokens, merges


def _tell(
    word: list[str], count: int, index: int, pairs: Counter[tuple[str, str]], places: dict[tuple[str, str], set[int]]
) -> None:
    """Add a word's neighbours to the counts, or take them away."""
    for pair in pairwise(word):
        pairs[pair] += count
        if count > 0:
            places[pair].add(index)


def _merge(word: list[str], pair: tuple[str, str]) -> None:
    at = 0
    while at < len(word) - 1:
        if (word[at], word[at + 1]) == pair:
            word[at : at + 2] = ["".join(pair)]
        at += 1


def _byte_letters() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}
