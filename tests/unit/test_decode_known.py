"""What decoders remember is bounded by its size."""

from analytics.decode.known import Known


def test_what_was_kept_is_found_until_sizes_add_up_to_the_limit_and_then_all_is_forgotten() -> None:
    known: Known[str, int] = Known(100)
    assert known.keep("a", 1, 60) == 1
    assert known.get("a") == 1
    known.keep("b", 2, 40)
    assert (known.get("a"), known.get("b"), len(known)) == (1, 2, 2)
    known.keep("c", 3, 1)
    assert (known.get("a"), known.get("b"), known.get("c"), len(known)) == (None, None, 3, 1)


def test_many_large_things_never_take_more_than_the_limit() -> None:
    known: Known[int, bytes] = Known(1_000)
    for number in range(100):
        known.keep(number, b"", 300)
        assert len(known) <= 3
