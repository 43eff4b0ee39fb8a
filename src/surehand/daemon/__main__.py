"""`python -m surehand.daemon`: the daemon as clients start it."""

from __future__ import annotations

import sys

from surehand.daemon.entry import main

sys.exit(main())
