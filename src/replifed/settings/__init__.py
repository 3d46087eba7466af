"""Settings: read, checked, and cut down to those that one job needs.

Typed classes are the single truth for keys, types, ranges, defaults and descriptions: `fields` holds those
that papers share, ``replifed.papers.<paper>.settings`` those of a paper. `checks` adds errors that no key
shows by itself: names that must exist elsewhere, numbers that must fit together. All errors are reported
together, one line each, before any job starts. `needs` selects what each job depends on, of which
`replifed.parts.typed` makes an object of the paper's class.
"""
