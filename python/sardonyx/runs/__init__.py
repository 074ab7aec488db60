"""Runs: where operations come from, jobs, their schedule, results and what is measured in them."""
