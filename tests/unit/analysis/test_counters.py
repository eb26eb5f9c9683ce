import gzip
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentlatency.analysis import counters
from pytest_agentlatency.analysis.counters import CounterError, CounterMismatch, Memo, check_recorded, counter


class Calls:
    """Counts words, and remembers what it was asked."""

    id = "words-1"

    def __init__(self):
        self.asked = []

    def count(self, text):
        self.asked.append(text)
        return len(text.split())


@settings(deadline=None)
@given(st.text(), st.text())
def test_chars_never_counts_less_for_a_longer_text(text, more):
    assert counter("chars").count(text + more) >= counter("chars").count(text) >= 0


@settings(deadline=None)
@given(st.text(min_size=1))
def test_chars_sees_every_character_of_any_script(text):
    assert 1 <= counter("chars").count(text) <= len(text)


@pytest.mark.parametrize(
    ("text", "o200k"),
    [
        ("Where is my parcel? It was sent last Monday.", 11),
        ('{"city": "Paris", "unit": "celsius"}', 13),
        ("def add(a, b):\n    return a + b\n", 12),
        ("The quick brown fox jumps over the lazy dog", 9),
        ("2026-11-30T12:34:56Z", 13),
        ("東京都は日本の首都です", 7),
    ],
)
def test_chars_stays_near_a_real_vocabulary(text, o200k):
    """The second number of each is what o200k_base says."""
    assert abs(counter("chars").count(text) - o200k) <= max(4, 0.3 * o200k)


def test_the_default_counter_is_the_one_that_needs_nothing():
    assert counter().id == "chars-1"


def test_an_unknown_name_lists_what_is_allowed():
    with pytest.raises(CounterError, match=r"no token counter 'gpt': allowed are 'chars', 'tiktoken', 'claude'"):
        counter("gpt")


def test_an_option_that_a_counter_does_not_take_is_refused():
    with pytest.raises(CounterError, match="takes no option, got 'chars:fast'"):
        counter("chars:fast")


def test_a_counter_of_another_distribution_comes_from_its_entry_point(monkeypatch):
    point = SimpleNamespace(name="words", load=lambda: Calls)
    monkeypatch.setattr(counters, "entry_points", lambda **by: [point] if by.get("name", "words") == "words" else [])
    assert counter("words").count("a b c") == 3


def test_a_text_is_counted_once_however_often_it_comes():
    """Field note F8: two hundred turns that carry one history ask for each block once."""
    inner = Calls()
    memo = Memo(inner)
    assert {memo.count("the history of turn 1") for _ in range(200)} == {5}
    assert inner.asked == ["the history of turn 1"]


def test_a_run_recorded_with_another_counter_is_refused_with_the_fix():
    with pytest.raises(CounterMismatch) as caught:
        check_recorded("tiktoken-o200k_base", counter("chars"))
    assert "'tiktoken-o200k_base'" in str(caught.value)
    assert "'chars-1'" in str(caught.value)
    assert "latency_counter = 'tiktoken:o200k_base'" in str(caught.value)


def test_the_counter_of_the_recording_and_a_recording_without_one_are_accepted():
    check_recorded("chars-1", counter("chars"))
    check_recorded("", counter("chars"))


class TestTiktoken:
    @pytest.fixture(autouse=True)
    def _private(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)

    def test_without_the_packaged_vocabulary_it_says_what_to_install_and_downloads_nothing(self, monkeypatch, tmp_path):
        def absent(name):
            raise ModuleNotFoundError(name)

        monkeypatch.setattr(counters, "files", absent)
        with pytest.raises(CounterError, match=r"pip install 'pytest-agentlatency\[tiktoken\]'"):
            counter("tiktoken")
        assert not list(tmp_path.rglob("*"))

    def test_a_packaged_vocabulary_that_is_not_the_real_one_is_never_handed_on(self, monkeypatch, tmp_path):
        """tiktoken would take a wrong hash as a reason to download."""
        data = tmp_path / "data"
        data.mkdir()
        (data / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(b"IQ== 0\n"))
        monkeypatch.setattr(counters, "files", lambda _: tmp_path)
        with pytest.raises(CounterError, match="is not the one that tiktoken expects"):
            counter("tiktoken:cl100k_base")

    def test_an_unknown_vocabulary_is_named(self):
        with pytest.raises(CounterError, match="no tiktoken vocabulary 'p50k_base': allowed are 'o200k_base'"):
            counter("tiktoken:p50k_base")

    def test_it_counts_offline_from_the_packaged_vocabulary(self):
        """Field note C5: no socket, an empty cache, and the counts that OpenAI publishes for this text."""
        script = (
            "import socket\n"
            "def refuse(*_): raise AssertionError('network')\n"
            "socket.socket.connect = refuse\n"
            "from pytest_agentlatency.analysis.counters import counter\n"
            "ruler = counter('tiktoken:cl100k_base')\n"
            "print(ruler.id, ruler.count('tiktoken is great!'))\n"
        )
        for _ in range(2):  # unpacked, then found
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
            assert done.stdout.split() == ["tiktoken-cl100k_base", "6"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the refusal is for older interpreters")
def test_claude_on_an_older_python_says_which_counter_to_take():
    with pytest.raises(CounterError, match=r"needs Python 3\.12 or newer.*latency_counter = 'chars'"):
        counter("claude")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="ctok needs Python 3.12")
def test_claude_counts_a_text_without_its_frame():
    """A message `hi` is billed 8 tokens, 7 of which are the provider's frame (count_tokens)."""
    assert counter("claude").count("hi") == 1
    assert counter("claude").count("") == 0


def test_no_tokenizer_is_imported_before_it_is_asked_for():
    script = "import sys, pytest_agentlatency.analysis.tokens; print(sorted({'tiktoken', 'ctok'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
