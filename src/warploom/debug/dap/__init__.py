"""The debugger as a server of the Debug Adapter Protocol, for editors."""
