"""Records in the race detector what agents and units other than the threads' loads and stores
access: asynchronous copies, tensor memory (`tcgen05`), textures and surfaces. Waits and fences of
these are here, too."""
