"""``python -m amdflow``."""

from amdflow.cli.app import main

if __name__ == "__main__":
    main()
