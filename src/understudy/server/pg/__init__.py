"""The door for programs that speak to Postgres."""
