"""Mistakes that the person at the keyboard can mend."""


class UserError(Exception):
    """Its message says what was expected, what came and what to change; the command line prints it alone."""
