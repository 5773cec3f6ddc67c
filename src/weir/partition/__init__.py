"""Where do rows live, when there are many machines?"""
