"""What `scripts/demo` runs: the story, with a Ctrl-C that is quiet from the first moment on."""

from __future__ import annotations

import signal

# The imports of the story take a third of a second, in which there is nothing to end and nothing to tell.
signal.signal(signal.SIGINT, signal.SIG_DFL)

if __name__ == "__main__":
    from story import main

    raise SystemExit(main())
