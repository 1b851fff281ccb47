"""The papers: their tables and claims as data, how they are made of runs, and runs beside them. No torch."""
