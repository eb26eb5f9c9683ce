"""From runs and verdicts to words, tables and files. Functions from values to lines; no terminal needed."""
