"""Which files a query needs, and the rows in them."""
