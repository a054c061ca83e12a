"""What devices are: facts and limits by compute capability and product, each with its source."""
