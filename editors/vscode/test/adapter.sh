#!/bin/sh
# Starts the adapter on the standard streams, as the extension does.
exec "${WARPLOOM:-warploom}" debug --dap
