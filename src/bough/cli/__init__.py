"""The command line."""


def main() -> None:
    """Run `bough`."""
    # Imported here, so that importing the package for its pieces never loads the command line.
    from bough.cli.app import app

    app()
