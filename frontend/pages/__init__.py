"""One module a page, or a tab of one: its layout and the callbacks that fill it."""
