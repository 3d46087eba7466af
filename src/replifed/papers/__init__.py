"""The papers: a package each, with the jobs that run them all. Those in folders of one's own belong to it."""

from replifed.parts import own_folders

__path__.extend(str(folder) for folder in own_folders())
