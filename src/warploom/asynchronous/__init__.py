"""Executes PTX's asynchronous instructions for both machines (interpreter and compiled kernels):
tensor copies (TMA), tensor memory (`tcgen05`), mbarriers, and copies that are performed only at the
wait for them."""
