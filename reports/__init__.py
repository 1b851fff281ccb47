"""Reads finished runs only, and never imports torch: tables, statistics and figures belong here."""
