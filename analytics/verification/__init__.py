"""Did what was predicted come true?"""
