"""Parts that pages are made of: functions from values to components."""
