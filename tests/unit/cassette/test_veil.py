"""What is shown holds no secret and no part of one."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from pytest_agentlatency.cassette.secrets import Learned
from pytest_agentlatency.cassette.veil import PIECE, Veil

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GATEWAYS = "our-gateway-9f3a7c21e5"
BODY = f'{{"system": "The token is {TOKEN}\\nand the key {GATEWAYS}."}}'.encode()


def test_a_text_without_secrets_is_itself():
    assert Veil.of(Learned([GATEWAYS]), [BODY]).over("2 prefix breaks\n  at turn 2") == "2 prefix breaks\n  at turn 2"


def test_a_secret_is_hidden_and_what_stands_around_it_is_not():
    text = f"first\nGET /bot/{TOKEN}/send by {GATEWAYS}\nlast"
    shown = Veil(Learned([GATEWAYS])).over(text)
    assert shown == f"first\nGET /bot/{'•' * len(TOKEN)}/send by {'•' * len(GATEWAYS)}\nlast"


def test_an_encoded_one_takes_its_line_only():
    text = f"first\nbasic {b64encode(f'user:{TOKEN}'.encode()).decode()}\nlast"
    first, hidden, last = Veil().over(text).splitlines()
    assert (first, set(hidden), last) == ("first", {"•"}, "last")


@given(st.integers(0, len(TOKEN)), st.integers(0, len(TOKEN)))
def test_no_part_of_a_secret_of_the_run_is_shown(one, other):
    """A snippet begins and ends anywhere."""
    part = TOKEN[min(one, other) : max(one, other)]
    shown = Veil.of(Learned(), [BODY]).over(f"became '{part}'")
    assert shown == f"became '{part if len(part) < PIECE else '•' * len(part)}'"


def test_its_repr_shows_nothing():
    assert TOKEN not in repr(Veil.of(Learned([TOKEN]), [BODY]))
