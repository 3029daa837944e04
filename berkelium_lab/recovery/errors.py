"""Why a recovery stops."""


class NotRecoverable(Exception):
    """The text says what is in the way, for the user to read."""
