"""What is skipped when it does not fit?"""
