"""Which delta goes first?"""
