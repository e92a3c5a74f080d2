"""The languages of an environment."""

import pytest

from agent.core.languages import languages_of


@pytest.mark.parametrize(
    ("environ", "languages"),
    [
        ({}, ()),
        ({"LANG": "C.UTF-8", "LANGUAGE": "de"}, ()),
        ({"LANG": "de_DE.UTF-8"}, ("de_DE", "de")),
        ({"LANG": "de_AT@euro"}, ("de_AT@euro", "de_AT", "de@euro", "de")),
        ({"LANG": "sr_RS.UTF-8@latin"}, ("sr_RS@latin", "sr_RS", "sr@latin", "sr")),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "fr_FR:en"}, ("fr_FR", "fr", "en", "en_US")),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "sv_SE.UTF-8"}, ("sv_SE", "sv")),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "sv_SE.UTF-8", "LC_ALL": "pt_BR.UTF-8"}, ("pt_BR", "pt")),
        ({"LANG": "../../etc"}, ()),
    ],
)
def test_the_languages_are_those_of_the_messages_best_first(environ, languages):
    assert languages_of(environ) == languages
