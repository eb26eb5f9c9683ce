"""What is on disk: format, versions, bodies, matching, secrets, other people's recordings. Knows no HTTP library."""
