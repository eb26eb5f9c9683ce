"""The path of a URL. Refuses to know hosts: recordings redact them, gateways replace them."""


def path_of(url: str) -> str:
    """Path of an absolute or relative URL, without query and fragment; no input raises."""
    rest = url.partition("#")[0].partition("?")[0]
    _, found, after = rest.partition("://")
    if not found:
        return rest
    slash = after.find("/")
    return after[slash:] if slash >= 0 else "/"
