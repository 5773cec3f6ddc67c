"""What do we see?"""
