"""`python -m smelib.cli`."""

import sys

from smelib.cli import main

if __name__ == "__main__":
    sys.exit(main())
