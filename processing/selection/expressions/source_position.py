"""Where in a user's file an error of a line is, and the errors that say so."""

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from hltnode.processing.selection.errors import LineError, TriggerConfigError

_HERE = Path(__file__).parents[1]


def source_position() -> str:
    """The file and line, outside of `selection`, that is running."""
    frame = _user_frame()
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def source_folder() -> Path:
    """The folder of the file, outside of `selection`, that is running."""
    return Path(_user_frame().f_code.co_filename).parent


def _user_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        Path(frame.f_code.co_filename).is_relative_to(_HERE) or frame.f_code.co_filename.startswith("<")
    ):
        frame = frame.f_back
    return frame


def fail(message: str) -> NoReturn:
    """Raises LineError with the source position."""
    raise LineError(f"{message} ({source_position()})")


OTHER_FUNCTIONS = (
    "the functions of math and numpy cannot be used on values of events: take log, exp, sqrt, ... of lines"
)


def made_of(function: Callable[[Any], Any], candidate: Any) -> Any:
    """The result of a user's function for a stand-in of a candidate. Raises LineError for all its errors."""
    try:
        return function(candidate)
    except TriggerConfigError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = OTHER_FUNCTIONS if "ufunc" in str(error) else f"{type(error).__name__}: {error}"
        raise LineError(f"{text} ({Path(frame.filename).name}:{frame.lineno})") from error
