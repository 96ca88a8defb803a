"""How --help looks: plain text in two columns, on a terminal as in a file."""

import textwrap
from typing import TYPE_CHECKING, Any

from cyclopts.help import PlainFormatter

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

PAGE_WIDTH = 110  # columns: longer lines are hard to read
LABEL_WIDTH = 24  # columns for the names of options; longer ones have a line of their own


class Page(PlainFormatter):
    """Groups of options and their explanations."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: Any) -> None:  # noqa: ARG002
        """Print a group."""
        if not panel.entries:
            return
        width = min(PAGE_WIDTH, console.width)
        lines = [f"{panel.title}:"]
        for entry in panel.entries:
            notes = [f"[default: {entry.default}]"] * bool(entry.default) + ["[required]"] * bool(entry.required)
            labels = "  " + ", ".join(entry.display_labels_with_metavar)
            text = " ".join([_text(entry.description), *notes])
            body = textwrap.wrap(text, width - LABEL_WIDTH - 2, break_long_words=False) or [""]
            if len(labels) > LABEL_WIDTH:
                lines.append(labels)
                labels = ""
            lines += [
                f"{labels:<{LABEL_WIDTH}}  {body[0]}".rstrip(),
                *(" " * (LABEL_WIDTH + 2) + line for line in body[1:]),
            ]
        self._print_plain(console, "\n".join([*lines, ""]))

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:  # noqa: ARG002
        """Print what a command does, in paragraphs."""
        for paragraph in _text(description).split("\n\n"):
            lines = textwrap.wrap(paragraph, min(PAGE_WIDTH, console.width), break_long_words=False)
            self._print_plain(console, "\n".join([*lines, ""]))


def _text(rendered: Any) -> str:
    """Return plain text of what the parser hands to a formatter."""
    if rendered is None:
        return ""
    plain = getattr(rendered, "plain", None) or getattr(getattr(rendered, "primary_renderable", None), "plain", None)
    return str(rendered if plain is None else plain).strip()
