"""`python -m relaymodel` is the command line."""

import sys

from relaymodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
