"""What a run is asked for: request, presets, resolving, one frozen value."""
