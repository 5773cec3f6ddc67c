"""How fast is it, beside something else in the same run?"""
