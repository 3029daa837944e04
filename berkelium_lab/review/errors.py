"""What keeps a review from being made."""

from berkelium_infra.errors import UserError


class ReviewError(UserError):
    """Nothing can be compared; the text says why and what to do."""
