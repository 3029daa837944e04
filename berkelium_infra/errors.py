"""The base of every error that is the user's to mend."""


class UserError(Exception):
    """A mistake in a file, a flag or the environment; its text says where, what is wrong and what to write.

    The command line prints the text alone; a traceback would only hide it.
    """
