"""The program: its commands, and how it ends."""

import difflib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, exceptions

from relaymodel import __version__
from relaymodel.checks import one_line, show
from relaymodel.cli.certificate import certify
from relaymodel.cli.claims import reproduce
from relaymodel.cli.control import control
from relaymodel.cli.curves import exponent
from relaymodel.cli.fitting import fit
from relaymodel.cli.models import bound, influence, simulate
from relaymodel.cli.networks import measure
from relaymodel.cli.options import ARGUMENTS
from relaymodel.cli.page import Page
from relaymodel.cli.sliders import explore
from relaymodel.cli.sweep import sweep
from relaymodel.cli.symbols import derive
from relaymodel.cli.training import train
from relaymodel.cli.wording import as_typed
from relaymodel.progress import Clock

WELCOME = f"""\
relaymodel {__version__}: how much does a transformer remember of its prompt?

Try one of these first:

  relaymodel influence                      how the prompt's influence decays, with its local exponent
  relaymodel derive --depth 2 --steps       the closed form, derived step by step
  relaymodel simulate --csv curve.csv       the recursion itself; then: relaymodel exponent curve.csv
  relaymodel explore curve.csv              a page with sliders, and your curve on it
  relaymodel measure untrained-numpy        the same on a real network, in a minute or so
  relaymodel reproduce --out report         the whole argument with figures, in about a minute

relaymodel --help lists all commands, relaymodel COMMAND --help explains one.
"""

UNUSABLE = 2  # as shells and argparse have it
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE

app = App(
    "relaymodel",
    help="How much does a transformer remember of its prompt?  The linear relay model, solved exactly.",
    help_format="plaintext",
    help_formatter=Page(),
    group_arguments=ARGUMENTS,
    version=f"relaymodel {__version__}",
    suppress_keyboard_interrupt=False,
)
COMMANDS = (
    derive,
    influence,
    sweep,
    simulate,
    exponent,
    fit,
    bound,
    control,
    measure,
    certify,
    train,
    explore,
    reproduce,
)
for command in COMMANDS:
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done.  1: a claim failed.  2: unusable input, with one line on standard error that says what is wrong, where,
    and what to do instead.  130: interrupted.  141: nobody reads the output any more.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Greek must not fail a report
    if sys.stderr is None:  # started with it closed: print would take standard output instead
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # as long as the process
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        status = _run(given)
        _flush()
    except (BrokenPipeError, SystemExit):  # the second from what prints help, where nobody reads it
        status = BROKEN_PIPE
    except KeyboardInterrupt:
        below_the_bar = "\n" * sys.stderr.isatty()
        print(f"{below_the_bar}relaymodel: interrupted", file=sys.stderr)
        status = INTERRUPTED
    except Exception as error:
        print(f"relaymodel: {_one_line(error, given)}", file=sys.stderr)
        status = UNUSABLE
    if status:
        _abandon_output()
    return status


def _run(arguments: list[str]) -> int:
    """Parse and execute; return the exit code, or raise what the command raised."""
    if not arguments:
        print(WELCOME, end="")
        return 0
    try:
        command, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise ValueError(_usage(error, arguments)) from None
    Clock.start(f"relaymodel {command.__name__}")
    try:
        return command(*bound.args, **bound.kwargs) or 0
    finally:
        Clock.stop()


def _usage(error: CycloptsError, arguments: Sequence[str]) -> str:
    """Return what is wrong with options or arguments."""
    known = next((name for name in arguments[:1] if name in app), None)
    name = "" if error.argument is None else error.argument.name
    if isinstance(error, exceptions.CoercionError):
        return str(error.__cause__ or error.msg or error)  # from the option's own parser
    if isinstance(error, exceptions.UnknownCommandError):
        message = f"No such command {show(arguments[0])}{_meant(arguments[0], _names())}"
    elif isinstance(error, exceptions.UnknownOptionError):
        option = error.token.keyword or error.token.value
        having = [command.__name__ for command in COMMANDS if option in _options(command.__name__)]
        found = f"; it is one of {', '.join(having)}" if having else _meant(option, _options(known or ""))
        message = f"No such option {one_line(option)}{found}"
    elif isinstance(error, exceptions.MissingArgumentError):
        given = any(word.partition("=")[0] == name for word in arguments)
        message = f"Option {name} requires an argument" if given else f"Missing argument {name!r}"
    elif isinstance(error, exceptions.UnusedCliTokensError):
        extra = one_line(" ".join(error.unused_tokens or [])) or "''"
        readers = "; curves in files are for exponent, fit and explore" if Path(extra).suffix else ""
        message = f"Got unexpected extra argument {extra}{readers}"
    else:
        message = str(error)
    return f"{message.rstrip('.')}; see {'relaymodel' if known is None else f'relaymodel {known}'} --help"


def _one_line(error: Exception, arguments: Sequence[str]) -> str:
    """Return an error's message in one line, with the file first if the system names one."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename or 'cannot write'}: {error.strerror}"
    elif isinstance(error, MemoryError):
        message = f"the memory does not suffice{f' ({message})' if message else ''}; ask for less at once"
    elif isinstance(error, RecursionError):
        message = "the input is nested too deeply"
    elif not isinstance(error, (ValueError, TypeError, OSError, ArithmeticError, ImportError)):
        message = f"unexpected {type(error).__name__}: {message}"
    return (
        one_line(as_typed(message, arguments, _options(arguments[0]) if arguments else set())) or type(error).__name__
    )


def _options(command: str) -> set[str]:
    """Return the names of a command's options, none for no command."""
    if command not in _names():
        return set()
    return {name for argument in app[command].assemble_argument_collection() for name in argument.names}


def _names() -> list[str]:
    return [command.__name__ for command in COMMANDS]


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _abandon_output() -> None:
    """Write what was printed; if that is impossible, keep the interpreter from trying once more, loudly, at its end."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush() -> None:
    if sys.stdout is not None:  # it is None where the program was started with it closed
        sys.stdout.flush()
