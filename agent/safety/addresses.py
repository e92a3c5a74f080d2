"""What a web address reveals before it is visited: the site, whether the user named it, and how much data it carries.

The server reads the whole address, so an address made by a model can leak what the model saw on the screen.
"""

import re
import unicodedata
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit

from agent.safety.situation import Fact
from foundation.configs import load_config

#: Most characters of a path or a search that do not count as much data. A search of ten words has about 60.
_MUCH = 80
#: Second-level labels below which anyone can register a name.
_SHARED = frozenset({"co", "com", "org", "net", "ac", "gov", "edu", "or", "ne", "go", "gv"})
_OWN_NETWORK = (".local", ".lan", ".home", ".internal", ".box", ".localdomain", ".home.arpa", ".onion")
#: What browsers strip from both ends: C0 control characters and the space.
_STRIPPED = "".join(map(chr, range(33)))
#: The authority of an address, and the delimiter after it.
_AUTHORITY = re.compile(r"([^/\\?#]*)([/\\?#]?)")
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:[/\\]", re.IGNORECASE)
_MAILBOX = re.compile(r"[^\s:@/\\?#]+@[^\s:@/\\?#]+")
#: An address of a script that does nothing.
_NO_SCRIPT = re.compile(r"javascript:\W*(?:void\W*0?)?\W*", re.IGNORECASE)
_HOST = re.compile(r"localhost|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}")


def visited(line: str) -> str | None:
    """Return the normalized address that a browser visits for a line in its address field; None if it searches instead.

    Browsers strip white space, read backslashes as slashes, decode the host, and read 2130706433 as 127.0.0.1 (WHATWG
    URL Standard).
    """
    text = re.sub(r"[\t\r\n]", "", line.strip(_STRIPPED))
    if text[:5].casefold() in ("http:", "https"):
        return _normal(text)
    authority, mark = _AUTHORITY.match(text).group(1, 2)  # type: ignore[union-attr]  # it matches any text
    if any(char.isspace() for char in authority) or _MAILBOX.fullmatch(text) or _OTHER_SCHEME.match(text):
        return None
    address = _normal(f"http://{text}")
    host = urlsplit(address).hostname if address else None
    if address is None or host is None or not any(char.isalnum() for char in host):
        return None
    # Browsers search for a single word or number. A single label is a host only with a port, a user or a trailing
    # slash.
    several = ("." in host or ":" in host) and not unicodedata.normalize("NFKC", authority).isalnum()
    marked = ":" in authority or "@" in authority or (bool(mark) and text.endswith(mark) and len(text) > len(mark))
    return address if several or marked or host == "localhost" else None


def is_plain(line: str) -> bool:
    """Whether a line is just a host as people write it, so that the browser visits the host that readers see."""
    bare = re.sub(r"^https?://|/$", "", line.strip().casefold())
    return site_of(visited(line) or "") == bare


def _normal(url: str) -> str | None:
    """Return the address in the form of the URL standard, or None if the text is not an address."""
    from ada_url import URL

    try:
        return str(URL(url).href)
    except ValueError:
        return None


def is_web_page(url: str) -> bool:
    """Whether a browser would fetch this address from a web server, and the address has no invisible parts."""
    return bool(_parts(url)) and url.isprintable() and not any(char.isspace() or char in '"\\<>' for char in url)


def site_of(url: str) -> str:
    """Return the host of an address, or "" if it has none."""
    parts = _normal_parts(url)
    return "" if parts is None else (parts.hostname or "")


def is_script(url: str) -> bool:
    """Whether a link leads nowhere by its address, so that only a script can make it do anything."""
    return url.endswith("#") or _NO_SCRIPT.fullmatch(url) is not None


def shows_other_site(text: str, url: str) -> bool:
    """Whether a link's text is the address of another site than the site that the link leads to."""
    text_site, leads = (site_of(one).removeprefix("www.") for one in (visited(text) or "", url))
    written = text.strip().casefold().startswith(("http://", "https://", "www."))
    return bool(written and text_site and leads and text_site != leads and not leads.endswith(f".{text_site}"))


def leaves_site(url: str, site: str) -> bool:
    """Whether an address belongs to another owner than the site that shows it: docs.example.org is example.org's."""
    leads = site_of(url)
    return bool(leads and site) and _registered(leads) != _registered(site)


def facts_of(url: str, instruction: str) -> frozenset[Fact]:
    """Return the facts about an address, compared with the user's instruction."""
    parts = _normal_parts(url)
    if parts is None:
        return frozenset()
    found: set[Fact] = set()
    wish = instruction.casefold()
    if _is_named(parts, wish):
        found.add("named site")
    if (parts.scheme, parts.netloc, parts.path) in _searches():
        found.add("usual search")
    data = unquote(f"{parts.path}?{parts.query}#{parts.fragment}")
    # Words of the instruction do not count: the user disclosed them.
    left = [word for word in re.split(r"[\s/?&=#+._~-]+", unquote_plus(data)) if word.casefold() not in wish]
    if parts.username or parts.password or sum(map(len, left)) > _MUCH or any(len(word) > _MUCH // 2 for word in left):
        found.add("carries much")
    return frozenset(found)


def names_site(url: str, instruction: str, written: str = "") -> bool:
    """Whether the user may have meant the site: the instruction contains its host or its name.

    A bare host also passes, because it carries no data. Exceptions are IP addresses and hosts of the local network,
    such as routers, and hosts written in disguise.
    """
    parts = _normal_parts(url)
    if parts is None:
        return True
    host = (parts.hostname or "").removeprefix("www.")
    labels, wish = host.split("."), instruction.casefold()
    own = len(labels) == 1 or ":" in host or labels[-1][:1].isdigit() or host.endswith(_OWN_NETWORK)
    registered = _registered(host)
    named = not own and registered[0] in re.findall(r"[\w-]+", wish)
    alone = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    # Additional host labels (here.example.org) reach the site's owner and can leak data.
    bare = alone and not own and labels == registered and is_plain(written or url)
    usual = (parts.scheme, parts.netloc, parts.path) in _searches()
    return usual or named or bare or _is_named(parts, wish)


def _registered(host: str) -> list[str]:
    """Return the labels of the part of a host that is registered: example.co.uk of docs.example.co.uk."""
    labels = host.split(".")
    return labels[-3 if _SHARED & set(labels[-2:-1]) else -2 :]


def _is_named(parts: SplitResult, text: str) -> bool:
    """Whether a text names the site: its host, or a parent domain (example.org for docs.example.org)."""
    host = parts.hostname or ""
    named = {one.removeprefix("www.") for one in _HOST.findall(text)}
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
    except ValueError:  # an invalid port or an unclosed bracket
        return None
