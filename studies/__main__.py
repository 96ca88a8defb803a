"""`python -m studies NAME [options]`."""

import sys

from studies import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
