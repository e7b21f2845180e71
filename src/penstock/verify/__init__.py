"""Do the evaluators agree?"""
