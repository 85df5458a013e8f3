"""What every part of the API shares: tokens, scopes, rates, errors, pages, idempotency, entity tags."""
