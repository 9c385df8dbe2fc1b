"""What every verb shares that writes the rows of data files again without changing any."""
