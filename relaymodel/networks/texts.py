"""English text that every machine has."""


def english() -> str:
    """Return the language reference that comes with Python: about 450 000 characters of plain English.

    Raises `ModuleNotFoundError` for a Python that has come without its documentation.

    >>> english().count(" the ") > 1000
    True
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise ModuleNotFoundError(
            "this Python has come without its documentation (pydoc_data), which serves as English; give a text file"
        ) from None
    return "\n\n".join(topics[name] for name in sorted(topics))
