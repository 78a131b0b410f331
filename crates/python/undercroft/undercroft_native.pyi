"""What the library hands out; use undercroft itself."""

from typing import Any

__version__: str

def __getattr__(name: str) -> Any: ...
