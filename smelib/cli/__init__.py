"""`smelib attack`, `audit`, `reproduce` and `scoreboard`: the kernel from a terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

OUT_OF_MEMORY = ("can't allocate", "out of memory", "not enough memory")


def in_sentences(program: str, work: Callable[[], int]) -> int:
    """Do the work; bad input is a sentence on standard error and exit code 2."""
    from smelib.errors import InputError

    try:
        return work()
    except (InputError, FloatingPointError) as error:
        said = str(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        said = f"{error.filename or 'standard output, or a file'}: {error.strerror or error}."
    except (MemoryError, RuntimeError) as error:
        words = str(error).lower()
        if isinstance(error, RuntimeError) and not any(m in words for m in OUT_OF_MEMORY):
            raise
        said = "there is not enough memory for this; take fewer samples or restarts."
    print(f"{program}: {' '.join(said.split())}", file=sys.stderr)
    return 2


def main(argv: list[str] | None = None) -> int:
    """Run one command of the command line."""
    before = signal.getsignal(signal.SIGINT)
    try:
        return _answered(argv)
    finally:
        # Where the process ends here, Ctrl-C would only interrupt its tidying up.
        with suppress(ValueError, TypeError):  # not the main thread, or no handler of Python's
            signal.signal(signal.SIGINT, signal.SIG_IGN if argv is None else before)


def _answered(argv: list[str] | None) -> int:
    """The exit code of one command, after every ending has had its sentence."""
    try:
        try:
            return in_sentences("smelib", lambda: _obey(argv))
        finally:
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
    except KeyboardInterrupt:
        print("smelib: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _silence()
        return 128 + 13  # as a command that SIGPIPE ended: `smelib … | head` is no error
    except OSError as error:  # standard output is a file on a full disk
        _silence()
        print(f"smelib: standard output: {error.strerror or error}.", file=sys.stderr)
        return 2


def _silence() -> None:
    """Let nothing more be said: what is left in a buffer would fail again when Python ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
        return
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _obey(argv: list[str] | None) -> int:
    with _leaving_at_ctrl_c():  # imports torch, which may turn an interruption into anything
        from smelib.cli.parser import parser

        if hasattr(sys.stdout, "reconfigure"):  # a folder's name may not be text
            sys.stdout.reconfigure(errors="backslashreplace")
        args = parser().parse_args(argv)
        from smelib.cli.files import NotWrittenError
        from smelib.cli.inverting import say
        from smelib.devices import keep_freed_memory, use_free_threads

        keep_freed_memory()
        use_free_threads()
    try:
        result = args.run(args)
    except KeyboardInterrupt:
        kept = "finished jobs are kept, and the same command goes on"
        lost = "before anything was found; nothing was written"
        said = f"; {kept}" if args.command == "reproduce" else f" {lost}"
        print(f"smelib: interrupted{said}.", file=sys.stderr)
        return 130
    except NotWrittenError as error:
        say(error.result, args.json, None)
        raise
    if isinstance(result, int):
        return result
    say(result, args.json, args.out)
    if result["stopped"] == "interrupted":
        print(f"smelib: interrupted after {result['steps']} steps.", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _leaving_at_ctrl_c() -> Iterator[None]:
    """While the command starts, Ctrl-C ends it at once, with a sentence; nothing is under way.

    Where it is ignored on purpose, as for a command in the background of a script, it stays so.
    """

    def leave(*_: object) -> None:
        os.write(2, b"smelib: interrupted while starting; nothing was written.\n")
        os._exit(130)

    try:
        before = signal.getsignal(signal.SIGINT)
        heard = before is signal.default_int_handler
        if heard:
            signal.signal(signal.SIGINT, leave)
    except ValueError:  # not the main thread, which alone hears signals
        heard = False
    try:
        yield
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)
