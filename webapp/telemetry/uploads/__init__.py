"""Files that people upload: received on disk, read for a preview, stored as a job when they say so."""
