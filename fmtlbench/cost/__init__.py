"""What a run costs: time, energy, carbon, memory, parameters, operations. Never the reason a run dies."""
