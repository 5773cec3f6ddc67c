"""Who holds which part of the state, when there are many machines?"""
