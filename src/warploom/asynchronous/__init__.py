"""Executes asynchronous instructions: tensor copies (TMA), tensor memory (`tcgen05`), mbarriers,
and copies that complete only at the wait for them.
"""
