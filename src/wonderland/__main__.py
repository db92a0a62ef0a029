"""`python -m wonderland` is the command `wonderland`."""

import sys

from .cli import main

sys.exit(main())
