"""What is known of applications by their names, as far as it matters for how text gets into them."""

import re
from typing import Literal, TypeAlias

from foundation.configs import load_config

#: "primary": terminals and their like, which paste by another chord, on X11 from PRIMARY; "completing": those that
#: complete, correct or pair what is typed while it is typed.
Kind: TypeAlias = Literal["primary", "completing"]


def is_kind(app: str, kind: Kind) -> bool:
    """Whether an application, by the name of its class or its identifier, is of a kind (configs/pasting.toml)."""
    return any(re.search(one, app, re.IGNORECASE) for one in load_config("pasting.toml")[kind])
