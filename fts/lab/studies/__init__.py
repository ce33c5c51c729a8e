"""Runs of every method on every problem, their records, the paper's values, and what verifies them.

A study is a plan with `@study`: a function from seeds to tasks. It registers its record file, how its tasks
run, and what its records must keep; modules with plans are named once, in `verify.MODULES`.
"""
