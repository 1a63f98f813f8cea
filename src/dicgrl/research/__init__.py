"""The paper's tables and figures, measured again: `dicgrl reproduce TARGET`.

cells.py    one training run with all its settings, and its file
engine.py   runs cells, several at a time; what is finished is kept
case.py     the case study: what a new triple activates, what an entity's relations attend to
targets.py  which cells a table or figure of the paper needs, and what is made of them
tables.py   ours, the paper's and the difference
figures.py  pictures
report.py   Markdown, JSON and pictures of a target
"""
