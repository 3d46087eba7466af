"""`python -m replifed` is the same as `replifed`."""

import sys

from replifed.cli import main

sys.exit(main())
