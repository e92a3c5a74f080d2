"""Labels in the desktop's language, read from message catalogues and desktop files."""

import struct

import pytest

from agent.literal.vocabulary import translations
from agent.literal.vocabulary.translations import application_names, labels_in, other_languages, read_catalogue


def _catalogue(messages: dict[str, str]) -> bytes:
    """A catalogue as gettext's tools write it."""
    texts = [(original.encode(), translation.encode()) for original, translation in sorted(messages.items())]
    tables = 28 + 16 * len(texts)
    strings, originals, translated = b"", b"", b""
    for index, table in ((0, "o"), (1, "t")):
        for pair in texts:
            entry = struct.pack("<II", len(pair[index]), tables + len(strings))
            strings += pair[index] + b"\0"
            originals, translated = (originals + entry, translated) if table == "o" else (originals, translated + entry)
    head = struct.pack("<7I", 0x950412DE, 0, len(texts), 28, 28 + 8 * len(texts), 0, 0)
    return head + originals + translated + strings


@pytest.fixture
def desktop(tmp_path, monkeypatch):
    """A desktop with one German catalogue."""
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    messages = {
        "": "Content-Type: text/plain; charset=UTF-8\n",
        "St_yle": "_Stil",
        "Window title\x04Style": "Darstellung",
        "_Save As…": "Speichern _unter …",
        "Number of workspaces:": "Anzahl der Arbeitsflächen:",
        "<b>Windows &amp; Panels</b>": "<b>Fenster &amp; Leisten</b>",
        "%d file\x00%d files": "%d Datei\x00%d Dateien",
        "Zoom": "",
        'Rename "%s"': "»%s« umbenennen",
        "%s (%s) - Text Editor": "%s (%s) – Texteditor",
        "%s: %s": "%s = %s",
        "Workspace %d": "Arbeitsfläche %d",
        "%1$s in %2$s": "%1$s von %2$s",
    }
    (folder / "xfce4-settings.mo").write_bytes(_catalogue(messages))
    (folder / "galculator.mo").write_bytes(_catalogue({"": messages[""], "Scientific Mode": "Wissenschaft"}))
    programs = tmp_path / "share/applications"
    programs.mkdir(parents=True)
    (programs / "org.example.Galculator.desktop").touch()
    monkeypatch.setattr(translations, "_FOLDERS", (tmp_path,))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "share"))
    caches = (translations._catalogues, translations._composed)
    for each in caches:
        each.cache_clear()
    yield tmp_path
    for each in caches:
        each.cache_clear()


def test_a_label_is_looked_for_as_it_is_and_as_it_is_translated(desktop):
    assert labels_in("Style", "xfce", ("de_DE", "de")) == ("Style", "Stil", "Darstellung")
    assert labels_in("save as", "xfce", ("de",)) == ("save as", "Speichern unter …")
    assert labels_in("Number of workspaces", "xfce", ("de",))[1] == "Anzahl der Arbeitsflächen:"
    assert labels_in("Windows & Panels", "xfce", ("de",))[1] == "Fenster & Leisten"
    assert labels_in("%d file", "xfce", ("de",))[1] == "%d Datei"


@pytest.mark.parametrize(
    ("label", "translation"),
    [
        ('Rename "a %s b.txt"', "»a %s b.txt« umbenennen"),
        ("* - Text Editor", "* (*) – Texteditor"),
        ("Workspace 12", "Arbeitsfläche 12"),
        ("Workspace *", "Arbeitsfläche *"),
    ],
)
def test_a_label_that_holds_another_text_is_translated_around_it(desktop, label, translation):
    assert labels_in(label, "xfce", ("de",)) == (label, translation)


def test_a_message_without_words_of_its_own_translates_nothing(desktop):
    assert labels_in("a: b", "xfce", ("de",)) == ("a: b",)
    assert labels_in("cat in hat", "xfce", ("de",)) == ("cat in hat",)


def test_an_installed_application_has_a_catalogue_of_its_name(desktop):
    assert labels_in("Scientific Mode", "xfce", ("de",)) == ("Scientific Mode", "Wissenschaft")


def test_a_label_without_a_translation_stays_alone(desktop):
    assert labels_in("Zoom", "xfce", ("de",)) == ("Zoom",)
    assert labels_in("Style", "xfce", ()) == ("Style",)


@pytest.mark.parametrize("data", [b"", b"\xde\x12\x04\x95", b"\xde\x12\x04\x95" + b"\xff" * 40, b"no catalogue at all"])
def test_a_broken_catalogue_has_no_labels(tmp_path, data):
    path = tmp_path / "broken.mo"
    path.write_bytes(data)
    assert read_catalogue(path) == {}


def test_languages_are_wanted_up_to_english():
    assert other_languages({"LANG": "de_AT.UTF-8", "LANGUAGE": "de_AT:fr:en:it"}) == ("de_AT", "de", "fr")
    assert other_languages({"LANG": "en_US.UTF-8"}) == ()


def test_an_application_has_its_name_in_the_language_first(tmp_path, monkeypatch):
    (tmp_path / "applications").mkdir()
    (tmp_path / "applications" / "look.desktop").write_text(
        "[Desktop Entry]\nName=Appearance\nName[de]=Erscheinungsbild\nName[fr]=Apparence\n"
        "[Desktop Action x]\nName=Other\n"
    )
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path))
    assert application_names("look", ("de_DE", "de")) == ("Erscheinungsbild", "Appearance")
    assert application_names("look", ()) == ("Appearance",)
    assert application_names("missing", ("de",)) == ()
    assert application_names("../look", ("de",)) == ()


def test_a_theme_has_its_name_in_the_language(desktop, tmp_path, monkeypatch):
    (tmp_path / "themes/Dusk").mkdir(parents=True)
    (tmp_path / "themes/Dusk/index.theme").write_text(
        "[X-GNOME-Metatheme]\nName=Dusk-dark\nName[de]=Dunkle Dämmerung\n"
    )
    (tmp_path / "icons/Pins").mkdir(parents=True)
    (tmp_path / "icons/Pins/index.theme").write_text("[Icon Theme]\nName=Pins\nName[de_DE]=Nadeln\n[16]\nName=x\n")
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path))
    translations._theme_names.cache_clear()
    assert labels_in("Dusk-dark", "xfce", ("de_DE", "de")) == ("Dusk-dark", "Dunkle Dämmerung")
    assert labels_in("pins", "xfce", ("de_DE", "de")) == ("pins", "Nadeln")
    translations._theme_names.cache_clear()


def test_a_mnemonic_in_brackets_is_shown_or_left_out(tmp_path):
    (tmp_path / "ja.mo").write_bytes(
        _catalogue({"": "Content-Type: text/plain; charset=UTF-8\n", "_Name:": "名前(_N):"})
    )
    assert read_catalogue(tmp_path / "ja.mo") == {"name": ["名前:", "名前(N):"]}
