"""The debugger in a terminal, with the commands of cuda-gdb."""
