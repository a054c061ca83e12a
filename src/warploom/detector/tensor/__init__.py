"""Records asynchronous copies, tensor memory and textures in the race detector."""
