"""One text and one list of hidden checks per assignment."""
