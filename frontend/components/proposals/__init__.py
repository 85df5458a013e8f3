"""What all pages show of a proposal: words, card, buttons, what became of it, and its history."""
