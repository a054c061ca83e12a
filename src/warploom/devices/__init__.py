"""The catalog of devices: facts and limits by compute capability and product, each with its
source."""
