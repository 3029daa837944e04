"""Why a recovery stops before it has changed anything."""


class NotRecoverable(Exception):
    """The text says what is in the way, for the user to read."""
