"""Reading sources that do not push: files that grow, endpoints that answer."""
