"""Writing a DataFrame: Spark writes the files, delta_core commits them."""
