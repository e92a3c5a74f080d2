"""What a web address says of itself, before it is visited: whose site, named by whom, and how much it carries away.

A page is asked for by its address, and whoever serves it reads all of that: an address that a model makes can carry out
what it has seen on the screen.
"""

import re
import unicodedata
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit

from agent.safety.situation import Fact
from foundation.configs import load_config

#: Characters that a path or a search may have without being much. A search of ten words has about 60.
_MUCH = 80
#: Parts of a host's name below which anybody may have a name.
_SHARED = frozenset({"co", "com", "org", "net", "ac", "gov", "edu", "or", "ne", "go", "gv"})
_OWN_NETWORK = (".local", ".lan", ".home", ".internal", ".box", ".localdomain", ".home.arpa", ".onion")
#: What browsers take off both ends: C0 control characters and the space.
_STRIPPED = "".join(map(chr, range(33)))
#: The part of an address that says whose it is, and what ends it.
_AUTHORITY = re.compile(r"([^/\\?#]*)([/\\?#]?)")
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:[/\\]", re.IGNORECASE)
_MAILBOX = re.compile(r"[^\s:@/\\?#]+@[^\s:@/\\?#]+")
_HOST = re.compile(r"localhost|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}")


def visited(line: str) -> str | None:
    """The address that a browser visits for a line in its address field, as the browser writes it; None for a search.

    Browsers take off white space, take backslashes for slashes, decode the host, and read 2130706433 as 127.0.0.1
    (WHATWG URL Standard).
    """
    text = re.sub(r"[\t\r\n]", "", line.strip(_STRIPPED))
    if text[:5].casefold() in ("http:", "https"):
        return _normal(text)
    authority, mark = _AUTHORITY.match(text).group(1, 2)  # type: ignore[union-attr]  # it matches anything
    if any(char.isspace() for char in authority) or _MAILBOX.fullmatch(text) or _OTHER_SCHEME.match(text):
        return None
    address = _normal(f"http://{text}")
    host = urlsplit(address).hostname if address else None
    if address is None or host is None or not any(char.isalnum() for char in host):
        return None
    # A word or number alone is searched for; one label goes on with a port, a user or a slash at its end.
    several = ("." in host or ":" in host) and not unicodedata.normalize("NFKC", authority).isalnum()
    marked = ":" in authority or "@" in authority or (bool(mark) and text.endswith(mark) and len(text) > len(mark))
    return address if several or marked or host == "localhost" else None


def is_plain(line: str) -> bool:
    """Whether a line is a host as people write it, and nothing but that: the browser goes where the eye reads."""
    bare = re.sub(r"^https?://|/$", "", line.strip().casefold())
    return site_of(visited(line) or "") == bare


def _normal(url: str) -> str | None:
    """The address in the form of the URL standard; None for text that is no address."""
    from ada_url import URL

    try:
        return str(URL(url).href)
    except ValueError:
        return None


def is_web_page(url: str) -> bool:
    """Whether a browser would fetch this address from a web server, and nothing in it is hidden."""
    return bool(_parts(url)) and url.isprintable() and not any(char.isspace() or char in '"\\<>' for char in url)


def site_of(url: str) -> str:
    """The host of an address; "" where it has none."""
    parts = _normal_parts(url)
    return "" if parts is None else (parts.hostname or "")


def facts_of(url: str, instruction: str) -> frozenset[Fact]:
    """Return the facts about an address, compared with the person's instruction."""
    parts = _normal_parts(url)
    if parts is None:
        return frozenset()
    found: set[Fact] = set()
    said = instruction.casefold()
    if _is_named(parts, said):
        found.add("named site")
    if (parts.scheme, parts.netloc, parts.path) in _searches():
        found.add("usual search")
    told = unquote(f"{parts.path}?{parts.query}#{parts.fragment}")
    # What stands in the instruction was given away by the person: it is not the model's to carry.
    left = [word for word in re.split(r"[\s/?&=#+._~-]+", unquote_plus(told)) if word.casefold() not in said]
    if parts.username or parts.password or sum(map(len, left)) > _MUCH or any(len(word) > _MUCH // 2 for word in left):
        found.add("carries much")
    return frozenset(found)


def names_site(url: str, instruction: str, written: str = "") -> bool:
    """Whether the person may have meant the site: the instruction has its host or its name.

    A host alone tells nobody anything, unless it is a number or of the own network, where routers and the like listen,
    or is written in disguise.
    """
    parts = _normal_parts(url)
    if parts is None:
        return True
    host = (parts.hostname or "").removeprefix("www.")
    labels, said = host.split("."), instruction.casefold()
    own = len(labels) == 1 or ":" in host or labels[-1][:1].isdigit() or host.endswith(_OWN_NETWORK)
    registered = labels[-3 if _SHARED & set(labels[-2:-1]) else -2 :]
    named = not own and registered[0] in re.findall(r"[\w-]+", said)
    alone = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    # Every further label of the host (here.example.org) reaches the owner of the site, and can carry data out.
    bare = alone and not own and labels == registered and is_plain(written or url)
    usual = (parts.scheme, parts.netloc, parts.path) in _searches()
    return usual or named or bare or _is_named(parts, said)


def _is_named(parts: SplitResult, said: str) -> bool:
    """Whether a text names the site: the host, or one that this is a part of (example.org for docs.example.org)."""
    host = parts.hostname or ""
    named = {one.removeprefix("www.") for one in _HOST.findall(said)}
    return any(host == one or host.endswith(f".{one}") for one in named)


def _searches() -> list[tuple[str, str, str]]:
    usual = urlsplit(load_config("web.toml")["search_address"])
    return [(usual.scheme, usual.netloc, usual.path)]


def _normal_parts(url: str) -> SplitResult | None:
    return _parts(_normal(url) or url)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        web = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        return parts if web else None
    except ValueError:  # a broken port, or a bracket that is not closed
        return None
