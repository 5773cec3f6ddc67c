"""How does one micro-batch run, on any engine?"""
