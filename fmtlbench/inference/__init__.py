"""Write predictions to files, score them, and draw them."""
