"""Textures, surfaces and tensor maps as users create them."""
