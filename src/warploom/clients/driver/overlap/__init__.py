"""Lets work of one stream go on while a kernel of another waits for it: a kernel that polls memory
runs in a thread, and the call that launched it returns when it has ended or polls in vain. What has
to follow such a kernel (the rest of its stream, streams that wait for its events) is performed when
it has ended; all other work is done when it is asked for."""
