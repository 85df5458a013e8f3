"""What changes running jobs: one module an engine, all alike (``base.Engine``)."""
