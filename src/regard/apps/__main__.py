"""``python -m regard.apps`` is the command line."""

from regard.apps.cli import main

main()
