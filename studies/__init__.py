"""What makes the numbers of the README and the docs: `python -m studies` lists the studies, and runs one by its name.

A study is a module of this folder that has, beside a docstring which says what it shows:

- `MAKES`: what it writes, as the list shows it;
- `add_options(parser)`: its options;
- `main(options)`: does it;
- `taste(folder)`: arguments of a run that takes seconds and writes into a folder; the tests run it;
- `EXTRA`, for one that needs more than `pip install ".[test]"` brings: the extra of the package with what it needs.
"""

import pkgutil
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType


def studies() -> dict[str, ModuleType]:
    """Return the studies by name."""
    modules = {info.name: import_module(f"studies.{info.name}") for info in pkgutil.iter_modules(__path__)}
    return {name: module for name, module in modules.items() if hasattr(module, "MAKES")}


def listing() -> str:
    """Return a line for each study: its name, what it shows, what it makes."""
    lines = []
    for name, module in studies().items():
        shows = (module.__doc__ or "").partition("\n")[0].rstrip(".:")
        lines.append(f"{name:18s} {shows}\n{'':18s} -> {module.MAKES}")
    return "\n".join(lines)


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of a study's options."""
    module = studies()[name]
    parser = ArgumentParser(
        prog=f"python -m studies {name}", description=module.__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    module.add_options(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run `NAME [options]`, or list what there is; return the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"python -m studies NAME [options]; --help explains the options of each\n\n{listing()}")
        return 0
    name, *rest = arguments
    if name not in studies():
        print(f"NAME must be one of {', '.join(studies())}, got {name!r}")
        return 2
    return studies()[name].main(parser_of(name).parse_args(rest)) or 0
