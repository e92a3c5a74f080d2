"""Groups of element roles, defined once for the whole project (`configs/roles.toml`)."""

from functools import cache

from foundation.configs import load_config


@cache
def role_group(name: str) -> frozenset[str]:
    """Return the roles of a group, including the groups that it adds."""
    group = load_config("roles.toml")[name]
    return frozenset(group["roles"]).union(*map(role_group, group.get("with", ())))
