"""The program: python -m cleat, and the command `cleat` of a wheel."""
import sys

from ._library import Error
from ._program import replace_process


def main() -> None:
    try:
        replace_process(sys.argv[1:])
    except (Error, OSError) as error:
        sys.exit(f"cleat: {error}")


if __name__ == "__main__":
    main()
