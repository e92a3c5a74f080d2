"""What the person reads of an error of the system."""

from foundation.errors import UsageError


def test_a_systems_error_is_told_in_words_and_names_its_path_once():
    try:
        open("/nope")  # noqa: PTH123, SIM115
    except OSError as error:
        assert UsageError(f"The policy /nope cannot be read: {error}.").what == (
            "The policy /nope cannot be read: No such file or directory."
        )
        assert UsageError(f"The policy cannot be read: {error}.").what == (
            "The policy cannot be read: No such file or directory: '/nope'."
        )
