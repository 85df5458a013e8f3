"""Running Weir itself: health, embedded servers, the supervisor."""
