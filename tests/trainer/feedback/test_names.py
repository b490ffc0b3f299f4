import pytest

from trainer.feedback.names import distance, nearest


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("read", "reed", 1), ("ab", "ba", 2)],
)
def test_a_distance_counts_letters_added_dropped_or_changed(
    one: str, other: str, expected: int
) -> None:
    assert distance(one, other) == distance(other, one) == expected


def test_the_nearest_come_first_each_once_and_no_more_than_asked() -> None:
    names = ["write_file", "read_file", "read_files", "read_file", "search"]
    assert nearest("reed_file", names, limit=2) == ("read_file", "read_files")
