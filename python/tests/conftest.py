import signal

# A wait that does not end is an error of the test, with a trace, before ctest ends it.
signal.signal(signal.SIGINT, signal.default_int_handler)
